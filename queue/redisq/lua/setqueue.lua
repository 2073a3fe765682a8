#!lua flags=allow-oom
-- Changes the override of a queue. ARGV: tenant, queue, then weight, priority, paused (0 or 1): '' = leave alone, '-' = clear.
--@include settings sched lines
local t, q = ARGV[2], ARGV[3]
local key = P .. 'over:' .. t
local o = call('HGET', key, q)
o = o and cmsgpack.unpack(o) or {}
for k, f in ipairs({'w', 'p', 'x'}) do
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
linesof(t, function(_, name, b)
  if name == q then refresh(t, q, b) end
end)
wake()
return 1
