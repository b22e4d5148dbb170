package dev.fencelock.kotlin

import java.io.File
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

/** Programs that [ExitTest] runs in a JVM of their own: program, URL. */
internal object Programs {
    /** So that nothing of them is unreachable by accident. */
    private val kept = mutableListOf<Any>()

    @JvmStatic
    @OptIn(DelicateCoroutinesApi::class)
    fun main(arguments: Array<String>) {
        runBlocking {
            val client = Fencelock.connect(arguments[1])
            kept += client
            val lock = client.lock("a", ttl = 10.seconds)
            val lease = lock.acquire()
            kept += lease
            when (arguments[0]) {
                "held" -> {}
                "waits" -> {
                    repeat(3) { GlobalScope.launch { lock.acquire() } }
                    untilQueued(client, "a", 3)
                }
                "working" -> {
                    repeat(4) {
                        GlobalScope.launch { while (true) client.lock("b/${it % 3}").withLock { } }
                    }
                    delay(100)
                }
                "exit" -> {
                    GlobalScope.launch { lease.lost() }
                    println(System.currentTimeMillis())
                    System.exit(0)
                }
                "hook" -> Runtime.getRuntime().addShutdownHook(
                    Thread {
                        lease.check()
                        lease.close()
                        println("unlocked")
                    },
                )
                "turns" -> {
                    val other = client.lock("b")
                    suspend fun turns(count: Int) = repeat(count) { other.acquire().release() }
                    fun resident() = File("/proc/self/status").useLines { lines ->
                        lines.first { it.startsWith("VmRSS") }.filter(Char::isDigit)
                    }
                    turns(10_000)
                    println(resident())
                    turns(10_000)
                    println(resident())
                    return@runBlocking
                }
                "sleeping" -> {
                    println("held")
                    System.`in`.read()
                }
                else -> error(arguments[0])
            }
            println(System.currentTimeMillis())
        }
    }
}
