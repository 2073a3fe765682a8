-- flushview (of the choice in pick.lua) writes what has changed, then takes the emptied lines out of every view.
local function flushview()
  local tz, tf = {}, {}
  for _, x in ipairs(S.order) do
    if x.tag then
      two(tz, x.tag, x.name)
      two(tf, x.name, tag3(x.base, x.n, x.w) .. x.only)
    end
    local f = x.fields or {}
    for k, v in pairs(x.set) do
      two(f, k, v == true and struct.pack('>d', x.V[string.sub(k, 2)] or 0) or v)
    end
    x.fields = f
  end
  local tags = {}
  for _, l in ipairs(S.lines) do
    if l.tag then
      local x = S.tenants[l.t]
      two(x.fields, l.field, struct.pack('>dddd', l.base, l.n, l.w, l.served))
      if not x.sole then
        local key = P .. 'Q:' .. S.v .. ':' .. l.t .. ':' .. l.b
        tags[key] = tags[key] or {}
        two(tags[key], l.tag, l.q)
      end
    end
  end
  for key, list in pairs(tags) do push('ZADD', key, list) end
  for _, x in ipairs(S.order) do
    for k = 1, #x.fields, 1000 do call('HSET', x.st, unpack(x.fields, k, math.min(k + 999, #x.fields))) end
  end
  if #tz > 0 then
    two(tf, '', struct.pack('>d', S.V))
    push('ZADD', S.T.key, tz)
    push('HSET', P .. 'ten:' .. S.v, tf)
  end
  for _, l in ipairs(S.lines) do
    if l.out then emptied(l.t, l.q, l.b) end
  end
end
