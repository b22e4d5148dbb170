import dev.fencelock.Fencelock;
import dev.fencelock.RustLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** One process of Java in the contest of languages, see README.md. */
class Peer {
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        String name = arguments[1];
        int rounds = Integer.parseInt(arguments[2]);
        Path file = Path.of(arguments[3]);
        Path tokens = Path.of(file + ".tokens");

        try (Fencelock client = Fencelock.connect(url)) {
            RustLock lock = client.lock(name);
            System.out.println("ready");
            System.in.readAllBytes();
            for (int round = 0; round < rounds; round++) {
                lock.lock();
                try {
                    int number = Integer.parseInt(Files.readString(file));
                    Files.writeString(file, Integer.toString(number + 1));
                    Files.writeString(
                            tokens, "java " + lock.token() + "\n", StandardOpenOption.APPEND);
                } finally {
                    lock.unlock();
                }
            }
        }
    }
}
