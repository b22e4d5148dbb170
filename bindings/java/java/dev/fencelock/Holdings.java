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
        private boolean givenBack;

        private Hold(Owner owner, Holding holding) {
            this.owner = owner;
            this.holding = holding;
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

        /** Whether the current thread has it and has not given it back. */
        boolean isOurs() {
            return owner.thread == Thread.currentThread() && !isGivenBack();
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
    Hold again(String name) {
        Owner owner = Owner.current(name);
        Holding holding = byOwner.get(owner);
        if (holding == null) {
            return null;
        }
        holding.lease.check();
        synchronized (holding) {
            // Another thread may have closed the last hold just now.
            return holding.holds.isEmpty() ? null : new Hold(owner, holding);
        }
    }

    /** The first hold of the current thread on a new lease. */
    Hold first(String name, Lease lease) {
        Owner owner = Owner.current(name);
        Holding holding = new Holding(lease);
        synchronized (holding) {
            Hold hold = new Hold(owner, holding);
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
