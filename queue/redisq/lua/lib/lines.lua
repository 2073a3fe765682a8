--@include hints
-- Lines of ready jobs: a LIST per (tenant, queue, band) of entries: the 26 characters of an id, one for the size of the payload,
-- one for what the job needs when it starts or ends ('p' nothing, 's' its record, 'x' its record at the start also, 'k' what
-- aside.lua knows of it too).
-- lines:<tenant> is the SET of the '<queue>:<band>' that are not empty, tenants the SET of all tenants ever seen.
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

-- heldback notes when a queue with jobs that is held back comes back by itself.
local function heldback(t, q, s)
  local from = s.r and ratefrom(t, q, s)
  if not from or from <= now then return end
  call('ZADD', P .. 'park', from, t .. '/' .. q)
  if s.x == 0 and not queuefull(t, q, s) then look(q, from) end
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
    if s.m or s.r then call('SADD', P .. 'bands:' .. tq(t, q), b) end
    if held(t, q, s) then return heldback(t, q, s) end
    compete(t, q, b, s)
  elseif limited() then
    local s = settings(t, q)
    if held(t, q, s) then return heldback(t, q, s) end
  end
  hint(t, q, n)
end

local function emptied(t, q, b)
  call('SREM', P .. 'lines:' .. t, q .. ':' .. b)
  if limited() then call('SREM', P .. 'bands:' .. tq(t, q), b) end
  vanish(t, q, b)
end

-- hold lets a queue leave that has reached a limit. release lets it join when it may, n jobs of it having become possible, and
-- returns how many are ready.
local function hold(t, q, s)
  for _, b in ipairs(call('SMEMBERS', P .. 'bands:' .. tq(t, q))) do vanish(t, q, b) end
  if s.r then heldback(t, q, s) end
end
local function release(t, q, s, n)
  if held(t, q, s) then return 0 end
  local ready = 0
  for _, b in ipairs(call('SMEMBERS', P .. 'bands:' .. tq(t, q))) do
    compete(t, q, b, s)
    ready = ready + call('LLEN', readykey(t, q, b))
  end
  hint(t, q, math.min(n, ready))
  return ready
end

-- openrates lets the queues join whose rates allow a job by now: a thousand per call, of more the rest at the next.
local function openrates()
  if not limited() then return end
  for _, k in ipairs(call('ZRANGEBYSCORE', P .. 'park', '-inf', now, 'LIMIT', 0, 1000)) do
    call('ZREM', P .. 'park', k)
    local t, q = string.match(k, '^(.*)/(.*)$')
    release(t, q, settings(t, q), math.huge)
  end
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
  if s.m or s.r then call('SADD', P .. 'bands:' .. tq(t, q), b) end
  if held(t, q, s) then
    heldback(t, q, s)
    return vanish(t, q, b)
  end
  compete(t, q, b, s)
  for _, v in ipairs(views()) do
    if inview(v, q) then
      reweigh(P .. 'st:' .. v.id .. ':' .. t, b .. ':' .. q, P .. 'Q:' .. v.id .. ':' .. t .. ':' .. b, q, s.w)
    end
  end
  hint(t, q, call('LLEN', readykey(t, q, b)))
end
