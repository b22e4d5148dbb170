import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.StringJoiner;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's mutex as its own manual shows it; commands and answers as in {@code peers.py}. */
final class Curator {
    private static final Pattern COMMAND = Pattern.compile("\\[\"(\\w+)\",\"[^\"]*\",(\\d+)]");
    private static final int SESSION_MS = 30_000;

    public static void main(String[] arguments) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(
                        arguments[0], SESSION_MS, 15_000, new ExponentialBackoffRetry(1000, 3));
        client.start();
        InterProcessMutex lock = new InterProcessMutex(client, "/bench/curator");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Matcher command = COMMAND.matcher(line);
            if (!command.matches()) {
                throw new IllegalArgumentException(line);
            }
            System.out.println(answer(lock, command.group(1), Integer.parseInt(command.group(2))));
        }
    }

    private static String answer(InterProcessMutex lock, String what, int number) throws Exception {
        switch (what) {
            case "cycle":
                StringJoiner times = new StringJoiner(",", "[", "]");
                for (int i = 0; i < number; i++) {
                    long start = System.nanoTime();
                    lock.acquire();
                    lock.release();
                    times.add(Long.toString(System.nanoTime() - start));
                }
                return times.toString();
            case "acquire":
                long asked = System.nanoTime();
                lock.acquire();
                return "[" + asked + "," + System.nanoTime() + "]";
            case "release":
                Thread.sleep(number);
                long ended = System.nanoTime();
                lock.release();
                return Long.toString(ended);
            default:
                throw new IllegalArgumentException(what);
        }
    }
}
