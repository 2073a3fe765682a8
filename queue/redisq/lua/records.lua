#!lua flags=allow-oom,no-writes
-- Lists records by key. ARGV: kind, prefix, where to begin (ZRANGEBYLEX), most. Returns keys and values (msgpack {r v}) in turn.
--@include
local kind, prefix, from, most = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local out = {}
for _, key in ipairs(call('ZRANGEBYLEX', P .. 'recs:' .. kind, from, '+', 'LIMIT', 0, most)) do
  if string.sub(key, 1, #prefix) ~= prefix then break end
  two(out, key, call('HGET', P .. 'rec:' .. kind, key))
end
return out
