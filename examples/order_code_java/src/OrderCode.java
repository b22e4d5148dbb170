import dev.fencelock.Fencelock;
import dev.fencelock.FencelockException;
import dev.fencelock.RustLock;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.Lock;
import java.util.stream.Stream;

/** Order codes: threads that start at a barrier draw one code each, and all codes differ. */
public final class OrderCode {
    /** What everybody has to lock who draws an order code. */
    private static final String LOCK = "order-code";

    private OrderCode() {}

    /** A code that an order got, and the fencing token under which it was drawn. */
    record Draw(String code, long token) {}

    /**
     * Draws the next code. Where a {@code ReentrantLock} stood, nothing but its declaration changes.
     */
    private static Draw draw(Lock lock, Sequence sequence) throws IOException, InterruptedException {
        lock.lock();
        try {
            RustLock distributed = (RustLock) lock;
            // If the lease was lost after the last code was read, somebody else may be drawing the
            // next one already: this ends the draw before it writes.
            String code = sequence.next(distributed::check);
            return new Draw(code, distributed.token());
        } finally {
            // It throws if the lease was lost while we wrote: then nobody must use our code.
            lock.unlock();
        }
    }

    /** Arguments: {@code [--url URL] [--threads N] [--no-lock]}. */
    public static void main(String[] arguments) throws Exception {
        String url = System.getenv("FENCELOCK_URL");
        int threads = 20;
        boolean locked = true;
        for (int i = 0; i < arguments.length; i++) {
            switch (arguments[i]) {
                case "--url" -> url = arguments[++i];
                case "--threads" -> threads = Integer.parseInt(arguments[++i]);
                case "--no-lock" -> locked = false;
                default -> {
                    System.err.println("order_code: no such option: " + arguments[i]);
                    System.exit(2);
                }
            }
        }
        try {
            System.exit(run(url, threads, locked, System.out) ? 0 : 1);
        } catch (FencelockException e) {
            System.err.println("order_code: " + e.getMessage());
            System.exit(1);
        }
    }

    /** Whether all codes differ and rise with the tokens. Without a URL: files of this machine. */
    static boolean run(String url, int count, boolean locked, PrintStream out)
            throws IOException, InterruptedException, ExecutionException {
        Path folder = Files.createTempDirectory("order-code-");
        String where = url == null || url.isEmpty() ? "file://" + folder.resolve("locks") : url;
        ExecutorService threads = Executors.newFixedThreadPool(count);
        try (Fencelock client = Fencelock.connect(where)) {
            Sequence sequence = new Sequence(folder);
            RustLock lock = client.lock(LOCK);
            CyclicBarrier barrier = new CyclicBarrier(count);
            List<Future<Draw>> drawing = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                drawing.add(
                        threads.submit(
                                () -> {
                                    barrier.await();
                                    return locked
                                            ? draw(lock, sequence)
                                            : new Draw(sequence.next(() -> {}), 0);
                                }));
            }
            List<Draw> draws = new ArrayList<>();
            for (Future<Draw> one : drawing) {
                draws.add(one.get());
            }
            return report(draws, locked, out);
        } finally {
            threads.shutdownNow();
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }

    private static boolean report(List<Draw> draws, boolean locked, PrintStream out) {
        draws.sort((a, b) -> Long.compareUnsigned(a.token(), b.token()));
        List<String> codes = draws.stream().map(Draw::code).toList();
        for (Draw draw : draws) {
            out.printf("%s  token %s%n", draw.code(), Long.toUnsignedString(draw.token()));
        }
        int different = new HashSet<>(codes).size();
        out.printf("drawn       %d%ndifferent   %d%n", codes.size(), different);
        if (!locked) {
            out.println("without a lock, nothing is promised");
            return true;
        }
        boolean rise = codes.stream().sorted().toList().equals(codes);
        out.println("codes       " + (rise ? "rise in the order of the grants" : "DO NOT RISE"));
        boolean kept = different == codes.size() && rise;
        out.println(kept ? "OK: every order has a code of its own" : "FAILED: not as promised");
        return kept;
    }
}
