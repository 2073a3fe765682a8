-- An ordered set while it is being changed: members not touched yet come from the ZSET page by page, changed ones wait in a
-- sorted list. Nothing is written until flush, so that pages stay consistent. Ties go by name, bytewise (Lua's own order of strings
-- follows the locale of the server; for the characters of names all but the plain one mix upper and lower case.)
local bytewise = '-' < '.' and '.' < '0' and '9' < 'A' and 'Z' < '_' and '_' < 'a'
local function before(av, an, bv, bn)
  if av ~= bv then return av < bv end
  if an == bn then return false end
  if bytewise then return an < bn end
  for i = 1, math.min(#an, #bn) do
    local x, y = string.byte(an, i), string.byte(bn, i)
    if x ~= y then return x < y end
  end
  return #an < #bn
end

-- hash holds what is known of a member, under prefix .. its name; a page brings it along.
local function ordered(key, step, hash, prefix)
  return {key = key, hash = hash, prefix = prefix, state = {}, offset = 0, step = step, page = {}, i = 1, last = 0, changed = {}, n = 0, head = 1}
end
local function turn(o)
  local page, fields = call('ZRANGE', o.key, o.offset, o.offset + o.step - 1, 'WITHSCORES'), {}
  local n, prefix, state = #page, o.prefix, o.state
  for k = 1, n, 2 do
    fields[(k + 1) / 2] = prefix == '' and page[k] or prefix .. page[k]
    page[k + 1] = tonumber(page[k + 1])
  end
  if n > 0 then
    local known = call('HMGET', o.hash, unpack(fields))
    for k = 1, n / 2 do state[page[2 * k - 1]] = known[k] end
  end
  o.page, o.i, o.last, o.offset, o.dry = page, 1, n, o.offset + o.step, n < 2 * o.step
  o.step = math.min(2 * o.step, 64)
end

-- peek returns name and tag of the smallest member, and whether it is a changed one; nil when there is none.
local function peek(o)
  if o.i > o.last and not o.dry then turn(o) end
  local name, tag = o.page[o.i], o.page[o.i + 1]
  local c = o.changed[o.head]
  if c and (not name or before(c.tag, c.name, tag, name)) then return c.name, c.tag, true end
  return name, tag, false
end

-- take removes what peek returned.
local function take(o, changed)
  if changed then o.head = o.head + 1 else o.i = o.i + 2 end
end

-- back puts a member back under its new tag.
local function back(o, name, tag)
  local list, k, head = o.changed, o.n, o.head
  o.n = k + 1
  while k >= head and before(tag, name, list[k].tag, list[k].name) do
    list[k + 1] = list[k]
    k = k - 1
  end
  list[k + 1] = {name = name, tag = tag}
end
