#!lua flags=allow-oom
-- Gives hints again that were taken by a host which did not come to reserve: where somebody competes and no hint is left. They are looked
-- after in turn. ARGV: the view of a host that gave up waiting, or '' for a look at all, a second after hints were given.
--@include settings sched hints
for _, v in ipairs(views()) do
  local name = v.names or '*'
  local left = ARGV[2] ~= '' and ARGV[2] ~= name
  for _, line in ipairs(viewlines(name)) do left = left or call('EXISTS', P .. 'wake:' .. line) == 1 end
  if not left then
    for _, t in ipairs(call('ZRANGE', P .. 'T:' .. v.id, 0, 7)) do hinttenant(t, nil, v.id) end
  end
  if ARGV[2] == name then
    call('HDEL', P .. 'duty', v.id)
    if nextrate(v.names) then
      for _, line in ipairs(viewlines(name)) do looks[line] = true end
    end
  end
end
wake()
return 1
