#!lua flags=allow-oom
-- Replays or purges dead jobs. ARGV: lane, number, 'replay' or 'purge', tenant, other queue or '', ids.
-- Returns a letter per id: C changed, S skipped (its unique key is held, or it is erased), '-' not a dead job of the tenant any more.
--@include settings sched lines record unique bulk
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local verb, t, to = ARGV[4], ARGV[5], ARGV[6]
local out = {}

for k = 7, #ARGV do
  local id = ARGV[k]
  local j = load(id)
  if not j or j.err or j.s ~= 'D' or j.t ~= t then out[#out + 1] = '-'
  elseif verb == 'replay' then out[#out + 1] = replay(id, j, to)
  else
    unfile(id, j)
    erase(id, j)
    out[#out + 1] = 'C'
  end
end
wake()
return answer(lane, number, table.concat(out))
