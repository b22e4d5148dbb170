package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import org.junit.jupiter.api.Test;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/** The fencing token, with which the store refuses a holder whose lease was lost. */
class StockTest {
    @Test
    void aHolderWhoComesTooLateSellsNothing() {
        URI redis = URI.create(System.getenv("FENCELOCK_TEST_REDIS_URL"));
        LettuceConnectionFactory connections =
                new LettuceConnectionFactory(redis.getHost(), redis.getPort());
        connections.afterPropertiesSet();
        connections.start();
        try {
            Stock stock = new Stock(new StringRedisTemplate(connections), 100);
            String product = "s" + System.nanoTime();
            assertEquals(100, stock.left(product, 1));
            // The first holder is paused here; its lease ends, and a second one comes.
            assertEquals(100, stock.left(product, 2));
            assertFalse(stock.sell(product, 99, 1));
            assertEquals(100, stock.left(product));
            assertTrue(stock.sell(product, 99, 2));
            assertEquals(99, stock.left(product));
        } finally {
            connections.destroy();
        }
    }
}
