#!lua flags=allow-oom
-- Removes a job that does not run, with its idempotency key. ARGV: lane, number, tenant, id.
-- Returns 'N' (not found), 'r' (it runs) or 'K'.
--@include settings sched lines aside record batch unique
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local t, id = ARGV[4], ARGV[5]
local j = load(id)
if j and j.err then return j end
if not j or j.t ~= t then return answer(lane, number, 'N') end
if not j.s and find(id) then return answer(lane, number, 'r') end
if j.s and j.s ~= 'w' then unfile(id, j) else dropwaiting(id, j) end
if j.i then
  local key = P .. 'key:' .. t .. ':' .. j.i
  local kept = call('GET', key)
  if kept and cmsgpack.unpack(kept).id == id then call('DEL', key) end
end
if j.u and j.us == 2 then freewindow(id, j) end
erase(id, j)
return answer(lane, number, 'K')
