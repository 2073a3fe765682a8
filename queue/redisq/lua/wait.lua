#!lua flags=allow-oom
-- Looks whether a view has something to reserve; if not, forgets its old hints, so that the caller can block on them.
-- ARGV: view. Returns {1 or 0, id of the view}.
--@include settings sched lines
local v, toomany = view(ARGV[2])
if not v then return toomany end
call('ZADD', P .. 'viewuse', now, v)
if call('EXISTS', P .. 'T:' .. v) == 1 then return {1, v} end
call('DEL', P .. 'wake:' .. v)
return {0, v}
