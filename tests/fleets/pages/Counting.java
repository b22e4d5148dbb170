import java.util.ArrayList;
import java.util.List;

/** A number that nothing guards but the lock under test: what two do at once is lost. */
final class Counting {
    private static final int ROUNDS = 25;
    private static volatile int value;

    private Counting() {}

    static void increment() {
        int before = value;
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        value = before + 1;
    }

    /** How many increments were lost by two threads of each of these, which call the above. */
    static int lost(Runnable one, Runnable other) throws InterruptedException {
        value = 0;
        List<Thread> threads = new ArrayList<>();
        for (Runnable once : List.of(one, other, one, other)) {
            Runnable rounds =
                    () -> {
                        for (int left = ROUNDS; left > 0; left--) {
                            once.run();
                        }
                    };
            threads.add(new Thread(rounds));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        return threads.size() * ROUNDS - value;
    }
}
