#!lua flags=allow-oom
-- Passes a hint on that a caller which gave up may have taken. ARGV: id of the view, or 'due'.
--@include
local v = ARGV[2]
if (v == 'due' or call('EXISTS', P .. 'T:' .. v) == 1) and call('LLEN', P .. 'wake:' .. v) == 0 then
  call('RPUSH', P .. 'wake:' .. v, '1')
end
return 1
