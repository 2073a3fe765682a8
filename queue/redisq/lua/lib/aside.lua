-- Concurrency keys (RULES.md, Limits). A job whose key has no free slot when it comes to the front steps aside: out of its line,
-- into kwait. It keeps its place in the line: places are numbers, lower ones nearer to the front; whoever has none is behind all.
--   slots:<tq>       HASH key → 'running back aside', jobs that run, came back and wait in their line, stepped aside
--   kwait:<tq>:<key> ZSET of those aside: '<place>' (16 digits) .. entry, by falling priority
--   aside:<tq>       ZSET of their ids, by priority; asides:<tenant> SET of the queues that have any
--   place:<tq>       HASH id → 'a', 'b' or 'f' (aside, came back, put to the front meanwhile) and the place
local slots = {}
local function slot(t, q, key)
  local name = tq(t, q) .. ':' .. key
  local k = slots[name]
  if k then return k end
  local run, back, aside = string.match(call('HGET', P .. 'slots:' .. tq(t, q), key) or '0 0 0', '^(%d+) (%d+) (%d+)$')
  k = {t = t, q = q, key = key, run = tonumber(run), back = tonumber(back), aside = tonumber(aside)}
  k.tq, k.wait = tq(t, q), P .. 'kwait:' .. name
  slots[name] = k
  return k
end
local function keep(k)
  if k.run + k.back + k.aside == 0 then return call('HDEL', P .. 'slots:' .. k.tq, k.key) end
  call('HSET', P .. 'slots:' .. k.tq, k.key, string.format('%d %d %d', k.run, k.back, k.aside))
end
local zero = 4503599627370496 -- makes every place a positive number of 16 digits
local function member(place, e) return string.format('%016.0f', zero + place) .. e end

-- stepaside puts a job aside that was in front of its line.
local function stepaside(k, b, e)
  local id, places = string.sub(e, 1, 26), P .. 'place:' .. k.tq
  local at = call('HGET', places, id)
  if at and string.sub(at, 1, 1) == 'b' then k.back = k.back - 1 end
  local place = at and tonumber(string.sub(at, 2)) or call('HINCRBY', P .. 'count', 'places', 1)
  call('HSET', places, id, string.format('a%.0f', place))
  call('ZADD', k.wait, -b, member(place, e))
  call('ZADD', P .. 'aside:' .. k.tq, b, id)
  call('SADD', P .. 'asides:' .. k.t, k.q)
  k.aside = k.aside + 1
  keep(k)
end

-- leftaside takes a job out of those aside.
local function leftaside(k, id, m)
  call('ZREM', k.wait, m)
  call('ZREM', P .. 'aside:' .. k.tq, id)
  if call('EXISTS', P .. 'aside:' .. k.tq) == 0 then call('SREM', P .. 'asides:' .. k.t, k.q) end
  k.aside = k.aside - 1
end

-- insert puts a job back into its line, at its place.
local function insert(t, q, b, e, place)
  local key, places, from = readykey(t, q, b), P .. 'place:' .. tq(t, q), 0
  while true do
    local list = call('LRANGE', key, from, from + 63)
    for _, other in ipairs(list) do
      local at = string.byte(other, 28) == 107 and call('HGET', places, string.sub(other, 1, 26))
      if not at or tonumber(string.sub(at, 2)) > place then
        call('LINSERT', key, 'BEFORE', other, e)
        if not held(t, q, settings(t, q)) then hint(t, q, 1) end
        return
      end
    end
    if #list < 64 then return put('RPUSH', t, q, b, {e}) end
    from = from + 64
  end
end

-- bringback lets jobs come back that stepped aside, as many as their key has free slots. It returns how many.
local function bringback(k)
  local n, cap = 0, settings(k.t, k.q).k
  while k.aside > 0 and k.back < cap - k.run do
    local first = call('ZRANGE', k.wait, 0, 0, 'WITHSCORES')
    local m, b = first[1], 0 - first[2]
    local e, place = string.sub(m, 17), tonumber(string.sub(m, 1, 16)) - zero
    local id = string.sub(e, 1, 26)
    leftaside(k, id, m)
    call('HSET', P .. 'place:' .. k.tq, id, string.format('b%.0f', place))
    k.back, n = k.back + 1, n + 1
    insert(k.t, k.q, b, e, place)
  end
  keep(k)
  return n
end

-- unplace forgets the place of a job that has left its line. It returns whether it had come back.
local function unplace(t, q, id)
  local places = P .. 'place:' .. tq(t, q)
  local at = call('HGET', places, id)
  if not at then return false end
  call('HDEL', places, id)
  return string.sub(at, 1, 1) == 'b'
end

-- takeout removes one waiting job from its line, or from those aside; key is its concurrency key or nil.
local function takeout(t, q, b, e, key)
  local id = string.sub(e, 1, 26)
  local k = key and slot(t, q, key)
  local at = k and call('HGET', P .. 'place:' .. tq(t, q), id)
  if at and string.sub(at, 1, 1) == 'a' then
    unplace(t, q, id)
    leftaside(k, id, member(tonumber(string.sub(at, 2)), e))
    return keep(k)
  end
  local line = readykey(t, q, b)
  if call('LREM', line, 1, e) == 0 then return end
  if call('EXISTS', line) == 0 then emptied(t, q, b) end
  if string.byte(e, 28) == 107 and unplace(t, q, id) and k then
    k.back = k.back - 1
    bringback(k)
  end
end

-- fronts gives places to entries that go to the front of a line, the last one foremost, where others left their places.
local function fronts(t, q, entries)
  local places = P .. 'place:' .. tq(t, q)
  for _, e in ipairs(entries) do
    if string.byte(e, 28) == 107 and call('EXISTS', places) == 1 then
      call('HSET', places, string.sub(e, 1, 26), string.format('f%.0f', call('HINCRBY', P .. 'count', 'fronts', -1)))
    end
  end
end

-- freed takes a job of a queue and a key (or nil) out of what runs.
local function freed(t, q, key)
  if limited() then
    local s, was, some = settings(t, q), tenantfull(t), 0
    if tenantcap(t) > 0 then count('t:' .. t, -1) end
    if was and not tenantfull(t) then freetenant(t) end
    if s.m then
      count('q:' .. t .. '/' .. q, -1)
      some = release(t, q, s, 1)
    end
    if some == 0 and tenantcap(t) > 0 and not tenantfull(t) then hinttenant(t, 1) end
  end
  if key then
    local k = slot(t, q, key)
    k.run = math.max(k.run - 1, 0)
    bringback(k)
  end
end
