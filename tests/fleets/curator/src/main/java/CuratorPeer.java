import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

/** Takes Curator's InterProcessMutex as the lines on its standard input say; see ../README.md. */
public final class CuratorPeer {
    private final InterProcessMutex mutex;

    private CuratorPeer(InterProcessMutex mutex) {
        this.mutex = mutex;
    }

    public static void main(String[] args) throws Exception {
        var retries = new RetryNTimes(3, 100);
        try (var client = CuratorFrameworkFactory.newClient(args[0], 10_000, 5_000, retries)) {
            client.start();
            client.blockUntilConnected();
            var peer = new CuratorPeer(new InterProcessMutex(client, args[1]));
            say("ready");
            var lines = new BufferedReader(new InputStreamReader(System.in));
            for (var line = lines.readLine(); line != null; line = lines.readLine()) {
                say(peer.obey(line.split(" ")));
            }
        }
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "acquire":
                var wait = Long.parseLong(words[1]);
                return String.valueOf(mutex.acquire(wait, TimeUnit.MILLISECONDS));
            case "release":
                mutex.release();
                return "released";
            case "count":
                var file = Path.of(words[2]);
                for (var rounds = Integer.parseInt(words[1]); rounds > 0; rounds--) {
                    mutex.acquire();
                    try {
                        increment(file);
                    } finally {
                        mutex.release();
                    }
                }
                return "counted";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** Unguarded: what two do at once is lost. */
    private static void increment(Path file) throws IOException, InterruptedException {
        var value = Integer.parseInt(Files.readString(file));
        TimeUnit.MICROSECONDS.sleep(100);
        Files.writeString(file, String.valueOf(value + 1));
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
