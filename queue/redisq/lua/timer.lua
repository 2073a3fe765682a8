#!lua flags=allow-oom
-- Lets another sleeper of WaitDue look, for a caller that gave up may have taken the token of one that makes something due earlier.
--@include
if call('LLEN', P .. 'timer') == 0 then call('RPUSH', P .. 'timer', '1') end
return 1
