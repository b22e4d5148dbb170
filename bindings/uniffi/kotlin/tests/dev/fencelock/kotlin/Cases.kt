package dev.fencelock.kotlin

import com.fasterxml.jackson.databind.DeserializationFeature
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.ObjectMapper
import java.nio.file.Path
import kotlin.io.path.extension
import kotlin.io.path.listDirectoryEntries
import kotlin.io.path.nameWithoutExtension
import org.junit.jupiter.api.Assertions.assertEquals

/** Reads the cases of tests/conformance; the README there describes the format. */
internal object Cases {
    /** Tests run in the folder of this module. */
    val FOLDER: Path = Path.of("..", "..", "..", "tests", "conformance")

    private val JSON = ObjectMapper().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)

    /** One case, or one row of a case that has rows. */
    class Case(
        val name: String,
        val needs: Set<String>,
        val backends: Set<String>?,
        private val raw: List<JsonNode>,
        private val tables: JsonNode,
    ) {
        /** Plain steps, without the inner rows that need what is not there. Null = with all. */
        fun steps(capabilities: Set<String>?): List<JsonNode> = raw.flatMap { step ->
            if (step["do"].asText() != "for_each") return@flatMap listOf(step)
            only(step, "do", "row", "steps")
            tables[step["row"].asText()]
                .filter { row -> capabilities == null || capabilities.containsAll(texts(row["needs"])) }
                .flatMap { row -> step["steps"].map { fill(it, row) } }
        }
    }

    fun read(): List<Case> =
        FOLDER.listDirectoryEntries().filter { it.extension == "json" }.sorted().flatMap(::read)

    private fun read(file: Path): List<Case> {
        val content = JSON.readTree(file.toFile())
        only(content, "about", "tables", "cases")
        val tables = content.path("tables")
        return content["cases"].flatMap { found ->
            only(found, "id", "about", "rows", "needs", "backends", "steps")
            val name = "${file.nameWithoutExtension}.${found["id"].asText()}"
            val needs = texts(found["needs"])
            val backends = found["backends"]?.let(::texts)
            if (!found.has("rows")) {
                return@flatMap listOf(Case(name, needs, backends, found["steps"].toList(), tables))
            }
            tables[found["rows"].asText()].map { row ->
                val steps = found["steps"].map { fill(it, row) }
                Case("$name.${row["id"].asText()}", needs + texts(row["needs"]), backends, steps, tables)
            }
        }
    }

    /** Replaces "$key" by the row's value of that key. */
    private fun fill(value: JsonNode, row: JsonNode): JsonNode = when {
        value.isTextual && value.asText().startsWith("$") ->
            requireNotNull(row[value.asText().substring(1)]) { "the row has no $value" }
        value.isArray -> JSON.createArrayNode().addAll(value.map { fill(it, row) })
        value.isObject -> JSON.createObjectNode().also { filled ->
            // A for_each inside has rows of its own.
            for ((key, inner) in value.properties()) {
                filled.set<JsonNode>(key, if (key == "steps") inner else fill(inner, row))
            }
        }
        else -> value
    }

    /** A typing error must not pass. */
    fun only(found: JsonNode, vararg allowed: String) {
        val unknown = found.fieldNames().asSequence().toSet() - allowed.toSet()
        assertEquals(emptySet<String>(), unknown, "unknown keys")
    }

    fun texts(array: JsonNode?): Set<String> = array?.map { it.asText() }.orEmpty().toSortedSet()

    /** A text, also a long one or one that is no Unicode. */
    fun text(value: JsonNode): String = when {
        value.isTextual -> value.asText()
        value.has("repeat") -> {
            only(value, "repeat", "times", "then")
            value["repeat"].asText().repeat(value["times"].asInt()) + value.path("then").asText("")
        }
        else -> {
            only(value, "utf16")
            value["utf16"].map { it.asInt().toChar() }.joinToString("")
        }
    }
}
