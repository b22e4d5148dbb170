-- Whether this user may run every command that the scripts use, asked when a client connects so
-- that a missing right shows before the first lock is taken and not at its release.
-- KEYS: a helper key that does not exist.  ARGV: 1 this client's channel
-- Nothing is written: each call finds nothing to do, and the empty message is ignored.
-- Returns what the server refused, one text for each.
local key = KEYS[1]
local refused = {}
for _, call in ipairs({
  {'TIME'}, {'GET', key}, {'EXISTS', key}, {'PTTL', key}, {'PEXPIRE', key, 1}, {'DEL', key},
  {'SET', key, '', 'PX', 1, 'XX'}, {'ZADD', key, 'XX', 1, ''}, {'ZREM', key, ''},
  {'ZRANK', key, ''}, {'ZSCORE', key, ''}, {'ZRANGE', key, 0, 0}, {'ZPOPMIN', key},
  {'PUBLISH', ARGV[1], ''},
}) do
  local reply = redis.pcall(unpack(call))
  if type(reply) == 'table' and reply.err then
    refused[#refused + 1] = call[1] .. ': ' .. reply.err
  end
end
return refused
