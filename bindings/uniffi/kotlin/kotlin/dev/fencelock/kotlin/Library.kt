package dev.fencelock.kotlin

import com.sun.jna.Callback
import com.sun.jna.CallbackThreadInitializer
import com.sun.jna.Native
import dev.fencelock.kotlin.ffi.Logger
import dev.fencelock.kotlin.ffi.Severity
import dev.fencelock.kotlin.ffi.prepare
import dev.fencelock.kotlin.ffi.uniffiCallbackInterfaceLogger
import dev.fencelock.kotlin.ffi.uniffiRustFutureContinuationCallbackImpl
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ExecutionException
import kotlin.coroutines.Continuation
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine
import kotlin.time.Duration
import kotlin.time.DurationUnit

internal object Library {
    val log: System.Logger = System.getLogger("dev.fencelock")

    init {
        // A native thread that calls us must not keep the JVM from its end. It stays attached, since it
        // will call again; it detaches when it ends.
        for (callback in listOf<Callback>(
            uniffiRustFutureContinuationCallbackImpl,
            uniffiCallbackInterfaceLogger.log,
        )) {
            Native.setCallbackThreadInitializer(callback, CallbackThreadInitializer(true, false, "fencelock"))
        }
        prepare(
            object : Logger {
                override fun log(severity: Severity, message: String) {
                    val level = when (severity) {
                        Severity.WARNING -> System.Logger.Level.WARNING
                        Severity.ERROR -> System.Logger.Level.ERROR
                    }
                    try {
                        log.log(level, message)
                    } catch (broken: Throwable) {
                        System.err.println("fencelock: $message (the log failed: $broken)")
                    }
                }
            },
        )
    }

    /** Loads the library, once. */
    fun load() = Unit
}

/** As the native library counts. What is no time is refused there. */
internal fun Duration.seconds(): Double = toDouble(DurationUnit.SECONDS)

/** A text that has no UTF-8 must not reach the native library, and must not become another text. */
internal fun String.checked(what: String): String {
    try {
        encodeToByteArray(throwOnInvalidSequence = true)
    } catch (_: CharacterCodingException) {
        throw InvalidArgumentException("$what is no Unicode: it has half a surrogate pair; allowed is text that has UTF-8")
    }
    return this
}

/**
 * Clean-up that blocks. A thread that is interrupted goes on, and keeps the interrupt; the clean-up goes
 * on in the background.
 */
internal fun blocking(cleanUp: suspend () -> Unit) {
    // Not runBlocking: on a thread that has an event loop, it would run other coroutines in here.
    val done = CompletableFuture<Unit>()
    cleanUp.startCoroutine(
        Continuation(EmptyCoroutineContext) { it.fold(done::complete, done::completeExceptionally) },
    )
    try {
        done.get()
    } catch (_: InterruptedException) {
        Thread.currentThread().interrupt()
    } catch (failed: ExecutionException) {
        throw failed.cause!!
    }
}
