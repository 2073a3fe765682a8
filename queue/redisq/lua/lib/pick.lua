-- The rule of FAIRNESS.md for one view, many picks at a time. State is read once per tenant and queue that is picked from, and
-- written once.
local S = {v = nil, tenants = {}, lines = {}, order = {}}

local function openview(v, max)
  S = {v = v, tenants = {}, lines = {}, order = {}}
  S.T = ordered(P .. 'T:' .. v, math.min(max, 64), P .. 'ten:' .. v, '')
  S.V = num(call('HGET', P .. 'ten:' .. v, ''))
end

local function line(x, b, q, field, state)
  local l = x.L[field]
  if l then return l end
  l = {t = x.name, q = q, b = b, key = readykey(x.name, q, b), field = field}
  l.base, l.n, l.w, l.served = struct.unpack('>dddd', state)
  l.len = call('LLEN', l.key)
  x.L[field] = l
  S.lines[#S.lines + 1] = l
  return l
end

local function tenant(t)
  local x = S.tenants[t]
  if x then return x end
  x = {name = t, Q = {}, L = {}, V = {}, c = {}, st = P .. 'st:' .. S.v .. ':' .. t, set = {}}
  local state = S.T.state[t]
  x.base, x.n, x.w = struct.unpack('>ddd', state)
  x.only = string.sub(state, 25)
  if x.only ~= '' then
    local b, q = string.match(x.only, '^([^:]*):(.*)$')
    local s = call('HMGET', x.st, x.only, 'V' .. b)
    x.bands, x.V[b], x.sole = {b}, num(s[2]), line(x, b, q, x.only, s[1])
  else x.bands = call('ZREVRANGE', P .. 'B:' .. S.v .. ':' .. t, 0, -1) end
  S.tenants[t] = x
  S.order[#S.order + 1] = x
  return x
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
  local c = {x = x, i = i, b = b, ttag = ttag, tchanged = tchanged}
  if x.sole then
    c.l = x.sole
    c.qtag = c.l.base + c.l.n / c.l.w
    return c
  end
  local Q = x.Q[b]
  if not Q then
    Q = ordered(P .. 'Q:' .. S.v .. ':' .. t .. ':' .. b, 2, x.st, b .. ':')
    x.Q[b] = Q
  end
  local q
  q, c.qtag, c.qchanged = peek(Q)
  c.Q, c.l = Q, line(x, b, q, b .. ':' .. q, Q.state[q])
  return c
end

-- gone takes an emptied line out of the choice of this view. The index is brought up to date by leave, after flushview.
local function gone(c)
  if not c.Q then return false end
  if peek(c.Q) then return true end
  table.remove(c.x.bands, c.i)
  return #c.x.bands > 0
end

-- charge is step 5, for n picks in a row that cost e each; the line has left jobs after them.
local function charge(c, n, left, e)
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
  if c.Q then take(c.Q, c.qchanged) end
  if not x.V[b] then x.V[b] = num(call('HGET', x.st, 'V' .. b)) end
  x.V[b] = math.max(x.V[b], n == 1 and c.qtag or l.base + (l.n + (n - 1) * e) / l.w)
  l.n, l.served = l.n + n * e, l.served + n
  take(S.T, c.tchanged)
  S.V = math.max(S.V, n == 1 and c.ttag or x.base + (x.n + (n - 1) * e) / x.w)
  x.n = x.n + n * e
  x.set['V' .. b] = true
  l.tag = l.base + l.n / l.w
  if left <= 0 then l.out = true elseif c.Q then back(c.Q, l.q, l.tag) end
  x.tag = x.base + x.n / x.w
  if left > 0 or gone(c) then back(S.T, x.name, x.tag) else x.out = true end
end

-- single reports whether nobody else could be picked instead of c, before anything has been picked.
local function single(c)
  return c.x.sole and call('ZCARD', S.T.key) == 1
end

-- skip takes an emptied line out without charging anybody.
local function skip(c)
  if c.Q then take(c.Q, c.qchanged) end
  c.l.out, c.l.tag = true, c.qtag
  if not gone(c) then
    take(S.T, c.tchanged)
    c.x.out, c.x.tag = true, c.ttag
  end
end
