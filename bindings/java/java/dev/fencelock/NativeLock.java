package dev.fencelock;

import java.time.Duration;
import java.util.Optional;

/** What all lock objects of one name and options share. */
final class NativeLock {
    final Fencelock client;
    final String name;
    private final long handle;

    NativeLock(Fencelock client, String name, LockOptions options) {
        this.client = client;
        this.name = name;
        byte[] text = Reader.utf8(name, "name");
        byte[] metadata = Reader.utf8(options.metadata, "metadata");
        long[] times = Reader.times(options.ttl, options.maxHold);
        long made =
                Call.now(
                                (ticket, out) ->
                                        Native.lock(
                                                client.handle,
                                                text,
                                                times,
                                                options.renew,
                                                metadata,
                                                out))
                        .value();
        this.handle = made;
        Native.CLEANER.register(this, () -> Native.freeLock(made));
    }

    // The operations refer to this object while they start, so that it is not freed meanwhile.

    /** Also where the thread has the lock already, and nothing is asked of the backend. */
    static Duration checked(Duration timeout) {
        long seconds = Reader.seconds(timeout);
        int nanos = Reader.nanos(timeout);
        Call.now((ticket, out) -> Native.checkTimeout(seconds, nanos, out));
        return timeout;
    }

    Call.Start acquire(Duration timeout) {
        long seconds = Reader.seconds(timeout);
        int nanos = Reader.nanos(timeout);
        return (ticket, out) -> Native.acquire(ticket, handle, seconds, nanos, out);
    }

    Call.Start tryAcquire() {
        return (ticket, out) -> Native.tryAcquire(ticket, handle, out);
    }

    Lease lease(Call.Answer answer) {
        return new Lease(client, name, answer.value());
    }

    Optional<Lease> maybeLease(Call.Answer answer) {
        return answer.value() == 0 ? Optional.empty() : Optional.of(lease(answer));
    }
}
