#!lua flags=allow-oom
-- Changes the override of a queue. ARGV: tenant, queue, then weight, priority, paused (0 or 1), most that run, most per key, jobs and ms
-- of the rate: '' = leave alone, '-' = clear.
--@include settings sched lines aside record batch recount
local t, q = ARGV[2], ARGV[3]
local key = P .. 'over:' .. t
local before, o = settings(t, q), call('HGET', key, q)
o = o and cmsgpack.unpack(o) or {}
for k, f in ipairs({'w', 'p', 'x', 'm', 'k', 'r', 'rp'}) do
  local v = ARGV[3 + k]
  if v == '-' then o[f] = nil elseif v ~= '' then o[f] = tonumber(v) end
end
if next(o) then
  call('HSET', key, q, cmsgpack.pack(o))
  call('SADD', P .. 'overridden', t)
else
  call('HDEL', key, q)
  if call('EXISTS', key) == 0 then call('SREM', P .. 'overridden', t) end
end
if o.m or o.k or o.r then
  call('SET', P .. 'limits', '1')
  haslimits = true
end
known, overridden = {}, nil
dropbucket(t .. '/' .. q)
local s = settings(t, q)
if s.m and not before.m then recount() end
if not s.m then call('HDEL', P .. 'running', 'q:' .. t .. '/' .. q) end
if s.k ~= before.k then
  for _, name in ipairs(call('HKEYS', P .. 'slots:' .. tq(t, q))) do bringback(slot(t, q, name)) end
end
linesof(t, function(_, name, b)
  if name == q then refresh(t, q, b) end
end)
wake()
return 1
