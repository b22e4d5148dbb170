import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

/**
 * The store that all workers share: a folder with the stock and the orders.
 *
 * <p>It stands for the database of a shop. As there, one statement is atomic by itself, and takes a
 * moment to get there and back. What is <em>not</em> atomic is a read and the write that follows from
 * it: that is what the workers need the lock for.
 */
final class Store {
    private final Path stock;
    private final Path orders;

    /** A new store in an empty folder. */
    Store(Path folder, int units) throws IOException {
        stock = Files.writeString(folder.resolve("stock"), units + " 0");
        orders = Files.writeString(folder.resolve("orders"), "");
    }

    /**
     * The units left. With a token, this is the first step of a change, and from now on nobody with a
     * lower token changes anything.
     */
    int readStock(long token) throws IOException, InterruptedException {
        Thread.sleep(0, 100_000);
        synchronized (this) {
            long[] row = row();
            write(row[0], Math.max(row[1], token));
            return (int) row[0];
        }
    }

    /**
     * Sets the units left and appends the order; false if somebody with a higher token has been here.
     * The check is part of the same atomic step as the write, as in {@code UPDATE … SET left = ?,
     * token = ? WHERE product = 123 AND token <= ?}.
     */
    boolean placeOrder(long token, int left) throws IOException, InterruptedException {
        Thread.sleep(0, 100_000);
        synchronized (this) {
            long highest = row()[1];
            if (token != 0 && token < highest) {
                return false;
            }
            write(left, Math.max(highest, token));
            Files.writeString(orders, token + "\n", StandardOpenOption.APPEND);
            return true;
        }
    }

    /** The tokens of all orders, oldest first; zeros without a lock. */
    List<Long> tokens() throws IOException {
        return Files.readAllLines(orders).stream().map(Long::parseLong).toList();
    }

    private long[] row() throws IOException {
        String[] fields = Files.readString(stock).split(" ");
        return new long[] {Long.parseLong(fields[0]), Long.parseLong(fields[1])};
    }

    private void write(long left, long token) throws IOException {
        Files.writeString(stock, left + " " + token);
    }
}
