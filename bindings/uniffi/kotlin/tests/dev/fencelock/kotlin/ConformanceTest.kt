package dev.fencelock.kotlin

import dev.fencelock.kotlin.ffi.failForTest
import java.nio.file.Path
import kotlin.io.path.readText
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assumptions.abort
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.api.io.TempDir

/** Runs the cases of tests/conformance, one test for each case and backend. */
class ConformanceTest {
    companion object {
        /** What Kotlin's types can express; an infinite time too, but no NaN. */
        private val CAPABILITIES = setOf("signed_time", "sub_ms_time", "nul_in_text", "lone_surrogates")

        @TempDir
        @JvmStatic
        lateinit var directory: Path
    }

    @TestFactory
    fun cases(): List<DynamicTest> = Cases.read().flatMap { found ->
        BACKENDS.filter { found.backends == null || it in found.backends }.map { backend ->
            DynamicTest.dynamicTest("${found.name}[$backend]") { run(found, backend) }
        }
    }

    private fun run(found: Cases.Case, backend: String) = test {
        val lacking = found.needs - CAPABILITIES
        if (lacking.isNotEmpty()) abort<Unit>("needs $lacking")
        assertTrue(System.getenv("FENCELOCK_URL").isNullOrEmpty(), "unset FENCELOCK_URL for these tests")
        val world = World(backend, directory, this)
        try {
            found.steps(CAPABILITIES).forEachIndexed { index, step ->
                try {
                    withTimeout(30.seconds) { world.judged(step) }
                } catch (failure: Throwable) {
                    throw AssertionError("step ${index + 1}: ${step.toString().take(2000)}", failure)
                }
            }
        } finally {
            world.close()
        }
    }

    /** The first column of the first table below a heading of the README. */
    private fun described(heading: String): Set<String> {
        val after = Cases.FOLDER.resolve("README.md").readText().substringAfter("\n## $heading\n")
        val table = Regex("""(?m)(?:^\|.*\n)+""").find(after)!!.value
        return Regex("""(?m)^\| `([^`]+)`""").findAll(table).map { it.groupValues[1] }.toSortedSet()
    }

    /** All values of a key in all steps, whether this runner can execute them or not. */
    private fun ofSteps(key: String): Set<String> =
        Cases.read().flatMap { it.steps(null) }.mapNotNull { it[key]?.asText() }.toSortedSet()

    @Test
    fun formatWords() {
        assertEquals(described("Steps"), ofSteps("do"))
        assertEquals(described("Steps"), World.WORDS.toSortedSet())
    }

    @Test
    fun formatCapabilities() {
        val needed = Cases.read().flatMap { it.needs }.toSet()
        assertEquals(described("Capabilities"), needed.toSortedSet())
        assertTrue(needed.containsAll(CAPABILITIES))
    }

    @Test
    fun formatBackends() {
        val named = BACKENDS + Cases.read().flatMap { it.backends.orEmpty() }
        assertTrue(described("Backends").containsAll(named))
    }

    @Test
    fun formatKinds() {
        val provoked = ofSteps("error")
        val others = described("Errors that no case provokes")
        assertEquals(emptySet<String>(), provoked intersect others)
        val codes = generateSequence(0u) { it + 1u }
            .map { index -> runCatching { failForTest(index) }.exceptionOrNull() }
            .takeWhile { it != null }
            .map { ofOurs(it as dev.fencelock.kotlin.ffi.FencelockException).code }
        assertEquals(codes.toSortedSet(), (provoked + others).toSortedSet())
    }

    @Test
    fun formatNames() {
        val names = Cases.read().map { it.name }
        assertEquals(names.size, names.toSet().size)
    }
}
