#!lua flags=allow-oom,no-writes
-- What holds a queue back. ARGV: tenant, queue, priority. Returns {1 when paused, ready jobs of this or a higher priority}.
--@include settings
local t, q, b = ARGV[2], ARGV[3], tonumber(ARGV[4])
local n = 0
for _, m in ipairs(call('SMEMBERS', P .. 'lines:' .. t)) do
  local name, p = string.match(m, '^([^:]*):(.*)$')
  if name == q and tonumber(p) >= b then n = n + call('LLEN', readykey(t, q, p)) end
end
return {settings(t, q).x, n}
