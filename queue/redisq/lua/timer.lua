#!lua flags=allow-oom
-- Lets other sleepers of WaitDue look, for a caller that gave up: it may have taken the token of one that makes something due earlier,
-- and has the duty no more. ARGV: who.
--@include
local holder = string.match(call('GET', P .. 'timerduty') or '', '^%d+ (.*)$')
if holder == ARGV[2] then call('DEL', P .. 'timerduty') end
if call('LLEN', P .. 'timer') == 0 then call('RPUSH', P .. 'timer', '1', '1') end
return 1
