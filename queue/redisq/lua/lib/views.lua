-- view returns the id of a view, made and filled at its first use; nil and an error when there are too many: each costs every change
-- of a line its share.
local viewmost = 64
local function view(name)
  local id = call('HGET', P .. 'views', name)
  if id then return id end
  if call('HLEN', P .. 'views') >= viewmost then
    return nil, redis.error_reply('VIEWS ' .. viewmost .. ' different sets of queues are subscribed to already')
  end
  id = tostring(call('HINCRBY', P .. 'count', 'views', 1))
  call('HSET', P .. 'views', name, id)
  viewlist = nil
  local v = {id = id, names = name ~= '*' and name or nil}
  eachline(function(t, q, b)
    local s = settings(t, q)
    if not inview(v, q) then return end
    if held(t, q, s) then heldback(t, q, s) else join(id, t, q, b, s.w) end
  end)
  return id
end

-- dropview forgets a view that nobody has waited on for long: it is made again when it is needed.
local function dropview(id)
  local names
  for _, v in ipairs(views()) do
    if v.id == id then names = v.names or '*' end
  end
  call('HDEL', P .. 'views', names or '')
  viewlist = nil
  for _, line in ipairs(viewlines(names or '')) do
    local star, named = linesfor(line)
    if line ~= star and line ~= named then call('DEL', P .. 'wake:' .. line) end
  end
  for _, t in ipairs(call('SMEMBERS', P .. 'tenants')) do
    local own = ':' .. id .. ':' .. t
    for _, f in ipairs(call('HKEYS', P .. 'st' .. own)) do
      local b, q = string.match(f, '^([^:]*):(.*)$')
      if b then call('HINCRBY', P .. 'served:' .. t, q, (select(4, struct.unpack('>dddd', call('HGET', P .. 'st' .. own, f))))) end
      b = b or string.match(f, '^V(.*)$')
      if b then call('DEL', P .. 'Q' .. own .. ':' .. b, P .. 'QP' .. own .. ':' .. b) end
    end
    call('DEL', P .. 'st' .. own, P .. 'B' .. own)
  end
  call('DEL', P .. 'T:' .. id, P .. 'TP:' .. id, P .. 'ten:' .. id)
  call('HDEL', P .. 'duty', id)
  call('ZREM', P .. 'viewuse', id)
end
