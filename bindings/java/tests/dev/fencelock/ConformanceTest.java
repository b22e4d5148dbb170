package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Runs the cases of tests/conformance, one test for each case and backend. */
class ConformanceTest {
    /** What Java's types can express. */
    private static final Set<String> CAPABILITIES =
            Set.of("signed_time", "sub_ms_time", "nul_in_text", "lone_surrogates");

    @TempDir static Path directory;

    /** Several at once: a case mostly waits, in a space of its own. */
    @TestFactory
    @Execution(ExecutionMode.CONCURRENT)
    Stream<DynamicTest> cases() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        for (Cases.Case found : Cases.read()) {
            for (String backend : Support.backends()) {
                if (found.backends() == null || found.backends().contains(backend)) {
                    String name = found.name() + "[" + backend + "]";
                    tests.add(DynamicTest.dynamicTest(name, () -> run(found, backend)));
                }
            }
        }
        return tests.stream();
    }

    private static void run(Cases.Case found, String backend) throws Exception {
        Set<String> lacking = new TreeSet<>(found.needs());
        lacking.removeAll(CAPABILITIES);
        if (!lacking.isEmpty()) {
            abort("needs " + lacking);
        }
        String set = System.getenv("FENCELOCK_URL");
        assertTrue(set == null || set.isEmpty(), "unset FENCELOCK_URL for these tests");
        // A step that hangs must fail its case, not stop the run; closing the clients ends it.
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try (World world = new World(backend, directory)) {
            int number = 0;
            for (JsonNode step : found.steps(CAPABILITIES)) {
                number++;
                try {
                    thread.submit(
                                    () -> {
                                        world.judged(step);
                                        return null;
                                    })
                            .get(30, TimeUnit.SECONDS);
                } catch (Exception e) {
                    String what = step.toString();
                    throw new AssertionError(
                            "step " + number + ": " + what.substring(0, Math.min(2000, what.length())),
                            e);
                }
            }
        } finally {
            thread.shutdownNow();
        }
    }

    /** The first column of the first table below a heading of the README. */
    private static Set<String> described(String heading) throws IOException {
        String readme = Files.readString(Cases.FOLDER.resolve("README.md"));
        String after = readme.substring(readme.indexOf("\n## " + heading + "\n") + 1);
        Matcher table = Pattern.compile("(?m)(?:^\\|.*\n)+").matcher(after);
        assertTrue(table.find(), heading);
        return Pattern.compile("(?m)^\\| `([^`]+)`")
                .matcher(table.group())
                .results()
                .map(row -> row.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /** All values of a key in all steps, whether this runner can execute them or not. */
    private static Set<String> ofSteps(String key) throws IOException {
        return Cases.read().stream()
                .flatMap(found -> found.steps(null).stream())
                .filter(step -> step.has(key))
                .map(step -> step.get(key).asText())
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void formatWords() throws IOException {
        assertEquals(described("Steps"), ofSteps("do"));
        assertEquals(described("Steps"), new TreeSet<>(World.words()));
    }

    @Test
    void formatCapabilities() throws IOException {
        Set<String> needed = new TreeSet<>();
        Cases.read().forEach(found -> needed.addAll(found.needs()));
        assertEquals(described("Capabilities"), needed);
        assertTrue(needed.containsAll(CAPABILITIES));
    }

    @Test
    void formatBackends() throws IOException {
        Set<String> named = new TreeSet<>(Support.backends());
        Cases.read().stream()
                .filter(found -> found.backends() != null)
                .forEach(found -> named.addAll(found.backends()));
        assertTrue(described("Backends").containsAll(named));
    }

    @Test
    void formatKinds() throws IOException {
        Set<String> provoked = ofSteps("error");
        Set<String> all = described("Errors that no case provokes");
        assertTrue(provoked.stream().noneMatch(all::contains));
        all.addAll(provoked);
        assertEquals(new TreeSet<>(List.of(new String(Native.errorCodes()).split(" "))), all);
    }

    @Test
    void formatNames() throws IOException {
        List<String> names = Cases.read().stream().map(Cases.Case::name).toList();
        assertEquals(names.size(), Set.copyOf(names).size());
    }
}
