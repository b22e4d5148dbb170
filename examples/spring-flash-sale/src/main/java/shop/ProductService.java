package shop;

import dev.fencelock.Fencelock;
import dev.fencelock.LockLostException;
import dev.fencelock.RustLock;
import java.time.Duration;
import org.springframework.stereotype.Service;

/** Sells products: this file is the example. */
@Service
public class ProductService {
    /** How long a buyer waits for the turn. */
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private final Fencelock client;
    private final Stock stock;

    ProductService(Fencelock client, Stock stock) {
        this.client = client;
        this.stock = stock;
    }

    String describe(String id) {
        return "Product " + id + ": " + stock.total() + " in all, " + stock.left(id) + " left";
    }

    /** Buys one unit under the lock; the order, or null if everything is sold. */
    String order(String id) {
        String order = null;
        try (RustLock lock = client.lock("product/" + id).acquire(PATIENCE)) {
            int left = stock.left(id, lock.token());
            if (left == 0) {
                return null;
            }
            // Somebody else may be selling this very unit if the lease is lost by now.
            lock.check();
            // We may be paused right here for longer than any lease lasts. So read and write carry the
            // fencing token, and the store refuses the write if a higher one has been there.
            if (!stock.sell(id, left - 1, lock.token())) {
                throw new OvertakenException();
            }
            order = "order " + Long.toUnsignedString(lock.token());
        } catch (LockLostException e) {
            // Lost after the store had accepted the order: it is sold all the same.
            if (order == null) {
                throw e;
            }
        }
        return order;
    }

    /** The store has seen a higher token: the lock was lost, and nothing was written. */
    static final class OvertakenException extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }
}
