package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;

/** Reads the cases of tests/conformance; the README there describes the format. */
final class Cases {
    /** Tests run in the folder of this binding. */
    static final Path FOLDER = Path.of("..", "..", "tests", "conformance");

    private static final ObjectMapper JSON =
            new ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);

    private Cases() {}

    /** One case, or one row of a case that has rows. */
    record Case(
            String name,
            Set<String> needs,
            Set<String> backends,
            List<JsonNode> raw,
            JsonNode tables) {
        /** Plain steps, without the inner rows that need what is not there. Null = with all. */
        List<JsonNode> steps(Set<String> capabilities) {
            List<JsonNode> steps = new ArrayList<>();
            for (JsonNode step : raw) {
                if (!step.get("do").asText().equals("for_each")) {
                    steps.add(step);
                    continue;
                }
                only(step, Set.of("do", "row", "steps"));
                for (JsonNode row : tables.get(step.get("row").asText())) {
                    if (capabilities == null || capabilities.containsAll(texts(row.get("needs")))) {
                        step.get("steps").forEach(inner -> steps.add(fill(inner, row)));
                    }
                }
            }
            return steps;
        }
    }

    static List<Case> read() throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.list(FOLDER)) {
            files = all.filter(file -> file.toString().endsWith(".json")).sorted().toList();
        }
        List<Case> cases = new ArrayList<>();
        for (Path file : files) {
            String topic = file.getFileName().toString().replace(".json", "");
            JsonNode content = JSON.readTree(file.toFile());
            only(content, Set.of("about", "tables", "cases"));
            JsonNode tables = content.path("tables");
            for (JsonNode found : content.get("cases")) {
                only(found, Set.of("id", "about", "rows", "needs", "backends", "steps"));
                String name = topic + "." + found.get("id").asText();
                Set<String> backends =
                        found.has("backends") ? texts(found.get("backends")) : null;
                if (!found.has("rows")) {
                    List<JsonNode> steps = new ArrayList<>();
                    found.get("steps").forEach(steps::add);
                    cases.add(new Case(name, texts(found.get("needs")), backends, steps, tables));
                    continue;
                }
                for (JsonNode row : tables.get(found.get("rows").asText())) {
                    List<JsonNode> steps = new ArrayList<>();
                    found.get("steps").forEach(step -> steps.add(fill(step, row)));
                    Set<String> needs = texts(found.get("needs"));
                    needs.addAll(texts(row.get("needs")));
                    String full = name + "." + row.get("id").asText();
                    cases.add(new Case(full, needs, backends, steps, tables));
                }
            }
        }
        return cases;
    }

    /** Replaces "$key" by the row's value of that key. */
    private static JsonNode fill(JsonNode value, JsonNode row) {
        if (value.isTextual() && value.asText().startsWith("$")) {
            JsonNode found = row.get(value.asText().substring(1));
            assertTrue(found != null, () -> "the row has no " + value);
            return found;
        }
        if (value.isArray()) {
            ArrayNode filled = JSON.createArrayNode();
            value.forEach(item -> filled.add(fill(item, row)));
            return filled;
        }
        if (value.isObject()) {
            ObjectNode filled = JSON.createObjectNode();
            // A for_each inside has rows of its own.
            value.properties()
                    .forEach(
                            entry ->
                                    filled.set(
                                            entry.getKey(),
                                            entry.getKey().equals("steps")
                                                    ? entry.getValue()
                                                    : fill(entry.getValue(), row)));
            return filled;
        }
        return value;
    }

    /** A typing error must not pass. */
    static void only(JsonNode found, Set<String> allowed) {
        Set<String> unknown = new TreeSet<>();
        found.fieldNames().forEachRemaining(unknown::add);
        unknown.removeAll(allowed);
        assertTrue(unknown.isEmpty(), () -> "unknown: " + unknown);
    }

    static Set<String> texts(JsonNode array) {
        Set<String> found = new TreeSet<>();
        if (array != null) {
            array.forEach(item -> found.add(item.asText()));
        }
        return found;
    }

    /** A text, also a long one or one that is no Unicode. */
    static String text(JsonNode value) {
        if (value.isTextual()) {
            return value.asText();
        }
        if (value.has("repeat")) {
            only(value, Set.of("repeat", "times", "then"));
            return value.get("repeat").asText().repeat(value.get("times").asInt())
                    + value.path("then").asText("");
        }
        only(value, Set.of("utf16"));
        StringBuilder text = new StringBuilder();
        value.get("utf16").forEach(unit -> text.append((char) unit.asInt()));
        return text.toString();
    }
}
