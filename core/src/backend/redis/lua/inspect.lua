-- What is known of one name. Writes nothing.
-- KEYS: lock, queue, token record.  ARGV: 1 how many bytes of a value to show, 2 how many waiters
-- Returns {value or nil, PTTL, token record or nil, {owner value, order, ...}, microseconds}
local value = redis.call('GET', KEYS[1])
local time = redis.call('TIME')
return {
  value and string.sub(value, 1, ARGV[1]),
  redis.call('PTTL', KEYS[1]),
  redis.call('GET', KEYS[3]),
  redis.call('ZRANGE', KEYS[2], 0, ARGV[2] - 1, 'WITHSCORES'),
  time[1] * 1000000 + time[2],
}
