package dev.fencelock.kotlin

import java.io.BufferedInputStream
import java.io.ByteArrayOutputStream
import java.io.File
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.net.URI
import java.nio.file.Path
import java.util.UUID
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue

/** Until something that should happen at once counts as not happening. Machines are busy. */
internal val LIMIT = 20.seconds

internal val BACKENDS = listOf("memory", "file", "redis")

/** The URL of the server that the environment names. */
internal fun server(backend: String): String {
    val variable = "FENCELOCK_TEST_${backend.uppercase()}_URL"
    val url = System.getenv(variable)
    assertTrue(!url.isNullOrEmpty()) { "$variable is not set: tests/services/run all …" }
    return url
}

internal fun withQuery(url: String, query: String): String = url + (if ('?' in url) "&" else "?") + query

/** A URL with an empty space of its own. */
internal fun url(backend: String, directory: Path): String {
    val id = UUID.randomUUID()
    return when (backend) {
        "memory" -> "memory:$id"
        "file" -> "file://${directory.resolve("locks-$id")}"
        "redis" -> withQuery(server(backend), "fl.prefix=kotlin-$id:")
        else -> error(backend)
    }
}

/** A test on threads of its own, which no other test keeps busy. */
internal fun test(work: suspend CoroutineScope.() -> Unit) {
    Executors.newFixedThreadPool(THREADS).asCoroutineDispatcher().use { threads ->
        runBlocking(threads) { work() }
    }
}

internal const val THREADS = 4

internal suspend fun <T> connected(url: String, work: suspend (Fencelock) -> T): T {
    val client = Fencelock.connect(url)
    try {
        return work(client)
    } finally {
        client.shutdown()
    }
}

/** Returns as soon as the condition is true. */
internal suspend fun until(condition: suspend () -> Boolean) {
    val start = TimeSource.Monotonic.markNow()
    while (!condition()) {
        assertTrue(start.elapsedNow() < LIMIT, "the expected state never came")
        delay(2.milliseconds)
    }
}

internal suspend fun untilQueued(client: Fencelock, name: String, count: Int) =
    until { client.inspect(name).queue.size == count }

internal suspend fun untilFree(client: Fencelock, name: String) = until {
    val info = client.inspect(name)
    info.state == LockInfo.State.FREE && info.queue.isEmpty()
}

internal inline fun <reified T : Throwable> assertFails(work: () -> Unit): T {
    try {
        work()
    } catch (error: Throwable) {
        assertTrue(error is T) { "not the expected error: ${error.stackTraceToString()}" }
        return error as T
    }
    throw AssertionError("it succeeded, and not with ${T::class.simpleName}")
}

/** Sends one command to a Redis server; its answer in the form of the protocol. */
internal fun redis(url: String, vararg words: String): String {
    val server = URI.create(url)
    Socket(server.host, if (server.port < 0) 6379 else server.port).use { socket ->
        val request = ByteArrayOutputStream()
        request.writeBytes("*${words.size}\r\n".toByteArray())
        for (word in words) {
            val bytes = word.toByteArray()
            request.writeBytes("$${bytes.size}\r\n".toByteArray() + bytes + "\r\n".toByteArray())
        }
        socket.getOutputStream().write(request.toByteArray())
        val line = BufferedInputStream(socket.getInputStream()).bufferedReader().readLine()
        assertTrue(!line.startsWith("-"), line)
        return line
    }
}

/** A Redis server of one test, which may stop it. */
internal class RedisServer(directory: Path) : AutoCloseable {
    private val port = ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { it.localPort }
    val url = "redis://127.0.0.1:$port/"
    private val process: Process

    init {
        val given = System.getenv("FENCELOCK_TEST_REDIS_SERVER")
        val binary = if (given.isNullOrEmpty()) "redis-server" else given
        process = ProcessBuilder(
            binary, "--port", "$port", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
        ).directory(directory.toFile()).redirectOutput(ProcessBuilder.Redirect.DISCARD).start()
    }

    suspend fun started() = apply {
        until {
            assertTrue(process.isAlive, "redis-server ended at once")
            runCatching { Socket(InetAddress.getLoopbackAddress(), port).close() }.isSuccess
        }
    }

    /** It answers nothing from here on: on a busy machine, it could do so before it stops. */
    fun freeze() {
        assertEquals(0, ProcessBuilder("kill", "-STOP", "${process.pid()}").start().waitFor())
        while (!hasStopped()) Thread.onSpinWait()
    }

    private fun hasStopped() = File("/proc/${process.pid()}/task").listFiles()!!.all { task ->
        File(task, "stat").readText().substringAfterLast(") ").startsWith("T")
    }

    override fun close() {
        process.destroyForcibly().waitFor()
    }
}

/** A JVM of its own that runs one of the programs of [Programs]. */
internal class Program(vararg arguments: String) : AutoCloseable {
    val process: Process

    init {
        val java = System.getProperty("java.home") + File.separator + "bin" + File.separator + "java"
        val command = listOf(
            // It starts faster so.
            java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx48m", "--enable-native-access=ALL-UNNAMED",
            "-cp", System.getProperty("java.class.path"), "dev.fencelock.kotlin.Programs",
        )
        val builder = ProcessBuilder(command + arguments)
        builder.environment().remove("FENCELOCK_URL")
        process = builder.start()
    }

    fun line(): String? = output.readLine()

    fun signal(name: String) {
        val kill = ProcessBuilder("kill", "-$name", process.pid().toString()).start()
        assertEquals(0, kill.waitFor())
    }

    /** Its last output, once it has ended quietly with this code. */
    fun end(code: Int): String {
        val rest = output.readText().trimEnd()
        val errors = process.errorStream.bufferedReader().readText()
        assertTrue(process.waitFor(LIMIT.inWholeSeconds, TimeUnit.SECONDS), "it hangs")
        assertEquals("", errors)
        assertEquals(code, process.exitValue())
        return rest
    }

    private val output = process.inputStream.bufferedReader()

    override fun close() {
        process.destroyForcibly()
    }
}

internal fun assertWithin(limit: Duration, found: Duration) {
    // How much later than it should a busy machine may let something happen.
    assertTrue(found < limit + 3.seconds) { "$found is more than $limit" }
}
