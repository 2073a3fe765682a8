#!lua flags=allow-oom,no-writes
-- Where the unfinished jobs of a tenant are. ARGV: tenant. Returns {lines of the tenant, ids of all running jobs}.
--@include
local t = ARGV[2]
local lines, running = {}, {}
for _, m in ipairs(call('SMEMBERS', P .. 'lines:' .. t)) do
  local q, b = string.match(m, '^([^:]*):(.*)$')
  lines[#lines + 1] = readykey(t, q, b)
end
for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
  for _, id in ipairs(call('HKEYS', P .. 'b:' .. tok)) do
    if id ~= '' then running[#running + 1] = id end
  end
end
return {lines, running}
