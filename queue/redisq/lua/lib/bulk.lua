-- runningof returns the token of the batch of those of the jobs that run.
local function runningof(ids)
  local found = {}
  if #ids == 0 then return found end
  for _, tok in ipairs(call('ZRANGE', P .. 'leases', 0, -1)) do
    local values = call('HMGET', P .. 'b:' .. tok, unpack(ids))
    for k = 1, #ids do
      if values[k] then found[ids[k]] = tok end
    end
  end
  return found
end

-- replay starts a new run of a dead job; 'S' when another job holds its unique key, or it is erased.
local function replay(id, j, to)
  local u = j.us ~= 2 and j.u
  if j.er or u and uniqueholder(j.t, u) then return 'S' end
  unfile(id, j)
  if u then call('HSET', P .. 'unique:' .. j.t, u, id) end
  if j.ck then call('DEL', P .. 'check:' .. id) end
  if to ~= '' then j.q = to end
  j.r = (j.r or 1) + 1
  j.a, j.c, j.n, j.f, j.p, j.ck = nil, nil, nil, nil, nil, nil
  totail(id, j)
  return 'C'
end

-- strip takes payload, result, checkpoint and log from an ended job; stays is the rest of its record without the payload.
local function strip(id, j, stays)
  call('DEL', P .. 'body:' .. id, P .. 'result:' .. id, P .. 'check:' .. id, P .. 'log:' .. id)
  j.z, j.B, j.rl, j.ck, j.er, j.l = nil, nil, nil, nil, now, #stays
  if j.g then j.g = {s = j.g.s} end
  rest[id] = stays
  save(id, j)
  touch(id)
end
