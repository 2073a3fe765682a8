#!lua flags=allow-oom
-- Cancels a job. ARGV: lane, number, tenant, id.
-- Returns 'N' (not found), 'K' (done, or running and marked), 'X' (was cancelled already), or the letter of the ended state.
--@include settings sched lines aside record batch
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local t, id = ARGV[4], ARGV[5]
local j = load(id)
if j and j.err then return j end
if not j or j.t ~= t then return 'N' end
if j.s == 'C' then return 'X' end
if j.s and j.s ~= 'w' then return j.s end
local tok, v = find(id)
if tok then
  local r = parse(v)
  r.c, r.flag = true, 's'
  call('HSET', P .. 'b:' .. tok, id, value(r))
  touch(id)
  return answer(lane, number, 'K')
end
dropwaiting(id, j)
finish(id, j, 'C')
wake()
return answer(lane, number, 'K')
