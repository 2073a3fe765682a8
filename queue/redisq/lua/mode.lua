#!lua flags=allow-oom
-- Marks a new store with the mode of its hosts. ARGV: mode. Returns the mode of the store.
--@include
local mode = call('GET', P .. 'mode')
if mode then return mode end
call('SET', P .. 'mode', ARGV[2])
return ARGV[2]
