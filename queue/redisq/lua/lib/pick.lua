-- The rule of FAIRNESS.md for one view, many picks at a time. State is read once per tenant and queue that is picked from, and
-- written once.
local S = {v = nil, tenants = {}, lines = {}, order = {}}

local function openview(v, max)
  S.v = v
  S.T = ordered(P .. 'T:' .. v, math.min(max, 16))
  S.V = num(call('HGET', P .. 'ten:' .. v, ''))
end

local function tenant(t)
  local x = S.tenants[t]
  if x then return x end
  x = {name = t, bands = call('ZREVRANGE', P .. 'B:' .. S.v .. ':' .. t, 0, -1), Q = {}, L = {}, V = {}, c = {}, st = P .. 'st:' .. S.v .. ':' .. t, set = {}}
  x.base, x.n, x.w = struct.unpack('>ddd', call('HGET', P .. 'ten:' .. S.v, t))
  S.tenants[t] = x
  S.order[#S.order + 1] = x
  return x
end

local function line(x, b, q)
  local k = b .. ':' .. q
  local l = x.L[k]
  if l then return l end
  l = {t = x.name, q = q, b = b, key = readykey(x.name, q, b), field = k, got = 0}
  l.base, l.n, l.w = struct.unpack('>ddd', call('HGET', x.st, k))
  l.len = call('LLEN', l.key)
  x.L[k] = l
  S.lines[#S.lines + 1] = l
  return l
end

-- bandof is step 2: the place in x.bands of the band whose turn it is.
local function bandof(x, guard)
  local i = 1
  while guard > 0 and i < #x.bands do
    local b = x.bands[i]
    if not x.c[b] then x.c[b] = tonumber(call('HGET', x.st, 'c' .. b) or 0) end
    if x.c[b] < guard then break end
    i = i + 1
  end
  return i
end

-- choose is steps 1 to 3; it charges nobody. It returns nil when nobody competes.
local function choose(guard)
  local t, ttag, tchanged = peek(S.T)
  if not t then return nil end
  local x = tenant(t)
  local i = bandof(x, guard)
  local b = x.bands[i]
  local Q = x.Q[b]
  if not Q then
    Q = ordered(P .. 'Q:' .. S.v .. ':' .. t .. ':' .. b, 2)
    x.Q[b] = Q
  end
  local q, qtag, qchanged = peek(Q)
  return {x = x, i = i, b = b, Q = Q, q = q, qtag = qtag, qchanged = qchanged, ttag = ttag, tchanged = tchanged, l = line(x, b, q)}
end

-- gone takes an emptied line out of the choice of this view. The index is brought up to date by leave, after flushview.
local function gone(c)
  if peek(c.Q) then return true end
  table.remove(c.x.bands, c.i)
  return #c.x.bands > 0
end

-- charge is step 5, for n picks in a row; the line has left jobs after them.
local function charge(c, n, left)
  local x, l, b = c.x, c.l, c.b
  for k = 1, c.i - 1 do
    x.c[x.bands[k]] = 0
    x.set['c' .. x.bands[k]] = 0
  end
  if c.i < #x.bands then
    if not x.c[b] then x.c[b] = tonumber(call('HGET', x.st, 'c' .. b) or 0) end
    x.c[b] = x.c[b] + n
    x.set['c' .. b] = x.c[b]
  end
  take(c.Q, c.qchanged)
  if not x.V[b] then x.V[b] = num(call('HGET', x.st, 'V' .. b)) end
  x.V[b] = math.max(x.V[b], n == 1 and c.qtag or l.base + (l.n + n - 1) / l.w)
  l.n, l.got = l.n + n, l.got + n
  take(S.T, c.tchanged)
  S.V = math.max(S.V, n == 1 and c.ttag or x.base + (x.n + n - 1) / x.w)
  x.n = x.n + n
  x.set['V' .. b] = true
  l.tag = l.base + l.n / l.w
  if left > 0 then back(c.Q, l.q, l.tag) else l.out = true end
  x.tag = x.base + x.n / x.w
  if left > 0 or gone(c) then back(S.T, x.name, x.tag) else x.out = true end
end

-- single reports whether nobody else could be picked instead of c, before anything has been picked.
local function single(c)
  return #c.x.bands == 1 and call('ZCARD', S.T.key) == 1 and call('ZCARD', c.Q.key) == 1
end

-- skip takes an emptied line out without charging anybody.
local function skip(c)
  take(c.Q, c.qchanged)
  c.l.out, c.l.tag = true, c.qtag
  if not gone(c) then
    take(S.T, c.tchanged)
    c.x.out, c.x.tag = true, c.ttag
  end
end

-- flushview writes what has changed, then takes the emptied lines out of every view.
local function flushview()
  local tz, tf = {}, {}
  for _, x in ipairs(S.order) do
    if x.tag then
      two(tz, x.tag, x.name)
      two(tf, x.name, tag3(x.base, x.n, x.w))
    end
    local f = x.fields or {}
    for k, v in pairs(x.set) do
      two(f, k, v == true and struct.pack('>d', x.V[string.sub(k, 2)] or 0) or v)
    end
    x.fields = f
  end
  for _, l in ipairs(S.lines) do
    if l.tag then
      local x = S.tenants[l.t]
      local f = x.fields
      two(f, l.field, tag3(l.base, l.n, l.w))
      call('ZADD', P .. 'Q:' .. S.v .. ':' .. l.t .. ':' .. l.b, l.tag, l.q)
    end
    if l.got > 0 then call('HINCRBY', P .. 'served:' .. l.t, l.q, l.got) end
  end
  for _, x in ipairs(S.order) do
    for k = 1, #x.fields, 1000 do call('HSET', x.st, unpack(x.fields, k, math.min(k + 999, #x.fields))) end
  end
  if #tz > 0 then
    two(tf, '', struct.pack('>d', S.V))
    push('ZADD', S.T.key, tz)
    push('HSET', P .. 'ten:' .. S.v, tf)
  end
  for _, l in ipairs(S.lines) do
    if l.out then emptied(l.t, l.q, l.b) end
  end
end
