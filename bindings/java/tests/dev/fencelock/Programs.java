package dev.fencelock;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Programs that {@link ExitTest} runs in a JVM of their own: program, URL, name. */
final class Programs {
    /** So that nothing of them is unreachable by accident. */
    private static final List<Object> KEPT = new ArrayList<>();

    private Programs() {}

    public static void main(String[] arguments) throws Exception {
        String name = arguments[2];
        if (arguments[0].equals("connecting")) {
            Fencelock.connectAsync(arguments[1], ClientOptions.defaults());
            System.in.read();
            ending();
            return;
        }
        Fencelock client = Fencelock.connect(arguments[1]);
        KEPT.add(client);
        LockOptions options = LockOptions.defaults().ttl(Duration.ofSeconds(10));
        RustLock lock = client.lock(name, options);
        switch (arguments[0]) {
            case "held" -> lock.lock();
            case "lease" -> KEPT.add(lock.acquireLease());
            case "forgotten" -> {
                lock.acquireLease();
                System.gc();
            }
            case "renewals" -> {
                lock.lock();
                LockOptions shortly = LockOptions.defaults().ttl(Duration.ofMillis(1500));
                for (int i = 0; i < 200; i++) {
                    KEPT.add(client.lock(name + "/" + i, shortly).acquireLease());
                }
                Thread.sleep(600);
            }
            case "waits" -> {
                lock.lock();
                for (int i = 0; i < 3; i++) {
                    daemon(lock::lock);
                }
                lock.acquireAsync();
                Support.untilQueued(client, name, 4);
            }
            case "working" -> {
                lock.lock();
                for (int i = 0; i < 4; i++) {
                    RustLock own = client.lock(name + "/" + i % 3);
                    daemon(
                            () -> {
                                while (true) {
                                    own.lock();
                                    own.unlock();
                                }
                            });
                }
                Thread.sleep(50);
            }
            case "lost" -> {
                lock.lock();
                lock.lost().thenRun(() -> System.out.println("lost"));
            }
            case "exit" -> {
                lock.lock();
                // A thread that is no daemon and waits does not hold up System.exit.
                new Thread(() -> client.lock(name).lock()).start();
                Support.untilQueued(client, name, 1);
                ending();
                System.exit(0);
            }
            case "hook" -> {
                Lease lease = lock.acquireLease();
                Runtime.getRuntime()
                        .addShutdownHook(
                                new Thread(
                                        () -> {
                                            lease.check();
                                            lease.release();
                                            System.out.println("unlocked");
                                        }));
            }
            case "stopped" -> {
                LockOptions shortly = LockOptions.defaults().ttl(Duration.ofMillis(500));
                Lease lease = client.lock(name, shortly).acquireLease();
                long before = System.nanoTime();
                System.out.println(Long.toUnsignedString(lease.token()));
                while (true) {
                    long now = System.nanoTime();
                    if (now - before > 1_000_000_000L) {
                        // The very first look after the pause.
                        System.out.println(lease.isHeld() + " " + lease.isLost());
                        break;
                    }
                    before = now;
                }
            }
            case "sleeping" -> {
                lock.lock();
                System.out.println("held");
                System.in.read();
            }
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        ending();
    }

    private static void ending() {
        System.out.println(System.currentTimeMillis());
    }

    private static void daemon(Support.Work work) {
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                work.run();
                            } catch (Exception e) {
                                throw new IllegalStateException(e);
                            }
                        });
        thread.setDaemon(true);
        thread.start();
    }
}
