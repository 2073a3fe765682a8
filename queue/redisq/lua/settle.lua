#!lua flags=allow-oom
-- Ends reservations.
-- ARGV: lane, number in it, then runs of one token each, in which no id comes twice: token, n, n letters for the verbs (a acknowledge, A
-- with a result, n d f y r c the others), msgpack array of n infos (each a msgpack map in a string, see lib/batch.lua), n ids.
-- Returns one letter per settlement: L lease lost, else the state after it (S D C W R).
--@include settings sched lines record batch
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local verbs = {[97] = 'ack', [65] = 'ack', [110] = 'nack', [100] = 'dead', [102] = 'defer', [121] = 'yield', [114] = 'release', [99] = 'crash'}
local kept = conf().done ~= 0 -- acknowledged jobs are
local msg, out, front, at = P .. 'msg:', {}, {}, 4

-- ended files plain jobs that were acknowledged: what is to be known is appended to their records (tail in lib/record.lua).
local function ended(h, ids, values, infos)
  local tail = struct.pack('>ddI2', h.s, now, #h.w) .. h.w
  local done, jobs = {}, {}
  for k, id in ipairs(ids) do
    call('APPEND', msg .. id, tail .. infos[k])
    two(done, now, id)
    local t = h.t[tonumber(string.match(values[k], ';(%d+)') or 1)]
    jobs[t] = jobs[t] or {}
    two(jobs[t], 0, id)
  end
  push('ZADD', P .. 'ended:S', done)
  for t, list in pairs(jobs) do push('ZADD', P .. 'jobs:' .. t, list) end
  if conf().done > 0 then due(now + conf().done) end
end

while at <= #ARGV do
  local tok, n, letters, blob = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local key, h, infos = P .. 'b:' .. tok, nil, nil
  local values = call('HMGET', key, unpack(ARGV, at + 4, at + 3 + n))
  local gone, keys, plain, plaininfo = {}, {}, {}, {}
  for k = 1, n do
    local id, v, verb = ARGV[at + 3 + k], values[k], string.byte(letters, k)
    if not v then out[#out + 1] = 'L'
    elseif verb == 97 and string.byte(v) == 112 then
      local g = #gone + 1
      gone[g], keys[g], plain[g] = id, msg .. id, v
      if kept then
        infos = infos or cmsgpack.unpack(blob)
        plaininfo[g] = infos[k]
      end
      out[#out + 1] = 'S'
    else
      h, infos = h or header(tok), infos or cmsgpack.unpack(blob)
      local s, f = settle(id, h, parse(v), verbs[verb], cmsgpack.unpack(infos[k]))
      if type(s) == 'table' then return s end
      call('HDEL', key, id)
      out[#out + 1] = s
      front[#front + 1] = f
    end
  end
  if #gone > 0 then
    if kept then
      h = h or header(tok)
      ended(h, gone, plain, plaininfo)
    else
      call('DEL', unpack(keys))
      call('HINCRBY', P .. 'count', 'removed', #gone)
    end
    call('HDEL', key, unpack(gone))
    touch(gone[1], not kept)
    if watched then for k = 2, #gone do touch(gone[k], not kept) end end
  end
  if #gone > 0 or h then close(tok) end
  at = at + 4 + n
end
tofront(front)
wake()
return answer(lane, number, table.concat(out))
