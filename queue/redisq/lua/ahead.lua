#!lua flags=allow-oom,no-writes
-- What holds a job back. ARGV: tenant, queue, priority, concurrency key or ''.
-- Returns {what lib/limits.lua knows of the queue (6 values), cap of the key, how many run under it, ready jobs of this or a higher
-- priority}.
--@include settings limits
local t, q, b, key = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local n = call('ZCOUNT', P .. 'aside:' .. tq(t, q), b, '+inf')
for _, m in ipairs(call('SMEMBERS', P .. 'lines:' .. t)) do
  local name, p = string.match(m, '^([^:]*):(.*)$')
  if name == q and tonumber(p) >= b then n = n + call('LLEN', readykey(t, q, p)) end
end
local out = waits(t, q)
out[7], out[8] = settings(t, q).k, 0
if key ~= '' then out[8] = tonumber(string.match(call('HGET', P .. 'slots:' .. tq(t, q), key) or '0', '^%d+')) end
out[9] = n
return out
