import dev.fencelock.FencelockException;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;

/** A flash sale: many workers buy the same product at once, and every unit is sold exactly once. */
public final class FlashSale {
    private FlashSale() {}

    /** Arguments: {@code [--url URL] [--stock N] [--workers N] [--no-lock]}. */
    public static void main(String[] arguments) throws Exception {
        String url = System.getenv("FENCELOCK_URL");
        int stock = 500;
        int workers = 8;
        boolean locked = true;
        for (int i = 0; i < arguments.length; i++) {
            switch (arguments[i]) {
                case "--url" -> url = arguments[++i];
                case "--stock" -> stock = Integer.parseInt(arguments[++i]);
                case "--workers" -> workers = Integer.parseInt(arguments[++i]);
                case "--no-lock" -> locked = false;
                default -> {
                    System.err.println("flash_sale: no such option: " + arguments[i]);
                    System.exit(2);
                }
            }
        }
        try {
            System.exit(sell(url, stock, workers, locked, System.out) ? 0 : 1);
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof FencelockException)) {
                throw e;
            }
            System.err.println("flash_sale: " + e.getCause().getMessage());
            System.exit(1);
        }
    }

    /** The whole sale; whether it went as promised. Without a URL: files of this machine. */
    static boolean sell(String url, int stock, int workers, boolean locked, PrintStream out)
            throws IOException, InterruptedException, ExecutionException {
        Path folder = Files.createTempDirectory("flash-sale-");
        ExecutorService threads = Executors.newFixedThreadPool(workers);
        try {
            Store store = new Store(folder, stock);
            String where = url == null || url.isEmpty() ? "file://" + folder.resolve("locks") : url;
            List<Worker> jobs = Collections.nCopies(workers, new Worker(where, store, locked));
            List<Worker.Outcome> outcomes = new ArrayList<>();
            for (Future<List<Worker.Outcome>> done : threads.invokeAll(jobs)) {
                outcomes.addAll(done.get());
            }
            return report(stock, store.tokens(), outcomes, locked, out);
        } finally {
            threads.shutdownNow();
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }

    private static boolean report(
            int stock,
            List<Long> tokens,
            List<Worker.Outcome> outcomes,
            boolean locked,
            PrintStream out) {
        int sold = tokens.size();
        boolean rise = true;
        for (int i = 1; i < sold; i++) {
            rise &= Long.compareUnsigned(tokens.get(i - 1), tokens.get(i)) < 0;
        }
        out.printf("total       %d%n", stock);
        out.printf("sold        %d%n", sold);
        out.printf("oversold    %d%n", Math.max(0, sold - stock));
        out.printf("refused     %d%n", Collections.frequency(outcomes, Worker.Outcome.REFUSED));
        out.printf("lost        %d%n", Collections.frequency(outcomes, Worker.Outcome.LOST));
        if (!locked) {
            out.println("without a lock, nothing is promised");
            return true;
        }
        out.println("tokens      " + (rise ? "rise from order to order" : "DO NOT RISE"));
        boolean kept = sold == stock && rise;
        out.println(kept ? "OK: every unit was sold once" : "FAILED: not what was promised");
        return kept;
    }
}
