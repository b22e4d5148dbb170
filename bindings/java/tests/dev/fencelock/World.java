package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** What the steps of one case have made so far, by name; and the steps themselves. */
final class World implements AutoCloseable {
    @FunctionalInterface
    private interface Step {
        void execute(World world, JsonNode step) throws Exception;
    }

    private record Word(Step step, Set<String> keys) {}

    private static final Map<String, Word> WORDS = new HashMap<>();

    private static void word(String name, Step step, String... keys) {
        WORDS.put(name, new Word(step, Set.of(keys)));
    }

    static {
        word("connect", World::connect, "as", "url", "query", "credentials", "options");
        word("close", (w, s) -> w.client(s).close(), "client");
        word("lock", World::lock, "client", "name", "as", "ttl_ms", "renew", "max_hold_ms", "metadata");
        word("acquire", World::acquire, "lock", "as", "timeout_ms");
        word("try_acquire", World::tryAcquire, "lock", "as", "expect");
        word("start_acquire", World::startAcquire, "lock", "as", "timeout_ms");
        word("await_acquire", World::awaitAcquire, "lease");
        word("cancel_acquire", World::cancelAcquire, "lease");
        word("release", (w, s) -> w.lease(s).release(), "lease");
        word("drop", (w, s) -> fail("a collector decides when; no capability"), "lease");
        word("renew", (w, s) -> w.lease(s).renew(), "lease");
        word("check", (w, s) -> w.lease(s).check(), "lease");
        word("held", (w, s) -> expect(s, w.lease(s).isHeld()), "lease", "expect");
        word("is_lost", (w, s) -> expect(s, w.lease(s).isLost()), "lease", "expect");
        word("wait_lost", World::waitLost, "lease", "within_ms", "expect");
        word("remaining", World::remaining, "lease", "at_least_ms", "at_most_ms");
        word("token", World::token, "lease", "greater_than");
        word("inspect", World::inspect, "client", "name", "shows");
        word("wait_until", World::waitUntil, "client", "name", "shows");
        word("list", World::list, "client", "names");
        word("force_release", World::forceRelease, "client", "name", "expect");
        word("sleep", (w, s) -> Thread.sleep(time(s.get("ms")).toMillis()), "ms");
        word("stopwatch", (w, s) -> w.stopwatches.put(as(s), System.nanoTime()), "as");
        word("elapsed", World::elapsed, "since", "at_least_ms", "at_most_ms");
        word("redis", World::redis, "command", "name", "arguments");
    }

    static Set<String> words() {
        return WORDS.keySet();
    }

    private final String url;
    private final String prefix;
    /** Whether the backend can tell since when and until when a lock is held. */
    private final boolean knowsTimes;
    private final Map<String, Fencelock> clients = new HashMap<>();
    private final List<Fencelock> allClients = new ArrayList<>();
    private final Map<String, RustLock> locks = new HashMap<>();
    private final Map<String, Lease> leases = new HashMap<>();
    private final Map<String, Long> tokens = new HashMap<>();
    private final Map<String, CompletableFuture<Lease>> waiting = new HashMap<>();
    private final Map<String, Long> stopwatches = new HashMap<>();

    World(String backend, Path directory) {
        knowsTimes = !backend.equals("zookeeper");
        prefix = "conformance-" + UUID.randomUUID() + ":";
        url =
                backend.equals("redis")
                        ? Support.withQuery(Support.server("redis"), "fl.prefix=" + prefix)
                        : Support.url(backend, directory);
    }

    @Override
    public void close() {
        allClients.forEach(Fencelock::close);
    }

    /** Executes a step and judges how it ended. */
    void judged(JsonNode step) throws Exception {
        Word word = WORDS.get(step.get("do").asText());
        assertTrue(word != null, "an unknown word");
        Set<String> allowed = new HashSet<>(word.keys);
        allowed.addAll(Set.of("do", "error", "says", "hides"));
        Cases.only(step, allowed);
        try {
            word.step.execute(this, step);
        } catch (FencelockException error) {
            if (!step.has("error")) {
                throw error;
            }
            judgeError(step, error);
            return;
        }
        assertTrue(!step.has("error"), "it succeeded");
    }

    private Fencelock client(JsonNode step) {
        return clients.get(step.get("client").asText());
    }

    private Lease lease(JsonNode step) {
        return leases.get(step.get("lease").asText());
    }

    private static String as(JsonNode step) {
        return step.get("as").asText();
    }

    // Times.

    static final Duration MOST = Duration.ofSeconds(Long.MAX_VALUE, 999_999_999);

    private static Duration time(JsonNode millis) {
        if (millis.isTextual()) {
            assertEquals("max", millis.asText(), "no time that Java has");
            return MOST;
        }
        BigDecimal nanos = millis.decimalValue().movePointRight(6);
        BigDecimal[] parts = nanos.divideAndRemainder(BigDecimal.valueOf(1_000_000_000));
        return Duration.ofSeconds(parts[0].longValueExact(), parts[1].longValueExact());
    }

    private static Duration maybeTime(JsonNode step, String key) {
        return step.hasNonNull(key) ? time(step.get(key)) : null;
    }

    private static void within(Duration found, JsonNode least, JsonNode most) {
        assertTrue(
                found.compareTo(time(least)) >= 0 && found.compareTo(time(most)) <= 0,
                () -> found + " is not " + least + " to " + most + " ms");
    }

    // Steps.

    private void connect(JsonNode step) {
        JsonNode given = step.path("options");
        Cases.only(
                given,
                Set.of(
                        "connect_timeout_ms",
                        "request_timeout_ms",
                        "prefix",
                        "collection",
                        "root",
                        "node_layout"));
        ClientOptions options = ClientOptions.defaults();
        if (given.has("connect_timeout_ms")) {
            options = options.connectTimeout(time(given.get("connect_timeout_ms")));
        }
        if (given.has("request_timeout_ms")) {
            options = options.requestTimeout(time(given.get("request_timeout_ms")));
        }
        if (given.has("prefix")) {
            options = options.prefix(Cases.text(given.get("prefix")));
        }
        if (given.has("collection")) {
            options = options.collection(Cases.text(given.get("collection")));
        }
        if (given.has("root")) {
            options = options.root(Cases.text(given.get("root")));
        }
        if (given.has("node_layout")) {
            options = options.nodeLayout(Cases.text(given.get("node_layout")));
        }
        Fencelock client;
        if (step.has("url") && step.get("url").isNull()) {
            client = Fencelock.connect(options);
        } else {
            String to = step.has("url") ? Cases.text(step.get("url")) : url;
            if (step.has("query")) {
                to = Support.withQuery(to, Cases.text(step.get("query")));
            }
            if (step.has("credentials")) {
                to = to.replaceFirst("://", "://" + step.get("credentials").asText() + "@");
            }
            client = Fencelock.connect(to, options);
        }
        allClients.add(client);
        clients.put(as(step), client);
    }

    private void lock(JsonNode step) {
        LockOptions options = LockOptions.defaults();
        if (step.has("ttl_ms")) {
            options = options.ttl(time(step.get("ttl_ms")));
        }
        if (step.has("renew")) {
            options = options.renew(step.get("renew").asBoolean());
        }
        if (step.has("max_hold_ms")) {
            options = options.maxHold(time(step.get("max_hold_ms")));
        }
        if (step.has("metadata")) {
            options = options.metadata(Cases.text(step.get("metadata")));
        }
        locks.put(as(step), client(step).lock(Cases.text(step.get("name")), options));
    }

    private void keep(String name, Lease lease) {
        tokens.put(name, lease.token());
        leases.put(name, lease);
    }

    private void acquire(JsonNode step) {
        RustLock lock = locks.get(step.get("lock").asText());
        Duration limit = maybeTime(step, "timeout_ms");
        keep(as(step), limit == null ? lock.acquireLease() : lock.acquireLease(limit));
    }

    private void tryAcquire(JsonNode step) {
        Optional<Lease> lease = locks.get(step.get("lock").asText()).tryAcquireLease();
        lease.ifPresent(found -> keep(as(step), found));
        expect(step, lease.isPresent());
    }

    private void startAcquire(JsonNode step) {
        RustLock lock = locks.get(step.get("lock").asText());
        Duration limit = maybeTime(step, "timeout_ms");
        waiting.put(as(step), limit == null ? lock.acquireAsync() : lock.acquireAsync(limit));
    }

    private void awaitAcquire(JsonNode step) throws Exception {
        String name = step.get("lease").asText();
        try {
            keep(name, waiting.remove(name).get());
        } catch (ExecutionException e) {
            throw e.getCause() instanceof FencelockException ours ? ours : e;
        }
    }

    private void cancelAcquire(JsonNode step) {
        assertTrue(waiting.remove(step.get("lease").asText()).cancel(true), "it had ended");
    }

    private void waitLost(JsonNode step) throws Exception {
        Duration limit = step.has("within_ms") ? time(step.get("within_ms")) : Support.LIMIT;
        boolean lost;
        try {
            lease(step).lost().get(limit.toNanos(), TimeUnit.NANOSECONDS);
            lost = true;
        } catch (TimeoutException | CancellationException e) {
            lost = false;
        }
        expect(step, lost);
    }

    private void remaining(JsonNode step) {
        within(lease(step).remaining(), step.get("at_least_ms"), step.get("at_most_ms"));
    }

    private void token(JsonNode step) {
        long ours = tokens.get(step.get("lease").asText());
        for (JsonNode other : step.get("greater_than")) {
            assertTrue(Long.compareUnsigned(ours, tokens.get(other.asText())) > 0, other.asText());
        }
    }

    private LockInfo look(JsonNode step) {
        String name = Cases.text(step.get("name"));
        LockInfo info = client(step).inspect(name);
        assertEquals(name, info.name());
        return info;
    }

    private void inspect(JsonNode step) {
        judgeInfo(step.path("shows"), look(step));
    }

    private void waitUntil(JsonNode step) throws Exception {
        long start = System.nanoTime();
        while (true) {
            LockInfo info = look(step);
            try {
                judgeInfo(step.get("shows"), info);
                return;
            } catch (AssertionError e) {
                if (Support.since(start).compareTo(Support.LIMIT) > 0) {
                    throw e;
                }
            }
            Thread.sleep(5);
        }
    }

    private void list(JsonNode step) {
        Comparator<String> byBytes =
                (a, b) ->
                        Arrays.compareUnsigned(
                                a.getBytes(StandardCharsets.UTF_8),
                                b.getBytes(StandardCharsets.UTF_8));
        List<String> found =
                client(step).list().stream().map(LockInfo::name).sorted(byBytes).toList();
        List<String> wanted = new ArrayList<>();
        step.path("names").forEach(name -> wanted.add(Cases.text(name)));
        assertEquals(wanted, found);
    }

    private void forceRelease(JsonNode step) {
        expect(step, client(step).forceRelease(Cases.text(step.get("name"))));
    }

    private void elapsed(JsonNode step) {
        Duration found = Support.since(stopwatches.get(step.get("since").asText()));
        within(found, step.get("at_least_ms"), step.get("at_most_ms"));
    }

    private void redis(JsonNode step) throws Exception {
        List<String> words = new ArrayList<>();
        words.add(step.get("command").asText());
        words.add(prefix + Cases.text(step.get("name")));
        step.get("arguments").forEach(word -> words.add(Cases.text(word)));
        RedisServer.command(Support.server("redis"), words.toArray(String[]::new));
    }

    // Judgement.

    private static void expect(JsonNode step, boolean found) {
        if (!step.has("error")) {
            assertEquals(step.get("expect").asBoolean(), found);
        }
    }

    private static void judgeError(JsonNode step, FencelockException error) {
        assertEquals(step.get("error").asText(), error.code(), error.getMessage());
        for (JsonNode part : step.path("says")) {
            assertTrue(error.getMessage().contains(Cases.text(part)), error.getMessage());
        }
        for (JsonNode part : step.path("hides")) {
            for (Throwable shown = error; shown != null; shown = shown.getCause()) {
                assertTrue(!shown.toString().contains(Cases.text(part)), "it shows what it must not");
            }
        }
    }

    private void judgeInfo(JsonNode shows, LockInfo info) {
        shows.properties()
                .forEach(entry -> judgeInfo(entry.getKey(), entry.getValue(), info));
    }

    private void judgeInfo(String key, JsonNode wanted, LockInfo info) {
        List<LockInfo.Waiter> queue = info.queue();
        switch (key) {
            case "state" -> assertEquals(wanted.asText(), info.state().name().toLowerCase());
            case "owner" -> {
                if (wanted.isNull()) {
                    assertNull(info.owner());
                } else if (wanted.asText().equals("id")) {
                    assertTrue(info.owner().matches("[0-9a-f]{32}"), info.owner());
                } else {
                    assertEquals(wanted.asText(), info.owner());
                }
            }
            case "token" ->
                    assertEquals(wanted.isNull() ? null : tokens.get(wanted.asText()), info.token());
            case "metadata" ->
                    assertEquals(wanted.isNull() ? null : Cases.text(wanted), info.metadata());
            case "metadata_says" -> {
                for (JsonNode part : wanted) {
                    assertTrue(info.metadata().contains(part.asText()), info.metadata());
                }
            }
            case "held_ms" -> judgeKnownTime(wanted, info.held());
            case "ttl_left_ms" -> judgeKnownTime(wanted, info.ttlLeft());
            case "queue_length" -> assertEquals(wanted.asInt(), queue.size());
            case "queue_metadata" -> {
                List<String> texts = new ArrayList<>();
                wanted.forEach(text -> texts.add(Cases.text(text)));
                assertEquals(texts, queue.stream().map(LockInfo.Waiter::metadata).toList());
            }
            case "queue_owners" -> {
                assertEquals("ids", wanted.asText());
                Set<String> owners = new HashSet<>();
                owners.add(info.owner());
                queue.forEach(waiter -> owners.add(waiter.owner()));
                assertEquals(queue.size() + 1, owners.size());
                assertTrue(owners.stream().allMatch(owner -> owner.matches("[0-9a-f]{32}")));
            }
            case "queue_waiting_ms" ->
                    queue.forEach(waiter -> judgeTime(wanted, waiter.waiting()));
            default -> fail("unknown key " + key);
        }
    }

    private void judgeKnownTime(JsonNode wanted, Duration found) {
        if (knowsTimes) {
            judgeTime(wanted, found);
        } else {
            assertNull(found);
        }
    }

    private static void judgeTime(JsonNode wanted, Duration found) {
        if (wanted.isNull()) {
            assertNull(found);
        } else {
            assertTrue(found != null, "there is none");
            within(found, wanted.get(0), wanted.get(1));
        }
    }
}
