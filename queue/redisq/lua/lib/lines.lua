-- Lines of ready jobs: a LIST per (tenant, queue, band) of entries: the 26 characters of an id, one for the size of the payload,
-- one for what the job needs when it starts or ends ('p' nothing, 's' its record, 'x' its record at the start also).
-- lines:<tenant> is the SET of the '<queue>:<band>' that are not empty, tenants the SET of all tenants ever seen.
local hints = {}

-- hint notes that n jobs of a queue became ready.
local function hint(q, n)
  for _, v in ipairs(views()) do
    if inview(v, q) then hints[v.id] = (hints[v.id] or 0) + n end
  end
end

-- wake sends the hints: no line gets longer than 64, for they only say that it is worth looking.
local function wake()
  for v, n in pairs(hints) do
    local key = P .. 'wake:' .. v
    n = math.min(n, 64 - call('LLEN', key))
    if n > 0 then
      local tokens = {}
      for i = 1, n do tokens[i] = '1' end
      call('RPUSH', key, unpack(tokens))
    end
  end
  hints = {}
end

local function compete(t, q, b, s)
  for _, v in ipairs(views()) do
    if inview(v, q) then join(v.id, t, q, b, s.w) end
  end
end

local function vanish(t, q, b)
  for _, v in ipairs(views()) do
    if inview(v, q) then leave(v.id, t, q, b) end
  end
end

-- used makes a queue known for ever.
local function used(t, q)
  if call('HSETNX', P .. 'served:' .. t, q, 0) == 1 then call('SADD', P .. 'tenants', t) end
end

-- put adds entries to a line; cmd is RPUSH (tail) or LPUSH (front, the last argument foremost).
local function put(cmd, t, q, b, entries)
  local key, n = readykey(t, q, b), #entries
  local len
  if n == 1 then len = call(cmd, key, entries[1])
  elseif n <= 1000 then len = call(cmd, key, unpack(entries))
  else
    push(cmd, key, entries)
    len = call('LLEN', key)
  end
  if len == n then
    call('SADD', P .. 'lines:' .. t, q .. ':' .. b)
    used(t, q)
    local s = settings(t, q)
    if s.x == 1 then return end
    compete(t, q, b, s)
  end
  hint(q, n)
end

local function emptied(t, q, b)
  call('SREM', P .. 'lines:' .. t, q .. ':' .. b)
  vanish(t, q, b)
end

-- takeout removes one waiting job from its line.
local function takeout(t, q, b, entry)
  local key = readykey(t, q, b)
  if call('LREM', key, 1, entry) > 0 and call('EXISTS', key) == 0 then emptied(t, q, b) end
end

-- linesof calls f for the lines of one tenant, eachline for those of all.
local function linesof(t, f)
  for _, m in ipairs(call('SMEMBERS', P .. 'lines:' .. t)) do
    local q, b = string.match(m, '^([^:]*):(.*)$')
    f(t, q, tonumber(b))
  end
end
local function eachline(f)
  for _, t in ipairs(call('SMEMBERS', P .. 'tenants')) do linesof(t, f) end
end

-- refresh brings a line to the settings of its queue after they changed.
local function refresh(t, q, b)
  local s = settings(t, q)
  if s.x == 1 then return vanish(t, q, b) end
  compete(t, q, b, s)
  for _, v in ipairs(views()) do
    if inview(v, q) then
      reweigh(P .. 'st:' .. v.id .. ':' .. t, b .. ':' .. q, P .. 'Q:' .. v.id .. ':' .. t .. ':' .. b, q, s.w)
    end
  end
  hint(q, call('LLEN', readykey(t, q, b)))
end

-- view returns the id of a view, made and filled at its first use; nil and an error when there are too many: each costs every change
-- of a line its share.
local viewmost = 64
local function view(name)
  local id = call('HGET', P .. 'views', name)
  if id then return id end
  if call('HLEN', P .. 'views') >= viewmost then
    return nil, redis.error_reply('VIEWS ' .. viewmost .. ' different sets of queues are subscribed to already')
  end
  id = tostring(call('HINCRBY', P .. 'count', 'views', 1))
  call('HSET', P .. 'views', name, id)
  viewlist = nil
  local v = {id = id, names = name ~= '*' and name or nil}
  eachline(function(t, q, b)
    local s = settings(t, q)
    if s.x == 0 and inview(v, q) then join(id, t, q, b, s.w) end
  end)
  return id
end

-- dropview forgets a view that nobody has waited on for long: it is made again when it is needed.
local function dropview(id)
  for _, v in ipairs(views()) do
    if v.id == id then call('HDEL', P .. 'views', v.names or '*') end
  end
  viewlist = nil
  for _, t in ipairs(call('SMEMBERS', P .. 'tenants')) do
    local own = ':' .. id .. ':' .. t
    for _, f in ipairs(call('HKEYS', P .. 'st' .. own)) do
      local b, q = string.match(f, '^([^:]*):(.*)$')
      if b then call('HINCRBY', P .. 'served:' .. t, q, (select(4, struct.unpack('>dddd', call('HGET', P .. 'st' .. own, f))))) end
      b = b or string.match(f, '^V(.*)$')
      if b then call('DEL', P .. 'Q' .. own .. ':' .. b, P .. 'QP' .. own .. ':' .. b) end
    end
    call('DEL', P .. 'st' .. own, P .. 'B' .. own)
  end
  call('DEL', P .. 'T:' .. id, P .. 'TP:' .. id, P .. 'ten:' .. id, P .. 'wake:' .. id)
  call('ZREM', P .. 'viewuse', id)
end
