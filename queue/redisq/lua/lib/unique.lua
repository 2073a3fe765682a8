-- Unique keys held for a time: window:<tenant>:<key> is a STRING, a msgpack map of id and u, the end of the window.

-- uniqueholder returns the id of the job that holds a unique key; false when it is free.
local function uniqueholder(t, key)
  local holder = call('HGET', P .. 'unique:' .. t, key)
  if holder then return holder end
  local kept = call('GET', P .. 'window:' .. t .. ':' .. key)
  if not kept then return false end
  kept = cmsgpack.unpack(kept)
  return now < kept.u and kept.id
end

-- holderstate is the letter of the holder's state; 'G' when it is gone and its window holds the key.
local function holderstate(id)
  local j = load(id)
  if not j or j.err then return 'G' end
  if j.s then return j.s == 'w' and 'W' or j.s end
  return find(id) and 'r' or 'R'
end

-- takewindow holds a key for ms; real says that Redis's clock is store time, so that Redis may forget the key.
local function takewindow(t, key, id, ms, real)
  local name = P .. 'window:' .. t .. ':' .. key
  call('SET', name, cmsgpack.pack({id = id, u = now + ms}))
  if real then call('PEXPIRE', name, ms) end
end

-- freewindow frees the key of a deleted job.
local function freewindow(id, j)
  local name = P .. 'window:' .. j.t .. ':' .. j.u
  local kept = call('GET', name)
  if kept and cmsgpack.unpack(kept).id == id then call('DEL', name) end
end
