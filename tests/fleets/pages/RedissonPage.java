import java.util.UUID;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** The releases of LEAVING-REDISSON.md beside each other: REDIS-URL. */
final class RedissonPage {
    private static volatile long lastToken;

    private RedissonPage() {}

    public static void main(String[] arguments) throws Exception {
        Runnable release0 = () -> redisson.release0.ProductLock.locked(Counting::increment);
        Runnable release1 = () -> redisson.release1.ProductLock.locked(RedissonPage::increment);
        Runnable release2 = () -> redisson.release2.ProductLock.locked(RedissonPage::increment);
        System.out.println("0 beside 1: " + Counting.lost(release0, release1));
        System.out.println("1 beside 2: " + Counting.lost(release1, release2));
        System.out.println("tokens go on: " + (fenced(arguments[0]) < lastToken));
        System.out.println("0 beside 2 loses some: " + (Counting.lost(release0, release2) > 0));
        System.exit(0); // Redisson keeps threads
    }

    private static void increment(long token) {
        Counting.increment();
        lastToken = token;
    }

    /** The second token that Redisson gives for a new name. */
    private static long fenced(String url) {
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        RedissonClient client = Redisson.create(config);
        var lock = client.getFencedLock("fenced-" + UUID.randomUUID());
        lock.lock();
        lock.unlock();
        long token = lock.lockAndGetToken();
        lock.unlock();
        client.shutdown();
        return token;
    }
}
