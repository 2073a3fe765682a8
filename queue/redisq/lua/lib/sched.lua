-- Who competes, in every view. State of view v (FAIRNESS.md; a tag is base + n/weight):
--   T:<v> ZSET tenant → tag, TP:<v> ZSET of parked tags, ten:<v> HASH tenant → packed base, n, weight; '' → V
--   B:<v>:<t> ZSET of bands, st:<v>:<t> HASH: 'V<band>', 'c<band>' (picks while a lower band competed), '<band>:<queue>' → packed
--   Q:<v>:<t>:<b> ZSET queue → tag, QP:<v>:<t>:<b> ZSET of parked tags
local function num(s) return s and struct.unpack('>d', s) or 0 end
local function tag3(base, n, w) return struct.pack('>ddd', base, n, w) end

-- views lists the views as {id, names}; names is nil for all queues. The HASH views holds '*' or ',a,b,' → id.
local viewlist
local function views()
  if not viewlist then
    viewlist = {}
    local all = call('HGETALL', P .. 'views')
    for i = 1, #all, 2 do viewlist[#viewlist + 1] = {id = all[i + 1], names = all[i] ~= '*' and all[i] or nil} end
  end
  return viewlist
end
local function inview(v, q) return not v.names or string.find(v.names, ',' .. q .. ',', 1, true) end

local function join(v, t, q, b, w)
  local st, Q = P .. 'st:' .. v .. ':' .. t, P .. 'Q:' .. v .. ':' .. t .. ':' .. b
  if call('ZSCORE', Q, q) then return end
  local QP = P .. 'QP:' .. v .. ':' .. t .. ':' .. b
  local base, parked = num(call('HGET', st, 'V' .. b)), call('ZSCORE', QP, q)
  if parked then
    base = math.max(base, tonumber(parked))
    call('ZREM', QP, q)
  end
  call('HSET', st, b .. ':' .. q, tag3(base, 0, w))
  if call('ZADD', Q, base, q) == 1 and call('ZCARD', Q) > 1 then return end
  local B = P .. 'B:' .. v .. ':' .. t
  call('ZADD', B, b, b)
  if call('ZCARD', B) > 1 then return end
  local ten = P .. 'ten:' .. v
  base, parked = num(call('HGET', ten, '')), call('ZSCORE', P .. 'TP:' .. v, t)
  if parked then
    base = math.max(base, tonumber(parked))
    call('ZREM', P .. 'TP:' .. v, t)
  end
  call('HSET', ten, t, tag3(base, 0, tenantweight(t)))
  call('ZADD', P .. 'T:' .. v, base, t)
end

local function leave(v, t, q, b)
  local st, Q = P .. 'st:' .. v .. ':' .. t, P .. 'Q:' .. v .. ':' .. t .. ':' .. b
  local tag = call('ZSCORE', Q, q)
  if not tag then return end
  local V = num(call('HGET', st, 'V' .. b))
  local QP = P .. 'QP:' .. v .. ':' .. t .. ':' .. b
  call('ZREMRANGEBYSCORE', QP, '-inf', V) -- decide nothing any more
  if tonumber(tag) > V then call('ZADD', QP, tag, q) end
  call('ZREM', Q, q)
  call('HDEL', st, b .. ':' .. q)
  if call('EXISTS', Q) == 1 then return end
  local B = P .. 'B:' .. v .. ':' .. t
  call('ZREM', B, b)
  if call('EXISTS', B) == 1 then return end
  local T, TP, ten = P .. 'T:' .. v, P .. 'TP:' .. v, P .. 'ten:' .. v
  V, tag = num(call('HGET', ten, '')), call('ZSCORE', T, t)
  call('ZREMRANGEBYSCORE', TP, '-inf', V)
  if tag and tonumber(tag) > V then call('ZADD', TP, tag, t) end
  call('ZREM', T, t)
  call('HDEL', ten, t)
end

-- reweigh keeps the tag and changes the rate.
local function reweigh(key, field, zset, member, w)
  local s = call('HGET', key, field)
  if not s then return end
  local base, n, old = struct.unpack('>ddd', s)
  if old == w then return end
  base = base + n / old
  call('HSET', key, field, tag3(base, 0, w))
  call('ZADD', zset, base, member)
end
