package dev.fencelock.kotlin

import com.fasterxml.jackson.databind.JsonNode
import java.nio.file.Path
import java.util.UUID
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.nanoseconds
import kotlin.time.TimeMark
import kotlin.time.TimeSource
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.job
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assertions.fail

/** What the steps of one case have made so far, by name; and the steps themselves. */
internal class World(backend: String, directory: Path, scope: CoroutineScope) {
    private class Word(val keys: List<String>, val step: suspend World.(JsonNode) -> Unit)

    companion object {
        private fun word(vararg keys: String, step: suspend World.(JsonNode) -> Unit) =
            Word(keys.toList() + listOf("do", "error", "says", "hides"), step)

        private val STEPS = mapOf(
            "connect" to word("as", "url", "query", "credentials", "options") { connect(it) },
            "close" to word("client") { client(it).shutdown() },
            "lock" to word("client", "name", "as", "ttl_ms", "renew", "max_hold_ms", "metadata") { lock(it) },
            "acquire" to word("lock", "as", "timeout_ms") { keep(it.name, lockOf(it).acquire(it.limit)) },
            "try_acquire" to word("lock", "as", "expect") { step ->
                val lease = lockOf(step).tryAcquire()
                lease?.let { keep(step.name, it) }
                expect(step, lease != null)
            },
            "start_acquire" to word("lock", "as", "timeout_ms") { step ->
                // Begun when this step ends, as elsewhere.
                waiting[step.name] = starts.async(start = CoroutineStart.UNDISPATCHED) {
                    lockOf(step).acquire(step.limit)
                }
            },
            "await_acquire" to word("lease") { step ->
                val name = step["lease"].asText()
                keep(name, waiting.remove(name)!!.await())
            },
            "cancel_acquire" to word("lease") { step ->
                val wait = waiting.remove(step["lease"].asText())!!
                assertTrue(wait.isActive, "it had ended")
                wait.cancelAndJoin()
            },
            "release" to word("lease") { lease(it).release() },
            "drop" to word("lease") { fail<Unit>("a collector decides when; no capability") },
            "renew" to word("lease") { lease(it).renew() },
            "check" to word("lease") { lease(it).check() },
            "held" to word("lease", "expect") { expect(it, lease(it).isHeld) },
            "is_lost" to word("lease", "expect") { expect(it, lease(it).isLost) },
            "wait_lost" to word("lease", "within_ms", "expect") { step ->
                val limit = if (step.has("within_ms")) time(step["within_ms"]) else LIMIT
                expect(step, withTimeoutOrNull(limit) { lease(step).lost() } ?: false)
            },
            "remaining" to word("lease", "at_least_ms", "at_most_ms") {
                within(lease(it).remaining, it["at_least_ms"], it["at_most_ms"])
            },
            "token" to word("lease", "greater_than") { step ->
                val ours = tokens.getValue(step["lease"].asText())
                step["greater_than"].forEach { assertTrue(ours > tokens.getValue(it.asText()), it.asText()) }
            },
            "inspect" to word("client", "name", "shows") { judgeInfo(it.path("shows"), look(it)) },
            "wait_until" to word("client", "name", "shows") { waitUntil(it) },
            "list" to word("client", "names") { step ->
                val byBytes = Comparator<String> { a, b ->
                    java.util.Arrays.compareUnsigned(a.toByteArray(), b.toByteArray())
                }
                val found = client(step).list().map { it.name }.sortedWith(byBytes)
                assertEquals(step.path("names").map(Cases::text), found)
            },
            "force_release" to word("client", "name", "expect") {
                expect(it, client(it).forceRelease(Cases.text(it["name"])))
            },
            "sleep" to word("ms") { delay(time(it["ms"])) },
            "stopwatch" to word("as") { stopwatches[it.name] = TimeSource.Monotonic.markNow() },
            "elapsed" to word("since", "at_least_ms", "at_most_ms") {
                val found = stopwatches.getValue(it["since"].asText()).elapsedNow()
                within(found, it["at_least_ms"], it["at_most_ms"])
            },
            "redis" to word("command", "name", "arguments") { step ->
                val words = step["arguments"].map(Cases::text).toTypedArray()
                redis(server("redis"), step["command"].asText(), prefix + Cases.text(step["name"]), *words)
            },
        )

        val WORDS: Set<String> get() = STEPS.keys

        private val JsonNode.name: String get() = this["as"].asText()

        private val JsonNode.limit: Duration?
            get() = if (hasNonNull("timeout_ms")) time(this["timeout_ms"]) else null

        private fun time(millis: JsonNode): Duration {
            if (millis.isTextual) {
                assertEquals("max", millis.asText(), "no time that Kotlin has")
                // The greatest finite one.
                return (Long.MAX_VALUE / 2 - 1).milliseconds
            }
            val nanos = millis.decimalValue().movePointRight(6)
            return if (nanos.precision() <= 18) nanos.longValueExact().nanoseconds else nanos.toDouble().nanoseconds
        }

        private fun within(found: Duration, least: JsonNode, most: JsonNode) =
            assertTrue(found >= time(least) && found <= time(most)) { "$found is not $least to $most ms" }

        private fun expect(step: JsonNode, found: Boolean) {
            if (!step.has("error")) assertEquals(step["expect"].asBoolean(), found)
        }
    }

    private val prefix = "conformance-${UUID.randomUUID()}:"
    private val url =
        if (backend == "redis") withQuery(server("redis"), "fl.prefix=$prefix") else url(backend, directory)
    private val clients = mutableMapOf<String, Fencelock>()
    private val allClients = mutableListOf<Fencelock>()
    private val locks = mutableMapOf<String, Lock>()
    private val leases = mutableMapOf<String, Lease>()
    private val tokens = mutableMapOf<String, ULong>()
    private val waiting = mutableMapOf<String, Deferred<Lease>>()
    private val stopwatches = mutableMapOf<String, TimeMark>()

    /** What was started and fails ends nothing else. */
    private val starts = CoroutineScope(scope.coroutineContext + SupervisorJob(scope.coroutineContext.job))

    suspend fun close() {
        starts.coroutineContext.job.cancelAndJoin()
        allClients.forEach { it.shutdown() }
    }

    /** Executes a step and judges how it ended. */
    suspend fun judged(step: JsonNode) {
        val word = requireNotNull(STEPS[step["do"].asText()]) { "an unknown word" }
        Cases.only(step, *word.keys.toTypedArray())
        try {
            word.step(this, step)
        } catch (error: FencelockException) {
            if (!step.has("error")) throw error
            judgeError(step, error)
            return
        }
        assertTrue(!step.has("error"), "it succeeded")
    }

    private fun client(step: JsonNode) = clients.getValue(step["client"].asText())

    private fun lease(step: JsonNode) = leases.getValue(step["lease"].asText())

    private fun lockOf(step: JsonNode) = locks.getValue(step["lock"].asText())

    private fun keep(name: String, lease: Lease) {
        tokens[name] = lease.token
        leases[name] = lease
    }

    private suspend fun connect(step: JsonNode) {
        val given = step.path("options")
        Cases.only(
            given, "connect_timeout_ms", "request_timeout_ms", "prefix", "collection", "root", "node_layout",
        )
        var to: String? = null
        if (!step.has("url") || !step["url"].isNull) {
            to = if (step.has("url")) Cases.text(step["url"]) else url
            if (step.has("query")) to = withQuery(to, Cases.text(step["query"]))
            if (step.has("credentials")) to = to.replaceFirst("://", "://${step["credentials"].asText()}@")
        }
        val client = Fencelock.connect(
            to,
            connectTimeout = given["connect_timeout_ms"]?.let(::time),
            requestTimeout = given["request_timeout_ms"]?.let(::time),
            prefix = given["prefix"]?.let(Cases::text),
            collection = given["collection"]?.let(Cases::text),
            root = given["root"]?.let(Cases::text),
            nodeLayout = given["node_layout"]?.let(Cases::text),
        )
        allClients += client
        clients[step.name] = client
    }

    private fun lock(step: JsonNode) {
        locks[step.name] = client(step).lock(
            Cases.text(step["name"]),
            ttl = step["ttl_ms"]?.let(::time),
            renew = step["renew"]?.asBoolean() ?: true,
            maxHold = step["max_hold_ms"]?.let(::time),
            metadata = step["metadata"]?.let(Cases::text),
        )
    }

    private suspend fun look(step: JsonNode): LockInfo {
        val name = Cases.text(step["name"])
        val info = client(step).inspect(name)
        assertEquals(name, info.name)
        return info
    }

    private suspend fun waitUntil(step: JsonNode) {
        val start = TimeSource.Monotonic.markNow()
        while (true) {
            try {
                return judgeInfo(step["shows"], look(step))
            } catch (notYet: AssertionError) {
                if (start.elapsedNow() > LIMIT) throw notYet
            }
            delay(5.milliseconds)
        }
    }

    // Judgement.

    private fun judgeError(step: JsonNode, error: FencelockException) {
        assertEquals(step["error"].asText(), error.code, error.message)
        for (part in step.path("says")) {
            assertTrue(Cases.text(part) in error.message!!, error.message)
        }
        for (part in step.path("hides")) {
            val shown = generateSequence<Throwable>(error) { it.cause }
            assertTrue(shown.none { Cases.text(part) in it.toString() }, "it shows what it must not")
        }
    }

    private fun judgeInfo(shows: JsonNode, info: LockInfo) {
        for ((key, wanted) in shows.properties()) judgeInfo(key, wanted, info)
    }

    private fun judgeInfo(key: String, wanted: JsonNode, info: LockInfo) {
        val id = Regex("[0-9a-f]{32}")
        when (key) {
            "state" -> assertEquals(wanted.asText(), info.state.name.lowercase())
            "owner" -> when {
                wanted.isNull -> assertNull(info.owner)
                wanted.asText() == "id" -> assertTrue(id.matches(info.owner!!), info.owner)
                else -> assertEquals(wanted.asText(), info.owner)
            }
            "token" -> assertEquals(if (wanted.isNull) null else tokens.getValue(wanted.asText()), info.token)
            "metadata" -> assertEquals(if (wanted.isNull) null else Cases.text(wanted), info.metadata)
            "metadata_says" -> wanted.forEach { assertTrue(it.asText() in info.metadata!!, info.metadata) }
            "held_ms" -> judgeTime(wanted, info.held)
            "ttl_left_ms" -> judgeTime(wanted, info.ttlLeft)
            "queue_length" -> assertEquals(wanted.asInt(), info.queue.size)
            "queue_metadata" -> assertEquals(wanted.map(Cases::text), info.queue.map { it.metadata })
            "queue_owners" -> {
                assertEquals("ids", wanted.asText())
                val owners = (info.queue.map { it.owner } + info.owner!!).toSet()
                assertEquals(info.queue.size + 1, owners.size)
                assertTrue(owners.all(id::matches))
            }
            "queue_waiting_ms" -> info.queue.forEach { judgeTime(wanted, it.waiting) }
            else -> fail<Unit>("unknown key $key")
        }
    }

    private fun judgeTime(wanted: JsonNode, found: Duration?) {
        if (wanted.isNull) assertNull(found) else within(requireNotNull(found), wanted[0], wanted[1])
    }
}
