import dev.fencelock.Fencelock;
import dev.fencelock.LockLostException;
import dev.fencelock.RustLock;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/**
 * A worker: buys one unit after the other until there are none left.
 *
 * <p>This file is the example; the others only start workers and count what they did.
 */
final class Worker implements Callable<List<Worker.Outcome>> {
    /** What everybody has to lock who sells product 123. */
    static final String LOCK = "product/123";

    enum Outcome {
        SOLD,
        SOLD_OUT,
        /** The lease was lost before the write, so nothing was written. */
        LOST,
        /** The store has seen a higher token. */
        REFUSED
    }

    private final String url;
    private final Store store;
    private final boolean locked;

    Worker(String url, Store store, boolean locked) {
        this.url = url;
        this.store = store;
        this.locked = locked;
    }

    @Override
    public List<Outcome> call() throws IOException, InterruptedException {
        List<Outcome> outcomes = new ArrayList<>();
        // A client each, as if each were a shop of its own on another machine.
        try (Fencelock client = Fencelock.connect(url)) {
            RustLock lock = client.lock(LOCK);
            do {
                outcomes.add(locked ? buyOne(lock) : sellOneUnit(null));
            } while (outcomes.get(outcomes.size() - 1) != Outcome.SOLD_OUT);
        }
        return outcomes;
    }

    /** Buys one unit under the lock. */
    private Outcome buyOne(RustLock lock) throws IOException, InterruptedException {
        Outcome outcome = Outcome.LOST;
        try (RustLock held = lock.acquire()) {
            outcome = sellOneUnit(held);
        } catch (LockLostException e) {
            // From inside the block: nothing was written. When the block is left: the order stands,
            // for had anybody with a higher token been at the store before it, the store had
            // refused it.
        }
        return outcome;
    }

    /**
     * The section that must not run twice at the same time: it reads the stock, checks it, and
     * writes it back less one.
     */
    private Outcome sellOneUnit(RustLock held) throws IOException, InterruptedException {
        long token = held == null ? 0 : held.token();
        int left = store.readStock(token);
        if (left == 0) {
            return Outcome.SOLD_OUT;
        }
        // If the lease was lost by now, somebody else may be selling this very unit: this throws,
        // so that nothing is written.
        if (held != null) {
            held.check();
        }
        // We may still be paused right here, for longer than our lease lasts. So the order carries
        // the fencing token, and the store refuses it if somebody with a higher one has been there.
        return store.placeOrder(token, left - 1) ? Outcome.SOLD : Outcome.REFUSED;
    }
}
