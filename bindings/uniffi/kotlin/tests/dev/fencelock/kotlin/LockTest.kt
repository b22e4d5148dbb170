package dev.fencelock.kotlin

import dev.fencelock.kotlin.ffi.failForTest
import java.nio.file.Path
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicBoolean
import kotlin.coroutines.CoroutineContext
import kotlin.random.Random
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.isActive
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.supervisorScope
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource

/** The guarantees, as Kotlin sees them. */
class LockTest {
    companion object {
        @TempDir
        @JvmStatic
        lateinit var directory: Path
    }

    private suspend fun with(backend: String, work: suspend (Fencelock) -> Unit) =
        connected(url(backend, directory), work)

    @ParameterizedTest
    @ValueSource(strings = ["memory", "file", "redis"])
    fun g1FiftyCoroutinesLoseNoIncrement(backend: String) = test {
        with(backend) { client ->
            val lock = client.lock("a")
            var counter = 0
            var last = 0uL
            coroutineScope {
                repeat(50) {
                    launch {
                        repeat(20) {
                            lock.withLock { lease ->
                                assertTrue(lease.token > last)
                                last = lease.token
                                val seen = counter
                                if (it % 5 == 0) delay(Duration.ZERO)
                                counter = seen + 1
                            }
                        }
                    }
                }
            }
            assertEquals(1000, counter)
            untilFree(client, "a")
        }
    }

    @Test
    fun g2LostIsToldAtTheDeadlineAndIsFinal() = test {
        with("memory") { client ->
            val lease = client.lock("a", ttl = 200.milliseconds, renew = false).acquire()
            assertTrue(lease.isHeld)
            assertTrue(lease.remaining > Duration.ZERO)
            lease.check()
            assertTrue(lease.lost())
            assertTrue(lease.isLost)
            assertFalse(lease.isHeld)
            assertEquals(Duration.ZERO, lease.remaining)
            assertFails<LockLostException> { lease.check() }
            assertFails<LockLostException> { lease.renew() }
            assertFails<LockLostException> { lease.release() }
            assertFails<LockLostException> { lease.close() }
        }
    }

    @Test
    fun aReleasedLeaseIsNotLost() = test {
        with("memory") { client ->
            val lease = client.lock("a").acquire()
            val end = async { lease.lost() }
            lease.release()
            assertFalse(end.await())
            lease.release()
            lease.close()
            assertFalse(lease.isLost)
            assertFails<LockLostException> { lease.check() }
        }
    }

    @Test
    fun g2ARenewalSetsAFullTtl() = test {
        with("memory") { client ->
            val lease = client.lock("a", ttl = 5.seconds, renew = false).acquire()
            until { lease.remaining < 4.seconds }
            lease.renew()
            assertTrue(lease.remaining > 4.seconds)
            lease.release()
        }
    }

    @ParameterizedTest
    @ValueSource(strings = ["memory", "file", "redis"])
    fun g5TryAndTimeoutsDoNotQueue(backend: String) = test {
        with(backend) { client ->
            val lock = client.lock("a")
            lock.acquire(Duration.ZERO).use {
                assertNull(lock.tryAcquire())
                assertFails<LockTimeoutException> { lock.acquire(Duration.ZERO) }
                val start = TimeSource.Monotonic.markNow()
                val error = assertFails<LockTimeoutException> { lock.acquire(200.milliseconds) }
                assertEquals("TIMEOUT", error.code)
                assertTrue(start.elapsedNow() >= 200.milliseconds)
                assertWithin(250.milliseconds, start.elapsedNow())
                untilQueued(client, "a", 0)
            }
            assertNotNull(lock.tryAcquire())
        }
    }

    @ParameterizedTest
    @ValueSource(strings = ["memory", "file", "redis"])
    fun g7CoroutinesCancelledAtRandomMomentsLeaveNothingBehind(backend: String) = test {
        with(backend) { client ->
            val lock = client.lock("a")
            val random = Random(1)
            var granted = 0
            repeat(300) {
                val coroutine = launch {
                    lock.acquire().release()
                    granted++
                }
                val micros = random.nextLong(0, 1500)
                val start = System.nanoTime()
                while (System.nanoTime() - start < micros * 1000) Thread.onSpinWait()
                coroutine.cancelAndJoin()
            }
            assertTrue(granted < 300, "all were too fast to be cancelled")
            untilFree(client, "a")
            assertEquals(emptyList<LockInfo>(), client.list())
        }
    }

    @Test
    fun g7ACancelledWaiterLeavesTheQueue() = test {
        with("redis") { client ->
            val lock = client.lock("a")
            val lease = lock.acquire()
            val waiter = launch { lock.acquire() }
            untilQueued(client, "a", 1)
            waiter.cancelAndJoin()
            untilQueued(client, "a", 0)
            assertNull(withTimeoutOrNull(50.milliseconds) { lock.acquire() })
            lease.release()
            untilFree(client, "a")
        }
    }

    @Test
    fun g7AGrantThatArrivesWithTheCancellationIsReleased() = test {
        with("memory") { client ->
            val steps = LinkedBlockingQueue<Runnable>()
            val byHand = object : CoroutineDispatcher() {
                override fun dispatch(context: CoroutineContext, block: Runnable) = steps.put(block)
            }
            val lease = client.lock("a").acquire()
            val waiter = launch(byHand) { client.lock("a").acquire() }
            steps.take().run()
            untilQueued(client, "a", 1)
            lease.release()
            val grant = steps.take()
            assertEquals(LockInfo.State.HELD, client.inspect("a").state)
            waiter.cancel()
            grant.run()
            while (!waiter.isCompleted) steps.poll(2, TimeUnit.MILLISECONDS)?.run()
            assertTrue(waiter.isCancelled)
            untilFree(client, "a")
        }
    }

    /** uniffi itself forgets the result of a call that is cancelled when it has just ended. */
    @Test
    fun g7AGrantThatNobodyClaimsIsReleased() = test {
        with("memory") { client ->
            val raw = client.client.lock("a", dev.fencelock.kotlin.ffi.LockOptions(null, true, null, null))
            val attempt = raw.acquire(null)
            assertTrue(attempt.granted())
            assertEquals(LockInfo.State.HELD, client.inspect("a").state)
            attempt.destroy()
            untilFree(client, "a")
            val cancelled = raw.acquire(null)
            assertTrue(cancelled.granted())
            cancelled.cancel()
            assertNull(cancelled.claim())
            untilFree(client, "a")
        }
    }

    @Test
    fun g7AnExplicitCancelEndsTheWait() = test {
        with("memory") { client ->
            val lease = client.lock("a").acquire()
            val attempt = client.client
                .lock("a", dev.fencelock.kotlin.ffi.LockOptions(null, true, null, null)).acquire(null)
            val wait = async { calling { runCatching { attempt.granted() } } }
            untilQueued(client, "a", 1)
            attempt.cancel()
            val error = wait.await().exceptionOrNull()
            assertTrue(error is dev.fencelock.kotlin.ffi.FencelockException.Cancelled, "$error")
            untilQueued(client, "a", 0)
            lease.release()
        }
    }

    @Test
    fun g7AnUnreachableLeaseStaysHeldUntilItsClientIsClosed() = test {
        val url = url("redis", directory)
        connected(url) { other ->
            val client = Fencelock.connect(url)
            forget(client)
            collectForLongerThanATtl()
            assertEquals(LockInfo.State.HELD, other.inspect("a").state)
            client.shutdown()
            untilFree(other, "a")
        }
    }

    @Test
    fun g7AnUnreachableLeaseStaysHeldAlsoWithItsClient() = test {
        val url = url("redis", directory)
        connected(url) { other ->
            forget(Fencelock.connect(url))
            collectForLongerThanATtl()
            assertEquals(LockInfo.State.HELD, other.inspect("a").state)
            assertTrue(other.forceRelease("a"))
        }
    }

    private suspend fun forget(client: Fencelock) {
        client.lock("a", ttl = 1500.milliseconds).acquire()
    }

    private suspend fun collectForLongerThanATtl() {
        repeat(40) {
            System.gc()
            delay(50.milliseconds)
        }
    }

    @Test
    fun g7ReleaseGoesOnInACancelledCoroutine() = test {
        with("redis") { client ->
            val held = CompletableDeferred<Unit>()
            val coroutine = launch {
                client.lock("a").withLock {
                    held.complete(Unit)
                    awaitCancellation()
                }
            }
            held.await()
            coroutine.cancelAndJoin()
            // Not only soon: when the coroutine has ended, it is done.
            assertEquals(LockInfo.State.FREE, client.inspect("a").state)
        }
    }

    @Test
    fun withLockCancelsTheBodyWhenTheLeaseIsLost() = test {
        with("redis") { client ->
            var cancelled = false
            val error = assertFails<LockLostException> {
                client.lock("a", ttl = 1500.milliseconds).withLock {
                    assertTrue(client.forceRelease("a"))
                    try {
                        awaitCancellation()
                    } catch (e: CancellationException) {
                        cancelled = true
                        throw e
                    }
                }
            }
            assertTrue(cancelled)
            assertTrue("\"a\"" in error.message!!, error.message)
            untilFree(client, "a")
        }
    }

    @Test
    fun withLockCancelsABodyOnADispatcherWithoutThreads() = test {
        with("memory") { client ->
            val lock = client.lock("a", ttl = 300.milliseconds, renew = false)
            val start = System.nanoTime()
            assertFails<LockLostException> {
                withContext(Dispatchers.Unconfined) {
                    lock.withLock {
                        val body = currentCoroutineContext()
                        while (body.isActive && System.nanoTime() - start < 10_000_000_000) Thread.onSpinWait()
                    }
                }
            }
            assertTrue(System.nanoTime() - start < 5_000_000_000)
        }
    }

    /** On one thread, with more coroutines than a stack could hold if each ran the next one. */
    @Test
    fun closeRunsNoOtherCoroutine() {
        runBlocking {
            with("memory") { client ->
                val closing = AtomicBoolean()
                coroutineScope {
                    repeat(2000) { number ->
                        launch {
                            val lease = client.lock("$number").acquire()
                            delay(1.milliseconds)
                            assertTrue(closing.compareAndSet(false, true))
                            lease.close()
                            closing.set(false)
                        }
                    }
                }
            }
        }
    }

    @Test
    fun withLockThrowsWhatTheBodyThrowsAndAddsTheLoss() = test {
        with("memory") { client ->
            val lock = client.lock("a", ttl = 100.milliseconds, renew = false)
            val ours = IllegalStateException("of the body")
            val lost = assertFails<IllegalStateException> {
                lock.withLock { lease ->
                    while (lease.isHeld) Thread.sleep(5)
                    throw ours
                }
            }
            assertEquals("of the body", lost.message)
            assertTrue((lost.suppressed.toList() + (lost.cause?.suppressed?.toList() ?: listOf()))
                .any { it is LockLostException })
            val held = assertFails<IllegalStateException> { client.lock("b").withLock { throw ours } }
            assertEquals("of the body", held.message)
            untilFree(client, "b")
            // A body that took no notice of the loss has no result either.
            assertFails<LockLostException> {
                lock.withLock { lease -> while (lease.isHeld) Thread.sleep(5) }
            }
        }
    }

    /** Leaving a block: a silent server is no error, the loss is one; an explicit release says what it is. */
    @Test
    fun withLockNeverFailsForASilentServer() = test {
        RedisServer(directory).started().use { server ->
            val client = Fencelock.connect(server.url, requestTimeout = 700.milliseconds)
            val released = client.lock("released").acquire()
            val closed = client.lock("closed").acquire()
            val lost = client.lock("lost", ttl = 600.milliseconds)
            val result = client.lock("a").withLock {
                assertFails<LockLostException> {
                    lost.withLock { lease ->
                        server.freeze()
                        assertTrue(lease.lost())
                        awaitCancellation()
                    }
                }
                1
            }
            assertEquals(1, result)
            closed.close()
            assertFails<UnavailableException> { released.release() }
            assertFails<UnavailableException> { client.inspect("a") }
            client.shutdown()
        }
    }

    @Test
    fun withLockGivesTheResultAndNests() = test {
        with("memory") { client ->
            val result = client.lock("a").withLock(5.seconds) { outer ->
                client.lock("b").withLock { inner -> listOf(outer.isHeld, inner.isHeld) }
            }
            assertEquals(listOf(true, true), result)
            val error = assertFails<LockLostException> {
                client.lock("a", ttl = 150.milliseconds, renew = false).withLock {
                    client.lock("b").withLock { awaitCancellation() }
                }
            }
            assertTrue("\"a\"" in error.message!!, error.message)
            untilFree(client, "b")
        }
    }

    @Test
    fun g10WhatIsNotAllowedIsRefusedBeforeAnyIO() = test {
        with("memory") { client ->
            for (name in listOf("", "~fl", "a\u0000b", "x".repeat(1025), "\ud800")) {
                assertFails<InvalidArgumentException> { client.lock(name) }
            }
            for (ttl in listOf(99.milliseconds, 25.seconds * 3600, (-1).seconds, Duration.INFINITE)) {
                assertFails<InvalidArgumentException> { client.lock("a", ttl = ttl) }
            }
            for (limit in listOf((-1).milliseconds, Duration.INFINITE)) {
                assertFails<InvalidArgumentException> { client.lock("a").acquire(limit) }
            }
            assertFails<InvalidArgumentException> { client.lock("a", maxHold = 1.seconds) }
            assertFails<InvalidArgumentException> { client.inspect("") }
        }
        val error = assertFails<InvalidArgumentException> { Fencelock.connect() }
        assertTrue("file:" in error.message!!, error.message)
        assertFails<InvalidArgumentException> { Fencelock.connect("memory:", requestTimeout = Duration.ZERO) }
        assertFails<InvalidArgumentException> { Fencelock.connect("zookeeper://127.0.0.1:1/", nodeLayout = "x") }
    }

    @Test
    fun errorsAllHaveAClassOfTheirOwn() {
        val codes = mutableListOf<String>()
        while (true) {
            try {
                failForTest(codes.size.toUInt())
                break
            } catch (error: dev.fencelock.kotlin.ffi.FencelockException) {
                val ours = ofOurs(error)
                // The text is the code of the core.
                assertEquals(ours.code, ours.message!!.substringBefore(':'))
                codes += ours.code
            }
        }
        assertEquals(FencelockException::class.java.permittedSubclasses.size, codes.toSet().size)
        assertEquals(codes.size, codes.toSet().size)
    }

    @Test
    fun aPanicIsAnErrorAndNothingMore() = test {
        with("memory") { client ->
            val error = assertFails<InternalException> { calling { client.client.panicForTest() } }
            assertTrue("asked for by a test" in error.message!!, error.message)
            client.lock("a").withLock { }
        }
    }

    @Test
    fun closeDuringCallsEndsThem() = test {
        val url = url("redis", directory)
        val client = Fencelock.connect(url)
        val lease = client.lock("a").acquire()
        val kept = client.lock("b").acquire()
        val ends = List(20) { async { runCatching { client.lock("a").acquire() }.exceptionOrNull() } }
        untilQueued(client, "a", 20)
        client.shutdown()
        for (end in ends) {
            val error = end.await()
            assertTrue(error is ClosedException, "$error")
        }
        client.shutdown()
        client.close()
        assertFalse(lease.isHeld)
        kept.close()
        assertFails<ClosedException> { client.lock("a").acquire() }
        assertFails<ClosedException> { client.inspect("a") }
        connected(url) { other -> assertEquals(emptyList<LockInfo>(), other.list()) }
    }

    @Test
    fun g6ForceReleaseAndInspectTellTheTruth() = test {
        with("redis") { client ->
            val lease = client.lock("a", metadata = "of a test").acquire()
            val info = client.inspect("a")
            assertEquals(LockInfo.State.HELD, info.state)
            assertEquals(lease.owner, info.owner)
            assertEquals(lease.token, info.token)
            assertEquals("of a test", info.metadata)
            assertEquals(listOf("a"), client.list().map { it.name })
            assertTrue(client.forceRelease("a"))
            assertFalse(client.forceRelease("a"))
            assertFails<LockLostException> { lease.release() }
        }
    }

    /** The watchdog is native: what the JVM does with its threads does not matter to it. */
    @Test
    fun g4ABusyDispatcherDoesNotLoseALease() = test {
        with("redis") { client ->
            client.lock("a", ttl = 1500.milliseconds).withLock { lease ->
                val busy = List(THREADS * 2) {
                    launch {
                        val start = System.nanoTime()
                        while (System.nanoTime() - start < 1_900_000_000) Thread.onSpinWait()
                    }
                }
                busy.joinAll()
                lease.check()
            }
        }
    }

    @Test
    fun aLeaseMayBeReleasedByAnotherCoroutine() = test {
        with("memory") { client ->
            val lease = client.lock("a").acquire()
            supervisorScope { launch { lease.release() }.join() }
            assertSame(LockInfo.State.FREE, client.inspect("a").state)
        }
    }
}
