package shop;

import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.data.redis.core.script.RedisScript;
import org.springframework.stereotype.Component;

/**
 * What all instances share: the units left of each product. One command is atomic; a read and the
 * write that follows from it are not, and that is what the service needs the lock for.
 */
@Component
class Stock {
    /** The read that a write will follow: nobody with a lower token writes any more. */
    private static final RedisScript<String> BEGIN =
            new DefaultRedisScript<>(
                    """
                    local highest = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
                    if tonumber(ARGV[1]) > highest then
                        redis.call('HSET', KEYS[1], 'token', ARGV[1])
                    end
                    return redis.call('HGET', KEYS[1], 'left')
                    """,
                    String.class);

    /** The write and the check of the fencing token, in one step. */
    private static final RedisScript<Long> SELL =
            new DefaultRedisScript<>(
                    """
                    local highest = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
                    if tonumber(ARGV[2]) < highest then return 0 end
                    redis.call('HSET', KEYS[1], 'left', ARGV[1], 'token', ARGV[2])
                    return redis.call('HINCRBY', KEYS[1], 'orders', 1)
                    """,
                    Long.class);

    private final StringRedisTemplate redis;
    private final int total;

    Stock(StringRedisTemplate redis, @Value("${shop.stock}") int total) {
        this.redis = redis;
        this.total = total;
    }

    int total() {
        return total;
    }

    /** To be shown; it may be another by now. */
    int left(String id) {
        Object left = redis.opsForHash().get(key(id), "left");
        return left == null ? total : Integer.parseInt(left.toString());
    }

    /** The units left, as the first step of a change by the holder of this fencing token. */
    int left(String id, long token) {
        String left = redis.execute(BEGIN, List.of(key(id)), Long.toUnsignedString(token));
        return left == null ? total : Integer.parseInt(left);
    }

    boolean sell(String id, int left, long token) {
        Long orders =
                redis.execute(
                        SELL,
                        List.of(key(id)),
                        Integer.toString(left),
                        Long.toUnsignedString(token));
        return orders != null && orders > 0;
    }

    private static String key(String id) {
        return "shop:product:" + id;
    }
}
