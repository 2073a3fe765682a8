--@include limits
-- Who competes, in every view. State of view v (FAIRNESS.md; a tag is base + n/weight):
--   T:<v> ZSET tenant → tag, TP:<v> ZSET of parked tags, ten:<v> HASH tenant → base, n, weight (doubles), then, when only one line of
--   the tenant competes, '<band>:<queue>' of that; '' → V
--   B:<v>:<t> ZSET of bands, st:<v>:<t> HASH: 'V<band>', 'c<band>' (picks while a lower band competed), '<band>:<queue>' → base, n,
--   weight and reservations since it joined (doubles)
--   Q:<v>:<t>:<b> ZSET queue → tag (stale where only one line competes), QP:<v>:<t>:<b> ZSET of parked tags
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

-- notalone ends a tenant's having only one line: its tag goes where tags are compared.
local function notalone(v, t)
  local ten = P .. 'ten:' .. v
  local s = call('HGET', ten, t)
  if not s or #s <= 24 then return end
  local line = string.sub(s, 25)
  local b, q = string.match(line, '^([^:]*):(.*)$')
  local base, n, w = struct.unpack('>ddd', call('HGET', P .. 'st:' .. v .. ':' .. t, line))
  call('ZADD', P .. 'Q:' .. v .. ':' .. t .. ':' .. b, base + n / w, q)
  call('HSET', ten, t, string.sub(s, 1, 24))
end

-- enter makes a tenant compete; line is the only one of it that does, or ''. quit is the opposite.
local function enter(v, t, line)
  local T, TP, ten = P .. 'T:' .. v, P .. 'TP:' .. v, P .. 'ten:' .. v
  local base, parked = num(call('HGET', ten, '')), call('ZSCORE', TP, t)
  if parked then
    base = math.max(base, tonumber(parked))
    call('ZREM', TP, t)
  end
  call('HSET', ten, t, tag3(base, 0, tenantweight(t)) .. line)
  call('ZADD', T, base, t)
end
local function quit(v, t)
  local T, TP, ten = P .. 'T:' .. v, P .. 'TP:' .. v, P .. 'ten:' .. v
  local V, tag = num(call('HGET', ten, '')), call('ZSCORE', T, t)
  call('ZREMRANGEBYSCORE', TP, '-inf', V)
  if tag and tonumber(tag) > V then call('ZADD', TP, tag, t) end
  call('ZREM', T, t)
  call('HDEL', ten, t)
end

local function join(v, t, q, b, w)
  local st, own, line = P .. 'st:' .. v .. ':' .. t, v .. ':' .. t, b .. ':' .. q
  if call('HEXISTS', st, line) == 1 then return end
  local Q, QP = P .. 'Q:' .. own .. ':' .. b, P .. 'QP:' .. own .. ':' .. b
  local base, parked = num(call('HGET', st, 'V' .. b)), call('ZSCORE', QP, q)
  if parked then
    base = math.max(base, tonumber(parked))
    call('ZREM', QP, q)
  end
  call('HSET', st, line, struct.pack('>dddd', base, 0, w, 0))
  call('ZADD', Q, base, q)
  if call('ZCARD', Q) > 1 then return notalone(v, t) end
  call('ZADD', P .. 'B:' .. own, b, b)
  if call('ZCARD', P .. 'B:' .. own) > 1 then return notalone(v, t) end
  if not tenantfull(t) then enter(v, t, line) end
end

local function leave(v, t, q, b)
  local st, own, line = P .. 'st:' .. v .. ':' .. t, v .. ':' .. t, b .. ':' .. q
  local s = call('HGET', st, line)
  if not s then return end
  local base, n, w, served = struct.unpack('>dddd', s)
  local tag, V = base + n / w, num(call('HGET', st, 'V' .. b))
  if served > 0 then call('HINCRBY', P .. 'served:' .. t, q, served) end
  local Q, QP = P .. 'Q:' .. own .. ':' .. b, P .. 'QP:' .. own .. ':' .. b
  call('ZREMRANGEBYSCORE', QP, '-inf', V) -- decide nothing any more
  if tag > V then call('ZADD', QP, tag, q) end
  call('ZREM', Q, q)
  call('HDEL', st, line)
  if call('EXISTS', Q) == 1 then return end
  local B = P .. 'B:' .. own
  call('ZREM', B, b)
  if call('EXISTS', B) == 0 then quit(v, t) end
end

-- holdtenant lets a tenant leave in all views, for it runs as many jobs as it may; its queues stay as they are among themselves.
-- freetenant is the opposite.
local function holdtenant(t)
  for _, v in ipairs(views()) do
    notalone(v.id, t)
    quit(v.id, t)
  end
end
local function freetenant(t)
  for _, v in ipairs(views()) do
    if call('EXISTS', P .. 'B:' .. v.id .. ':' .. t) == 1 and not call('ZSCORE', P .. 'T:' .. v.id, t) then enter(v.id, t, '') end
  end
end

-- reweigh keeps the tag and changes the rate.
local function reweigh(key, field, zset, member, w)
  local s = call('HGET', key, field)
  if not s then return end
  local base, n, old = struct.unpack('>ddd', s)
  if old == w then return end
  base = base + n / old
  call('HSET', key, field, tag3(base, 0, w) .. string.sub(s, 25))
  call('ZADD', zset, base, member)
end
