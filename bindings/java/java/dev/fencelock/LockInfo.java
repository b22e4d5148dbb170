package dev.fencelock;

import java.time.Duration;
import java.util.List;

/**
 * What a backend knows of one name at one instant. For people and tools, never for decisions: it may
 * be out of date when it arrives.
 *
 * @param name the name of the lock
 * @param state who holds it, if anybody
 * @param owner the owner id of the holder, 32 hexadecimal digits; of a foreign holder its value;
 *     null if nobody holds it
 * @param token the fencing token of the lease; null for a foreign holder, and if nobody holds it
 * @param held for how long it has been held; null if that is not known
 * @param ttlLeft what is left of the holder's time; null if it has no limit, or nobody holds it
 * @param metadata what the holder said of itself; null if nothing
 * @param queue who waits, in the order of service
 */
public record LockInfo(
        String name,
        State state,
        String owner,
        Long token,
        Duration held,
        Duration ttlLeft,
        String metadata,
        List<Waiter> queue) {

    /** Who holds a lock. */
    public enum State {
        /** Nobody holds it. */
        FREE,
        /** A lease of this library holds it, in whatever language. */
        HELD,
        /** A client of another kind holds it. */
        FOREIGN;

        static State of(String word) {
            return switch (word) {
                case "free" -> FREE;
                case "held" -> HELD;
                default -> FOREIGN;
            };
        }
    }

    /**
     * One contender of a queue.
     *
     * @param owner the owner id, 32 hexadecimal digits
     * @param waiting for how long it has been waiting
     * @param metadata what it said of itself; null if nothing
     */
    public record Waiter(String owner, Duration waiting, String metadata) {}
}
