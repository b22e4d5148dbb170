import dev.fencelock.ClientOptions;
import dev.fencelock.Fencelock;
import dev.fencelock.RustLock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.jedis4.JedisLockProvider;
import org.h2.jdbcx.JdbcDataSource;
import redis.clients.jedis.JedisPool;

/** What LEAVING-SHEDLOCK.md says, with the real ShedLock: REDIS-URL NAME. */
final class ShedLockPage {
    private ShedLockPage() {}

    public static void main(String[] arguments) throws Exception {
        JdbcDataSource source = new JdbcDataSource();
        source.setUrl("jdbc:h2:mem:shop;DB_CLOSE_DELAY=-1");
        try (var connection = source.getConnection();
                var statement = connection.createStatement()) {
            statement.execute(
                    "CREATE TABLE shedlock(name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP,"
                            + " locked_at TIMESTAMP, locked_by VARCHAR(255))");
        }
        List<Consumer<Runnable>> releases =
                List.of(
                        shedlock.release0.Nightly::run,
                        shedlock.release1.Nightly::run,
                        shedlock.release2.Nightly::run);
        for (int holder = 0; holder < 3; holder++) {
            for (int other = 0; other < 3; other++) {
                boolean excluded = excludes(releases.get(holder), releases.get(other));
                System.out.println(holder + " excludes " + other + ": " + excluded);
            }
        }
        bareDelete(arguments[0], arguments[1]);
        System.exit(0);
    }

    /** Whether a task of the second is skipped while one of the first runs, and run afterwards. */
    private static boolean excludes(Consumer<Runnable> holder, Consumer<Runnable> other)
            throws InterruptedException {
        Thread.sleep(5); // `lockAtLeastFor` of the last one is over
        CountDownLatch runs = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        Thread thread =
                new Thread(
                        () ->
                                holder.accept(
                                        () -> {
                                            runs.countDown();
                                            await(end);
                                        }));
        thread.start();
        runs.await();
        AtomicBoolean meanwhile = new AtomicBoolean();
        other.accept(() -> meanwhile.set(true));
        end.countDown();
        thread.join();
        Thread.sleep(5);
        AtomicBoolean afterwards = new AtomicBoolean();
        other.accept(() -> afterwards.set(true));
        if (!afterwards.get()) {
            throw new IllegalStateException("the lock is still held");
        }
        return !meanwhile.get();
    }

    /** Why ShedLock's Redis record and ours must not be one key. */
    private static void bareDelete(String url, String name) throws InterruptedException {
        try (JedisPool pool = new JedisPool(url);
                Fencelock client =
                        Fencelock.connect(url, ClientOptions.defaults().prefix("job-lock:default:"))) {
            RustLock ours = client.lock(name);
            client.inspect(name); // from here on, nothing is loaded or connected
            Duration atMost = Duration.ofMillis(1_500);
            SimpleLock old =
                    new JedisLockProvider(pool)
                            .lock(new LockConfiguration(Instant.now(), name, atMost, Duration.ZERO))
                            .orElseThrow();
            System.out.println("the same key: " + !ours.tryLock());
            // The old holder takes longer than it said.
            System.out.println("ours: " + ours.tryLock(60, TimeUnit.SECONDS));
            old.unlock();
            System.out.println("its unlock deletes ours: " + client.inspect(name).state());
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
