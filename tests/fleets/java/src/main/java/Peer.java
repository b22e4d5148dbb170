import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/** What the peers in Java have in common: they obey the lines that ../README.md describes. */
interface Peer {
    /** Waits at most so many milliseconds, 0 = not at all, for ever if negative. */
    boolean acquire(long milliseconds) throws Exception;

    /** Gives it back. */
    void release() throws Exception;

    /** Does what standard input says, until it ends. */
    default void obey() throws Exception {
        say("ready");
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            say(obey(line.split(" ")));
        }
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "acquire":
                return String.valueOf(acquire(Long.parseLong(words[1])));
            case "release":
                release();
                return "released";
            case "count":
                for (var rounds = Integer.parseInt(words[1]); rounds > 0; rounds--) {
                    acquire(-1);
                    try {
                        increment(Path.of(words[2]));
                    } finally {
                        release();
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
