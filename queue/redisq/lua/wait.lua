#!lua flags=allow-oom
-- Looks whether a view has something to reserve; if not, forgets its old hints, so that the caller can block on its lines.
-- ARGV: view, who waits. Returns -2 when there is something, else in how many ms to look again because of a rate, -1 for never.
--@include settings sched lines views
local v, toomany = view(ARGV[2])
if not v then return toomany end
call('ZADD', P .. 'viewuse', now, v)
openrates()
wake()
if call('EXISTS', P .. 'T:' .. v) == 1 then return -2 end
return nothing(v, ARGV[2], ARGV[3])
