#!lua flags=allow-oom
-- Ends reservations.
-- ARGV: lane, number in it, then runs of one token each, in which no id comes twice: token, n, n letters for the verbs (a acknowledge, A
-- with a result, n d f y r c the others), msgpack array of n infos (each a msgpack map in a string, see lib/batch.lua), n ids.
-- Returns one letter per settlement: L lease lost, else the state after it (S D C W R).
--@include settings reserved
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local kept = conf().done ~= 0 -- acknowledged jobs are
local msg, at, total, out = P .. 'msg:', 4, 0, {}
local unpack, byte, ARGV = unpack, string.byte, ARGV

-- rest makes what anything but the acknowledgement of a plain job needs.
local full
local function rest()
  if full then return full end
  --@include sched lines aside record batch cost
  local verbs = {[97] = 'ack', [65] = 'ack', [110] = 'nack', [100] = 'dead', [102] = 'defer', [121] = 'yield', [114] = 'release', [99] = 'crash'}
  local front = {}
  full = {
    spent = spent,
    one = function(id, h, v, verb, info)
      local i = cmsgpack.unpack(info)
      i.measured = h.c and function(j, b, ms) full.spent(h.c, j, b, ms) end
      local s, f = settle(id, h, parse(v), verbs[verb], i)
      front[#front + 1] = f
      return s
    end,
    finish = function()
      tofront(front)
      correct()
      wake()
    end
  }
  return full
end

-- ended files plain jobs that were acknowledged: what is to be known is appended to their records (tail in lib/record.lua).
-- Scores are text: a number would be written out anew for every job.
local function ended(h, n, ids, keys, values, infos)
  local tail, time = struct.pack('>ddI2', h.s, now, #h.w) .. h.w, string.format('%.0f', now)
  local done, jobs, only = {}, {}, #h.t == 1 and h.t[1]
  for k = 1, n do
    local id, t = ids[k], only or h.t[tonumber(string.match(values[k], ';(%d+)') or 1)]
    call('APPEND', keys[k], tail .. infos[k])
    done[2 * k - 1], done[2 * k] = time, id
    local list = jobs[t]
    if not list then
      list = {n = 0}
      jobs[t] = list
    end
    local m = list.n
    list[m + 1], list[m + 2], list.n = '0', id, m + 2
  end
  push('ZADD', P .. 'ended:S', done)
  for t, list in pairs(jobs) do push('ZADD', P .. 'jobs:' .. t, list) end
  if conf().done > 0 then due(now + conf().done) end
end

-- acknowledged ends n plain jobs of a batch.
local function acknowledged(tok, key, n, ids, keys, values, infos)
  if kept then ended(header(tok), n, ids, keys, values, infos)
  else
    call('DEL', unpack(keys))
    call('HINCRBY', P .. 'count', 'removed', n)
  end
  touch(ids[1], not kept)
  if watched then for k = 2, n do touch(ids[k], not kept) end end
  if call('HLEN', key) == n + 1 then drop(tok) else call('HDEL', key, unpack(ids)) end
end

while at <= #ARGV do
  local tok, n, letters, infos = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], nil
  local key, h = P .. 'b:' .. tok, nil
  local values = call('HMGET', key, unpack(ARGV, at + 4, at + 3 + n))
  local ids, keys, plain, plaininfo, g = {}, {}, {}, {}, 0
  for k = 1, n do
    local v, verb = values[k], byte(letters, k)
    if not v then out[total + k] = 'L'
    else
      local id = ARGV[at + 3 + k]
      if verb == 97 and byte(v) == 112 then
        g = g + 1
        ids[g], keys[g], out[total + k] = id, msg .. id, 'S'
        if kept then
          infos = infos or cmsgpack.unpack(ARGV[at + 3])
          plain[g], plaininfo[g] = v, infos[k]
        end
      else
        h, infos = h or header(tok), infos or cmsgpack.unpack(ARGV[at + 3])
        local s = rest().one(id, h, v, verb, infos[k])
        if type(s) == 'table' then return s end
        call('HDEL', key, id)
        out[total + k] = s
      end
    end
  end
  if g > 0 then acknowledged(tok, key, g, ids, keys, plain, plaininfo) end
  if h then close(tok) end
  total, at = total + n, at + 4 + n
end
if full then full.finish() end
return answer(lane, number, table.concat(out))
