package dev.fencelock.kotlin

import java.nio.file.Path
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.CsvSource

/** What needs a JVM of its own. The end of one with something in flight: quick, quiet, code 0, and leases are released. */
class ExitTest {
    companion object {
        @TempDir
        @JvmStatic
        lateinit var directory: Path
    }

    @ParameterizedTest
    @CsvSource("held, redis", "waits, redis", "working, redis", "exit, redis", "waits, file")
    fun g7TheJvmExitsByItselfAndReleases(program: String, backend: String) = test {
        val url = url(backend, directory)
        connected(url) { client ->
            Program(program, url).use { jvm ->
                val output = jvm.end(0)
                val took = System.currentTimeMillis() - output.substringAfterLast('\n').toLong()
                // The JVM's own end is a part of it.
                assertTrue(took < 2000, "$took ms")
                untilFree(client, "a")
                until { client.list().isEmpty() }
            }
        }
    }

    @Test
    fun g7AHookOfTheUserCanStillUnlock() = test {
        Program("hook", url("redis", directory)).use { jvm ->
            assertTrue(jvm.end(0).endsWith("unlocked"))
        }
    }

    @Test
    fun memoryIsFlat() = test {
        Program("turns", "memory:").use { jvm ->
            val (before, after) = jvm.end(0).lines().map(String::toLong)
            // A leak of 1 KiB for each of the turns would be 10,000.
            assertTrue(after - before < 6_000) { "$before KiB, then $after KiB" }
        }
    }

    @Test
    fun g7ASignalReleases() = test {
        val url = url("redis", directory)
        connected(url) { client ->
            Program("sleeping", url).use { jvm ->
                assertEquals("held", jvm.line())
                jvm.signal("TERM")
                jvm.end(128 + 15)
                untilFree(client, "a")
            }
        }
    }
}
