/**
 * A distributed lock with a watchdog that renews, fencing tokens, a lost signal and hand-off without
 * polling, kept in Redis, MongoDB, ZooKeeper, files or memory.
 *
 * <p>Begin with {@link dev.fencelock.Fencelock#connect(String)}.
 */
package dev.fencelock;
