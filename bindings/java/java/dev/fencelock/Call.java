package dev.fencelock;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Native operations: started on the calling thread, and waited for in Java but for the first moment.
 *
 * <p>A wait inside native code does not hear {@link Thread#interrupt}, and pins the carrier of a
 * virtual thread. No thread of the library is ever attached to the JVM; one daemon thread of Java
 * takes what has ended.
 */
final class Call {
    /**
     * Starts an operation: {@code out} has for how many nanoseconds this thread may be kept, and gets
     * status and value; what is returned are its details.
     */
    @FunctionalInterface
    interface Start {
        byte[] start(long ticket, long[] out);
    }

    /** How an operation ended. */
    record Answer(long status, long value, byte[] details) {
        /** Itself, unless the operation failed. */
        Answer orThrow() {
            if (status == FAILED) {
                throw Errors.from(details);
            }
            return this;
        }
    }

    @FunctionalInterface
    private interface Waiter {
        void ended(Answer answer);
    }

    private static final long LATER = -1;
    private static final long FAILED = 1;
    private static final long LOG = 0;
    private static final int BATCH = 64;

    /**
     * For how many nanoseconds a thread waits in native code: a server that is near answers by then,
     * which spares the way over the thread that takes what has ended. An interrupt is heard that much
     * later.
     */
    private static final long MOMENT = 1_000_000;

    /** {@code Thread.isVirtual}; null before Java 21. */
    private static final MethodHandle IS_VIRTUAL = isVirtual();

    private static final ConcurrentHashMap<Long, Waiter> WAITING = new ConcurrentHashMap<>();
    private static final AtomicLong TICKETS = new AtomicLong();

    /**
     * Completes the futures of users. What they have attached may block or take long; on the thread
     * that takes what has ended it would hold up everybody.
     */
    private static final ThreadPoolExecutor CALLBACKS =
            new ThreadPoolExecutor(
                    0,
                    Integer.MAX_VALUE,
                    10,
                    TimeUnit.SECONDS,
                    new SynchronousQueue<>(),
                    work -> daemon(work, "fencelock-callback"));

    private Call() {}

    private static MethodHandle isVirtual() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException older) {
            return null;
        }
    }

    /** For how many nanoseconds this thread may wait in native code. */
    private static long moment() {
        try {
            Thread us = Thread.currentThread();
            return IS_VIRTUAL != null && (boolean) IS_VIRTUAL.invokeExact(us) ? 0 : MOMENT;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** An operation without waiting. */
    static Answer now(Start start) {
        long[] out = new long[2];
        byte[] details = start.start(0, out);
        return new Answer(out[0], out[1], details).orThrow();
    }

    /** Makes the call and waits for its end. An interrupt is noticed when it has ended. */
    static Answer await(Start start) {
        Blocked blocked = new Blocked();
        Answer answer = blocked.call(start, false);
        if (blocked.interrupted) {
            Thread.currentThread().interrupt();
        }
        return answer.orThrow();
    }

    /**
     * Makes the call and waits for its end; an interrupt cancels it. A call that succeeded all the
     * same is a success, and the interrupt flag is set.
     */
    static Answer awaitInterruptibly(Start start) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        Blocked blocked = new Blocked();
        Answer answer = blocked.call(start, true);
        if (blocked.interrupted) {
            if (answer.status == FAILED && Errors.from(answer.details) instanceof CancelledException) {
                throw new InterruptedException();
            }
            Thread.currentThread().interrupt();
        }
        return answer.orThrow();
    }

    /** {@link #awaitInterruptibly}, for methods that declare no checked exception. */
    static Answer awaitOrCancel(Start start) {
        try {
            return awaitInterruptibly(start);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            CancelledException cancelled = new CancelledException("the thread was interrupted");
            cancelled.initCause(e);
            throw cancelled;
        }
    }

    /**
     * Makes the call in the background. When the future ends otherwise, by its cancellation or a
     * time-out of its own, the call is cancelled, and a value that it gives is {@code unwanted}.
     */
    static <T> CompletableFuture<T> async(
            Start start, Function<Answer, T> decode, Consumer<T> unwanted) {
        CompletableFuture<T> future = new CompletableFuture<>();
        // Nobody has attached anything yet to a future whose end is known at once.
        Waiter settled = answer -> settle(future, answer, decode, unwanted);
        long ticket = begin(start, 0, answer -> run(() -> settled.ended(answer)), settled);
        if (ticket != LATER) {
            future.whenComplete((value, error) -> Native.cancel(ticket));
        }
        return future;
    }

    private static <T> void settle(
            CompletableFuture<T> future,
            Answer answer,
            Function<Answer, T> decode,
            Consumer<T> unwanted) {
        try {
            T value = decode.apply(answer.orThrow());
            if (!future.complete(value)) {
                unwanted.accept(value);
            }
        } catch (FencelockException e) {
            future.completeExceptionally(e);
        }
    }

    /** The ticket of a call that goes on, or {@link #LATER} if {@code atOnce} got its end. */
    private static long begin(Start start, long moment, Waiter waiter, Waiter atOnce) {
        long ticket = TICKETS.incrementAndGet();
        long[] out = {moment, 0};
        // Before the start, because the end may be faster than the return.
        WAITING.put(ticket, waiter);
        byte[] details;
        try {
            details = start.start(ticket, out);
        } catch (Throwable e) {
            WAITING.remove(ticket);
            throw e;
        }
        if (out[0] == LATER) {
            return ticket;
        }
        WAITING.remove(ticket);
        atOnce.ended(new Answer(out[0], out[1], details));
        return LATER;
    }

    /** A thread that waits. */
    private static final class Blocked implements Waiter {
        private final Thread thread = Thread.currentThread();
        private volatile Answer answer;
        boolean interrupted;

        Answer call(Start start, boolean cancelOnInterrupt) {
            long ticket = begin(start, moment(), this, now -> answer = now);
            while (answer == null) {
                LockSupport.park(this);
                if (Thread.interrupted()) {
                    interrupted = true;
                    if (cancelOnInterrupt) {
                        Native.cancel(ticket);
                    }
                }
            }
            return answer;
        }

        @Override
        public void ended(Answer how) {
            answer = how;
            LockSupport.unpark(thread);
        }
    }

    static void startDelivery() {
        daemon(Call::deliver, "fencelock").start();
    }

    private static void deliver() {
        long[] numbers = new long[3 * BATCH];
        byte[][] details = new byte[BATCH][];
        while (true) {
            int count = Native.take(numbers, details);
            for (int i = 0; i < count; i++) {
                Answer answer = new Answer(numbers[3 * i + 1], numbers[3 * i + 2], details[i]);
                details[i] = null;
                if (numbers[3 * i] == LOG) {
                    run(() -> log(answer));
                    continue;
                }
                Waiter waiter = WAITING.remove(numbers[3 * i]);
                if (waiter != null) {
                    waiter.ended(answer);
                }
            }
        }
    }

    private static void log(Answer line) {
        System.Logger.Level level =
                line.status == 0 ? System.Logger.Level.WARNING : System.Logger.Level.ERROR;
        Native.LOG.log(level, new String(line.details, StandardCharsets.UTF_8));
    }

    private static void run(Runnable work) {
        try {
            CALLBACKS.execute(work);
        } catch (OutOfMemoryError noThread) {
            // Late is better than never, and than a thread that delivers nothing any more.
            work.run();
        }
    }

    private static Thread daemon(Runnable work, String name) {
        Thread thread = new Thread(null, work, name, 0, false);
        thread.setDaemon(true);
        // Ours for good: it must not keep the class loader of whoever happened to be first.
        thread.setContextClassLoader(null);
        return thread;
    }
}
