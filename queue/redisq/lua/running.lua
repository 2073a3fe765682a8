#!lua flags=allow-oom,no-writes
-- Returns the ids of all running jobs.
--@include
local running = {}
for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
  for _, id in ipairs(call('HKEYS', P .. 'b:' .. tok)) do
    if id ~= '' then running[#running + 1] = id end
  end
end
return running
