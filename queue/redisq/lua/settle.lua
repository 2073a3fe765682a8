#!lua flags=allow-oom
-- Ends reservations.
-- ARGV: lane, number in it, then runs of one token each: token, n, n times id, verb, info (msgpack map, see lib/batch.lua).
-- Returns one letter per settlement: L lease lost, else the state after it (S D C W R).
--@include settings sched lines record batch
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local plainack = conf().done == 0 -- nothing of an acknowledged plain job is kept
local out, front, at = {}, {}, 4
while at <= #ARGV do
  local tok, n = ARGV[at], tonumber(ARGV[at + 1])
  local key, ids = P .. 'b:' .. tok, {}
  for k = 1, n do ids[k] = ARGV[at + 3 * k - 1] end
  local values = call('HMGET', key, unpack(ids))
  local h, gone, keys, done = nil, {}, {}, {}
  for k = 1, n do
    local id, v, verb = ids[k], values[k], ARGV[at + 3 * k]
    if not v or done[id] then out[#out + 1] = 'L'
    elseif plainack and verb == 'ack' and string.byte(v) == 112 then
      done[id] = true
      gone[#gone + 1] = id
      keys[#keys + 1] = P .. 'msg:' .. id
      out[#out + 1] = 'S'
    else
      done[id] = true
      h = h or header(tok)
      local s, f = settle(id, h, parse(v), verb, cmsgpack.unpack(ARGV[at + 3 * k + 1]))
      if type(s) == 'table' then return s end
      call('HDEL', key, id)
      out[#out + 1] = s
      front[#front + 1] = f
    end
  end
  if #gone > 0 then
    call('HDEL', key, unpack(gone))
    call('DEL', unpack(keys))
    call('HINCRBY', P .. 'count', 'removed', #gone)
    touch(gone[1], true)
    if watched then for k = 2, #gone do touch(gone[k], true) end end
  end
  if #gone > 0 or h then close(tok) end
  at = at + 2 + 3 * n
end
tofront(front)
wake()
return answer(lane, number, table.concat(out))
