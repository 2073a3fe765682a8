-- changed tells who watches records of a kind. Nothing is published, which takes a right of its own, while nobody does.
local function changed(kind)
  local channel = P .. 'changed:' .. kind
  if call('PUBSUB', 'NUMSUB', channel)[2] > 0 then call('PUBLISH', channel, '') end
end
