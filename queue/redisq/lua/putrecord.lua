#!lua
-- Writes a record. ARGV: lane, number, kind, key, value, revision it must have (0 = must not exist, -1 = any).
-- Returns {1, new revision} or {0, revision it has}.
--@include changed
local lane, number = ARGV[2], tonumber(ARGV[3])
local before = answered(lane, number)
if before then return before end
local kind, key, want = ARGV[4], ARGV[5], tonumber(ARGV[7])
local kept = call('HGET', P .. 'rec:' .. kind, key)
local have = kept and cmsgpack.unpack(kept).r or 0
if want ~= -1 and want ~= have then return answer(lane, number, {0, have}) end
local r = call('HINCRBY', P .. 'count', 'revision', 1)
call('HSET', P .. 'rec:' .. kind, key, cmsgpack.pack({r = r, v = ARGV[6]}))
call('ZADD', P .. 'recs:' .. kind, 0, key)
changed(kind)
return answer(lane, number, {1, r})
