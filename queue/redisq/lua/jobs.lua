#!lua flags=allow-oom,no-writes
-- Reads jobs. ARGV: 1 = whole (payload, result and checkpoint too), then ids.
-- Returns five values per id: record, value in its batch, header of the batch, 'R' when nothing ended it and it waits, {body,
-- result, checkpoint}; false for what there is not.
--@include
local whole = ARGV[2] == '1'
local ids, out, running = {}, {}, {}
for k = 3, #ARGV do ids[k - 2] = ARGV[k] end
if #ids == 0 then return out end
for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
  local values = call('HMGET', P .. 'b:' .. tok, unpack(ids))
  for k = 1, #ids do
    if values[k] then running[k] = {values[k], call('HGET', P .. 'b:' .. tok, '')} end
  end
end
for k, id in ipairs(ids) do
  local r, n = running[k] or {false, false}, 5 * k - 4
  out[n] = call('GET', P .. 'msg:' .. id)
  out[n + 1], out[n + 2], out[n + 3], out[n + 4] = r[1], r[2], running[k] and false or 'R', false
  if whole then
    out[n + 4] = {call('GET', P .. 'body:' .. id), call('GET', P .. 'result:' .. id), call('GET', P .. 'check:' .. id)}
  end
end
return out
