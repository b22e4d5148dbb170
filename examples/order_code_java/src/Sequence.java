import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;

/**
 * The sequence that all threads share: a file with the last code.
 *
 * <p>It stands for a row of a database, or for a service that knows only "read" and "write". Nothing
 * here is atomic: that is what the threads need the lock for.
 */
final class Sequence {
    private final Path last;

    /** A new sequence in an empty folder. Nothing was drawn yet. */
    Sequence(Path folder) throws IOException {
        last = Files.writeString(folder.resolve("last"), today() + "-000000");
    }

    /** Reads the last code, goes one on, and writes that back, unless {@code beforeWrite} objects. */
    String next(Runnable beforeWrite) throws IOException, InterruptedException {
        String read = Files.readString(last);
        Thread.sleep(0, 100_000);
        String next = next(read, today());
        beforeWrite.run();
        Files.writeString(last, next);
        return next;
    }

    /** Numbers begin anew each day. A clock that was set back must not bring back old codes. */
    static String next(String last, String today) {
        String day = last.substring(0, 8);
        if (today.compareTo(day) > 0) {
            return today + "-000001";
        }
        int number = Integer.parseInt(last.substring(9)) + 1;
        if (number > 999_999) {
            throw new IllegalStateException("all codes of this day are drawn");
        }
        return String.format("%s-%06d", day, number);
    }

    private static String today() {
        return LocalDate.now(ZoneOffset.UTC).format(DateTimeFormatter.BASIC_ISO_DATE);
    }
}
