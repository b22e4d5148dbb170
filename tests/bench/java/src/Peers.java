import dev.fencelock.Fencelock;
import dev.fencelock.LockOptions;
import dev.fencelock.RustLock;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.time.Duration;
import java.util.Map;
import java.util.StringJoiner;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.config.Config;

/**
 * Locks driven from Java, ours and those it is compared with, turn by turn as the benchmark asks; the
 * protocol is that of {@code peers.py}, of which it knows {@code ["cycle", lock, n]}.
 */
public final class Peers {
    private static final Pattern REQUEST = Pattern.compile("\\[\"cycle\", *\"([a-z]+)\", *(\\d+)]");

    private interface Cycle {
        void run() throws Exception;
    }

    private Peers() {}

    /** Argument: the URL of a Redis server or a ZooKeeper ensemble. */
    public static void main(String[] arguments) throws Exception {
        URI url = URI.create(arguments[0]);
        boolean redis = url.getScheme().equals("redis");
        // The same ttl for all; each as its own manual shows it.
        RustLock ours =
                Fencelock.connect(arguments[0])
                        .lock("bench/java", LockOptions.defaults().ttl(Duration.ofSeconds(30)));
        Map<String, Cycle> cycles =
                Map.of(
                        "fencelock",
                        () -> {
                            ours.lock();
                            ours.unlock();
                        },
                        redis ? "redisson" : "curator",
                        redis ? redisson(arguments[0]) : curator(url));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Matcher request = REQUEST.matcher(line);
            if (!request.matches()) {
                throw new IllegalArgumentException(line);
            }
            Cycle cycle = cycles.get(request.group(1));
            StringJoiner times = new StringJoiner(", ", "[", "]");
            for (int left = Integer.parseInt(request.group(2)); left > 0; left--) {
                long start = System.nanoTime();
                cycle.run();
                times.add(Long.toString(System.nanoTime() - start));
            }
            System.out.println(times);
        }
        System.exit(0);
    }

    private static Cycle redisson(String url) {
        Config config = new Config();
        config.setLockWatchdogTimeout(TimeUnit.SECONDS.toMillis(30));
        config.useSingleServer().setAddress(url.replaceAll("/$", ""));
        RLock lock = Redisson.create(config).getLock("bench/redisson");
        return () -> {
            lock.lock();
            lock.unlock();
        };
    }

    private static Cycle curator(URI url) {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(
                        url.getAuthority(), 30_000, 10_000, new ExponentialBackoffRetry(100, 3));
        client.start();
        InterProcessMutex lock = new InterProcessMutex(client, "/bench/curator");
        return () -> {
            lock.acquire();
            lock.release();
        };
    }
}
