#!lua flags=allow-oom
-- Renews leases.
-- ARGV: length of the lease in ms, then runs of one token each: token, n, n ids.
-- Returns {end of the leases, one letter per reservation: L lost, K ok, C cancel requested}.
--@include batch
local lease = tonumber(ARGV[2])
local u, out, at = now + lease, {}, 3
while at <= #ARGV do
  local tok, n = ARGV[at], tonumber(ARGV[at + 1])
  local key, ids, set, have = P .. 'b:' .. tok, {}, {}, 0
  for k = 1, n do ids[k] = ARGV[at + 1 + k] end
  local values = call('HMGET', key, unpack(ids))
  local held = {}
  for k = 1, n do
    local v = values[k]
    if v then
      local r = parse(v)
      out[#out + 1] = r.c and 'C' or 'K'
      if not held[ids[k]] then
        have = have + 1
        held[ids[k]] = r
      end
    else out[#out + 1] = 'L' end
  end
  if have > 0 then
    local h = header(tok)
    local whole, first = have == call('HLEN', key) - 1, u
    if whole and not h.m then
      h.u, h.l, h.g = u, lease, nil
      setheader(tok, h)
    else
      for id, r in pairs(held) do
        r.u = u
        call('HSET', key, id, value(r))
      end
      h.m, h.l = 1, lease
      setheader(tok, h)
      local all = call('HGETALL', key)
      for k = 1, #all, 2 do
        if all[k] ~= '' then first = math.min(first, parse(all[k + 1]).u or h.u) end
      end
    end
    call('ZADD', P .. 'leases', first, tok)
    due(first)
  end
  at = at + 2 + n
end
return {u, table.concat(out)}
