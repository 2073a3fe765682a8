#!lua flags=allow-oom,no-writes
-- Describes the queues of a tenant. ARGV: tenant, one queue or '' for all, 1 = that one also when there is no such queue.
-- Returns per queue: name, template, override (msgpack or ''), served or -1, scheduled, ready, running, dead, the first ten
-- characters of the id in front of each of its lines, a letter for what holds it back (p m t r) or ''.
--@include settings limits record
local t, only = ARGV[2], ARGV[3]
local info, out = {}, {}
local function of(q)
  if only ~= '' and q ~= only then return nil end
  info[q] = info[q] or {template = '', override = '', served = -1, scheduled = 0, ready = 0, running = 0, dead = 0, oldest = ''}
  return info[q]
end
if ARGV[4] == '1' then of(only) end
local function each(key, f)
  local all = call('HGETALL', P .. key)
  for k = 1, #all, 2 do f(all[k], all[k + 1]) end
end
each('conf', function(k, v)
  local q = string.match(k, '^q:(.*)$')
  local i = q and of(q)
  if i then i.template = v end
end)
for field, key in pairs({override = 'over:', served = 'served:', scheduled = 'waiting:', dead = 'dead:'}) do
  each(key .. t, function(q, v)
    local i = of(q)
    if i then i[field] = v end
  end)
end
local views = call('HVALS', P .. 'views')
for _, m in ipairs(call('SMEMBERS', P .. 'lines:' .. t)) do
  local q, b = string.match(m, '^([^:]*):(.*)$')
  local i = of(q)
  if i then
    for _, v in ipairs(views) do -- what a line has served since it joined is counted with its tag
      local s = call('HGET', P .. 'st:' .. v .. ':' .. t, b .. ':' .. q)
      if s then i.served = i.served + select(4, struct.unpack('>dddd', s)) end
    end
    local key = readykey(t, q, b)
    i.ready = i.ready + call('LLEN', key)
    i.oldest = i.oldest .. string.sub(call('LINDEX', key, 0), 1, 10)
  end
end
for _, q in ipairs(call('SMEMBERS', P .. 'asides:' .. t)) do
  local i = of(q)
  if i then
    i.ready = i.ready + call('ZCARD', P .. 'aside:' .. tq(t, q))
    i.oldest = i.oldest .. string.sub(call('ZRANGE', P .. 'aside:' .. tq(t, q), 0, 0)[1], 1, 10)
  end
end
for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
  for _, id in ipairs(call('HKEYS', P .. 'b:' .. tok)) do
    local j = id ~= '' and load(id)
    local i = j and j.t == t and of(j.q)
    if i then i.running = i.running + 1 end
  end
end
local function letter(q)
  local w = waits(t, q)
  return w[1] == 1 and 'p' or w[2] >= 0 and 'm' or w[4] >= 0 and 't' or w[6] > 0 and 'r' or ''
end
for q, i in pairs(info) do
  for _, v in ipairs({q, i.template, i.override, i.served, i.scheduled, i.ready, i.running, i.dead, i.oldest, letter(q)}) do
    out[#out + 1] = tostring(v)
  end
end
return out
