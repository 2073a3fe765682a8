#!lua flags=allow-oom
-- Deletes a record. ARGV: lane, number, kind, key. Returns 1, or 0 when there is none.
--@include changed
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local gone = call('HDEL', P .. 'rec:' .. ARGV[4], ARGV[5])
call('ZREM', P .. 'recs:' .. ARGV[4], ARGV[5])
if gone == 1 then changed(ARGV[4]) end
return answer(lane, number, gone)
