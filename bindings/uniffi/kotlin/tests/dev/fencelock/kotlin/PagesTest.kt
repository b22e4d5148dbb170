package dev.fencelock.kotlin

import java.nio.file.Path
import kotlin.io.path.readText
import kotlin.time.Duration.Companion.seconds
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

/** The Kotlin of the README is what stands here, and runs. */
class PagesTest {
    private val tokens = mutableListOf<ULong>()

    private fun update(token: ULong) {
        tokens += token
    }

    @Test
    fun usageRuns() = test {
        /* README */
        val client = Fencelock.connect("redis://127.0.0.1/")
        val lock = client.lock("orders/42", ttl = 10.seconds)

        lock.withLock(timeout = 5.seconds) { lease -> // or LockTimeoutException
            update(lease.token) // the resource refuses tokens that are too old
            lease.check() // throws LockLostException; costs no I/O
        }

        val lease = lock.tryAcquire() // null if somebody else holds it
        if (lease != null) {
            try {
                update(lease.token)
            } finally {
                lease.release()
            }
        }

        client.shutdown()
        /* README ends */
        assertEquals(2, tokens.size)
        assertEquals(tokens.sorted(), tokens)
    }

    /** It stands for the library's, with a server of this run. */
    private object Fencelock {
        suspend fun connect(url: String): dev.fencelock.kotlin.Fencelock {
            assertEquals("redis://127.0.0.1/", url)
            return dev.fencelock.kotlin.Fencelock.connect(url("redis", Path.of("")))
        }
    }

    @Test
    fun usageIsWhatTheReadmeSays() {
        val blocks = Regex("(?ms)^```kotlin\\n(.*?)^```").findAll(Path.of("../README.md").readText())
        val here = Path.of("tests/dev/fencelock/kotlin/PagesTest.kt").readText()
        val ours = here.substringAfter("/* README */\n").substringBefore("        /* README ends */")
        assertEquals(listOf(ours.trimIndent().trim()), blocks.map { it.groupValues[1].trim() }.toList())
    }
}
