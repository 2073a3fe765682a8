-- Charging time (FAIRNESS.md); the arithmetic is that of fair.Average and fair.Tag. cost is a HASH <tenant>/<queue> → eight times what a
-- job of the queue costs on average, in ms. A batch that was charged by time says so in its header: c = {v = view, e = <tenant>/<queue> →
-- what each of its jobs was charged}.
local function costof(ms) return math.min(math.max(ms or 0, 1), 1073741824) end

-- spent notes that a reservation of a batch with the charges c ended after ms.
local spendings, spending = {}, {}
local function spent(c, j, b, ms)
  local t, q, cost = j.t, j.q, costof(ms)
  local charged = c.e[t .. '/' .. q]
  if not charged then return end
  local k = c.v .. ':' .. t .. '/' .. q .. ':' .. string.format('%d', b)
  local s = spending[k]
  if not s then
    s = {v = c.v, t = t, q = q, b = string.format('%d', b), by = 0, total = 0, n = 0}
    spending[k] = s
    spendings[#spendings + 1] = s
  end
  s.by, s.total, s.n = s.by + cost - charged, s.total + cost, s.n + 1
end

-- corrected adds by to the tag whose state is in a field of key and which is in the ZSET tags, or, when there is no state, to the one
-- that is parked. V is the virtual time, w the weight.
local function corrected(key, field, tags, parked, name, V, by, w)
  local s = call('HGET', key, field)
  if not s then
    local tag = math.max(V, tonumber(call('ZSCORE', parked, name) or 0)) + by / w
    if tag > V then return call('ZADD', parked, tag, name) end
    return call('ZREM', parked, name)
  end
  local base, n, rate = struct.unpack('>ddd', s)
  n = n + by
  if base + n / rate < V then base, n = V, 0 end
  call('HSET', key, field, tag3(base, n, rate) .. string.sub(s, 25))
  call('ZADD', tags, base + n / rate, name)
end

-- correct puts right what the reservations noted by spent were charged, and learns from them.
local function correct()
  if #spendings == 0 then return end
  conf()
  if unit == 0 then return end
  local live, tenants, queues, all = {}, {}, {}, {}
  for _, v in ipairs(views()) do live[v.id] = true end
  for _, s in ipairs(spendings) do
    local own, k = s.v .. ':' .. s.t, s.t .. '/' .. s.q
    if live[s.v] then
      local st = P .. 'st:' .. own
      corrected(st, s.b .. ':' .. s.q, P .. 'Q:' .. own .. ':' .. s.b, P .. 'QP:' .. own .. ':' .. s.b, s.q, num(call('HGET', st, 'V' .. s.b)), s.by, settings(s.t, s.q).w)
      tenants[own] = tenants[own] or {v = s.v, t = s.t, by = 0}
      tenants[own].by = tenants[own].by + s.by
    end
    queues[k] = queues[k] or {total = 0, n = 0}
    queues[k].total, queues[k].n = queues[k].total + s.total, queues[k].n + s.n
  end
  for _, x in pairs(tenants) do
    local ten = P .. 'ten:' .. x.v
    corrected(ten, x.t, P .. 'T:' .. x.v, P .. 'TP:' .. x.v, x.t, num(call('HGET', ten, '')), x.by, tenantweight(x.t))
  end
  for k, x in pairs(queues) do
    local sum = tonumber(call('HGET', P .. 'cost', k) or 0)
    if sum == 0 or x.n >= 8 then
      sum = 8 * x.total
      sum = (sum - sum % x.n) / x.n
    else sum = sum + x.total - x.n * math.floor(sum / 8) end
    two(all, k, string.format('%.0f', sum))
  end
  push('HSET', P .. 'cost', all)
end
