-- An ordered set while it is being changed: members not touched yet come from the ZSET page by page, changed ones wait in a
-- sorted list. Nothing is written until flush, so that pages stay consistent. Ties go by name, bytewise (Lua's own order of strings
-- follows the locale of the server).
local function before(av, an, bv, bn)
  if av ~= bv then return av < bv end
  if an == bn then return false end
  for i = 1, math.min(#an, #bn) do
    local x, y = string.byte(an, i), string.byte(bn, i)
    if x ~= y then return x < y end
  end
  return #an < #bn
end

local function ordered(key, step) return {key = key, offset = 0, step = step, page = {}, i = 1, changed = {}, head = 1} end

-- peek returns name and tag of the smallest member, and whether it is a changed one; nil when there is none.
local function peek(o)
  if o.i > #o.page and not o.dry then
    o.page = call('ZRANGE', o.key, o.offset, o.offset + o.step - 1, 'WITHSCORES')
    o.offset, o.i = o.offset + o.step, 1
    o.dry = #o.page < 2 * o.step
    o.step = math.min(2 * o.step, 64)
  end
  local name, tag = o.page[o.i], tonumber(o.page[o.i + 1])
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
  local list, k = o.changed, #o.changed
  while k >= o.head and before(tag, name, list[k].tag, list[k].name) do
    list[k + 1] = list[k]
    k = k - 1
  end
  list[k + 1] = {name = name, tag = tag}
end
