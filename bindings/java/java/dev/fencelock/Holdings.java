package dev.fencelock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What the locks of one client hold, by name and thread. The count is here and not in the lock
 * object, so that two objects of one name agree.
 */
final class Holdings {
    /** The thread itself: its id may be used again, and {@code getId} be overridden. */
    private record Owner(String name, Thread thread) {
        static Owner current(String name) {
            return new Owner(name, Thread.currentThread());
        }
    }

    /** One lease of one owner, and the holds on it that were not given back yet. */
    private static final class Holding {
        final Lease lease;
        private final List<Hold> holds = new ArrayList<>(1);

        Holding(Lease lease) {
            this.lease = lease;
        }
    }

    /** One hold: it is given back once. */
    final class Hold {
        private final Owner owner;
        private final Holding holding;
        /** Whether {@code close} gives it back, or {@code unlock} alone. */
        private final boolean closeable;
        private boolean givenBack;

        private Hold(Owner owner, Holding holding, boolean closeable) {
            this.owner = owner;
            this.holding = holding;
            this.closeable = closeable;
            holding.holds.add(this);
        }

        Lease lease() {
            return holding.lease;
        }

        boolean isGivenBack() {
            synchronized (holding) {
                return givenBack;
            }
        }

        /** Whether it was not before; then {@code last} says what is left to do. */
        boolean giveBack(boolean[] last) {
            synchronized (holding) {
                if (givenBack) {
                    return false;
                }
                givenBack = true;
                holding.holds.remove(this);
                last[0] = holding.holds.isEmpty();
                if (last[0]) {
                    byOwner.remove(owner, holding);
                }
                return true;
            }
        }
    }

    private final ConcurrentHashMap<Owner, Holding> byOwner = new ConcurrentHashMap<>();

    /**
     * One more hold, if the current thread has the lock; else null.
     *
     * @throws LockLostException if it had it and lost it
     */
    Hold again(String name, boolean closeable) {
        Owner owner = Owner.current(name);
        Holding holding = byOwner.get(owner);
        if (holding == null) {
            return null;
        }
        synchronized (holding) {
            // Another thread may have closed the last hold just now: then its lease says nothing of us.
            if (holding.holds.isEmpty()) {
                return null;
            }
            holding.lease.check();
            return new Hold(owner, holding, closeable);
        }
    }

    /** The first hold of the current thread on a new lease. */
    Hold first(String name, Lease lease, boolean closeable) {
        Owner owner = Owner.current(name);
        Holding holding = new Holding(lease);
        synchronized (holding) {
            Hold hold = new Hold(owner, holding, closeable);
            byOwner.put(owner, holding);
            return hold;
        }
    }

    /** The current thread's latest hold, or null. */
    Hold latest(String name) {
        Holding holding = byOwner.get(Owner.current(name));
        if (holding == null) {
            return null;
        }
        synchronized (holding) {
            int count = holding.holds.size();
            return count == 0 ? null : holding.holds.get(count - 1);
        }
    }

    /**
     * The hold that {@code unlock} of a lock object gives back: the current thread's newest of those
     * that {@code lock} took, or the object's own if that is newer. What another object will close is
     * left to that, unless there is nothing else and the object has none of its own.
     */
    Hold toUnlock(String name, Hold own) {
        Holding holding = byOwner.get(Owner.current(name));
        if (holding == null) {
            return null;
        }
        synchronized (holding) {
            for (int i = holding.holds.size() - 1; i >= 0; i--) {
                Hold hold = holding.holds.get(i);
                if (hold == own || !hold.closeable) {
                    return hold;
                }
            }
            int count = holding.holds.size();
            return own != null || count == 0 ? null : holding.holds.get(count - 1);
        }
    }

    int count(String name) {
        Holding holding = byOwner.get(Owner.current(name));
        if (holding == null) {
            return 0;
        }
        synchronized (holding) {
            return holding.holds.size();
        }
    }
}
