-- Ends the lease, foreign ones too, that an inspection showed; never the one after it.
-- ARGV: 1 the value shown, 2 channel prefix
-- Returns 1, or 0 when the lock holds another value by now.
if redis.call('GET', LOCK) ~= ARGV[1] then
  return 0
end
read_record()
redis.call('DEL', LOCK)
-- The record's flag stays H: this lease counts as lost.
local client = shape(ARGV[1])
if client then
  redis.call('PUBLISH', ARGV[2] .. client, 'lost ' .. ARGV[1])
end
hand_off()
return 1
