-- Hints: wake:* is the LIST that hosts of the view of all queues block on, wake:<queue> that of hosts which name the queue, whatever
-- else they name. A token '1' says that there is something to reserve, '0' that only the time to look again has changed. A line
-- nobody subscribes to gets none, and none gets longer than 64.
local hints, looks = {}, {}

-- linesfor are the lines of hints about a queue.
local function linesfor(q)
  local star, named
  for _, v in ipairs(views()) do
    if not v.names then star = '*' elseif inview(v, q) then named = q end
  end
  return star, named
end

-- viewlines are the lines that hosts of a view (its name) block on.
local function viewlines(name)
  if name == '*' then return {'*'} end
  local list = {}
  for q in string.gmatch(name, '[^,]+') do list[#list + 1] = q end
  return list
end

-- hint notes that n jobs of a queue that competes can be taken.
local function hint(t, q, n)
  if limited() then n = math.min(n, room(t, q, settings(t, q))) end
  if n <= 0 then return end
  local star, named = linesfor(q)
  if star then hints[star] = (hints[star] or 0) + n end
  if named then hints[named] = (hints[named] or 0) + n end
end

-- hinttenant is hint for n jobs (nil: all) of the first queue of a tenant, in one view or (nil) in each.
local function hinttenant(t, n, only)
  local lines = {}
  for _, v in ipairs(views()) do
    local own = v.id .. ':' .. t
    local b = (not only or v.id == only) and call('ZRANGE', P .. 'B:' .. own, -1, -1)[1]
    local q = b and call('ZRANGE', P .. 'Q:' .. own .. ':' .. b, 0, 0)[1]
    if q then lines[v.names and q or '*'] = n or call('LLEN', readykey(t, q, b)) end
  end
  for line, k in pairs(lines) do hints[line] = (hints[line] or 0) + k end
end

-- duty is a HASH view → 'time who': when one of those who wait on a view looks again because of a rate; nil when nobody does.
local function duty(v)
  local at, who = string.match(call('HGET', P .. 'duty', v) or '0 ', '^(%d+) (.*)$')
  at = tonumber(at)
  if at > now then return at, who end
end

-- look tells those who wait for a queue that a rate lets it in at a time of which they may not know.
local function look(q, at)
  for _, v in ipairs(views()) do
    if inview(v, q) and (duty(v.id) or math.huge) > at then looks[v.names and q or '*'] = true end
  end
end

-- wake sends the hints. One that a host may take and die with is looked after: see check.lua.
local function wake()
  local fresh, woken = false, 0
  for line, n in pairs(hints) do
    local key = P .. 'wake:' .. line
    local had = call('LLEN', key)
    n = math.min(n, 64 - had)
    if n > 0 then
      local tokens = {}
      for i = 1, n do tokens[i] = '1' end
      woken = woken + n
      call('RPUSH', key, unpack(tokens))
    end
    fresh = fresh or had == 0
    looks[line] = nil
  end
  for line in pairs(looks) do
    if call('LLEN', P .. 'wake:' .. line) == 0 then call('RPUSH', P .. 'wake:' .. line, '0') end
  end
  hints, looks = {}, {}
  if fresh and call('SET', P .. 'guarded', '1', 'NX', 'PX', 900) and call('EXISTS', P .. 'guard') == 0 then
    for _ = 0, math.min(woken, 7) do call('RPUSH', P .. 'guard', '1') end -- one more than may have been woken
  end
end

-- nothing forgets the hints of a view (id and name) that has nothing to reserve: who blocks on them from now on misses none. It returns
-- in how many ms the caller (who) has to look again because of a rate, -1 for never. Of those who wait one looks at the very time.
local function nothing(v, name, who)
  for _, line in ipairs(viewlines(name)) do call('DEL', P .. 'wake:' .. line) end
  local at = nextrate(name ~= '*' and name or nil)
  if not at then return -1 end
  local first, by = duty(v)
  if first and first <= at and by ~= who then return math.max(first - now, 0) + 1000 end
  call('HSET', P .. 'duty', v, string.format('%.0f %s', at, who))
  return math.max(at - now, 0)
end
