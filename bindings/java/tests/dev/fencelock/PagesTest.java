package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The code of the pages beside the sources is compiled and run. */
class PagesTest {
    private static final Pattern BLOCK =
            Pattern.compile("^```java\\n(.*?)^```", Pattern.DOTALL | Pattern.MULTILINE);
    private static final Pattern URLS = Pattern.compile("\"(redis|mongodb|zookeeper)://[^\"]*\"");

    /** What the code of a page finds around it. Its own variables hide these. */
    private static final String AROUND =
            """
            import dev.fencelock.*;
            import java.time.Duration;
            import java.util.concurrent.*;
            import java.util.concurrent.locks.Lock;

            public class Page {
                public static Fencelock client;
                public static RustLock lock;
                public static int worked;
                static String id = "123";
                static String name = "orders/42";

                static void update(long token) {
                    worked++;
                }

                public static Object run() throws Exception {
            %s
                    return null;
                }
            }
            """;

    @TempDir static Path directory;

    /** Each section ends with ours; what comes before in it is the sketch of what it replaces. */
    static Stream<Arguments> code() throws Exception {
        List<Arguments> all = new ArrayList<>();
        for (String page : List.of("README.md", "MIGRATION.md")) {
            for (String section : Files.readString(Path.of(page)).split("(?m)^## ")) {
                List<String> blocks =
                        BLOCK.matcher(section).results().map(found -> found.group(1)).toList();
                if (!blocks.isEmpty()) {
                    String title = page + ": " + section.lines().findFirst().orElseThrow();
                    all.add(Arguments.of(title, blocks.get(blocks.size() - 1)));
                }
            }
        }
        return all.stream();
    }

    @Test
    void allSectionsWithCodeAreFound() throws Exception {
        assertEquals(5, code().count());
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("code")
    void itCompilesAndRuns(String title, String code) throws Exception {
        String body = code.replace("\u2026", "update(lock.token());");
        body = URLS.matcher(body).replaceAll(PagesTest::ofThisRun);
        Path folder = Files.createTempDirectory(directory, "page");
        Path source = Files.writeString(folder.resolve("Page.java"), AROUND.formatted(body));
        String[] command = {
            "-Xlint:all,-try", "-Werror", "-proc:none",
            "-cp", System.getProperty("java.class.path"),
            "-d", folder.toString(), source.toString()
        };
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, command), body);

        URL[] urls = {folder.toUri().toURL()};
        try (Fencelock client = Fencelock.connect("memory:");
                URLClassLoader loader = new URLClassLoader(urls, getClass().getClassLoader())) {
            Class<?> page = loader.loadClass("Page");
            page.getField("client").set(null, client);
            page.getField("lock").set(null, client.lock("a"));
            assertEquals(null, page.getMethod("run").invoke(null));
            assertTrue(page.getField("worked").getInt(null) > 0 || !body.contains("update"));
            client.lock("a").acquireLease(Duration.ZERO).release();
        }
    }

    /** What MIGRATION.md says of moving over while old instances still run. */
    @Test
    void withoutAPrefixItExcludesHandWrittenLocks() throws Exception {
        String url = Support.server("redis");
        String name = "hand-written-" + UUID.randomUUID();
        String[] setIfAbsent = {"SET", name, "a uuid", "NX", "PX", "30000"};
        try (Fencelock client = Fencelock.connect(url, ClientOptions.defaults().prefix(""))) {
            assertEquals("+OK", RedisServer.command(url, setIfAbsent));
            assertFalse(client.lock(name).tryLock());
            assertEquals(LockInfo.State.FOREIGN, client.inspect(name).state());
            assertEquals(":1", RedisServer.command(url, "DEL", name));
            client.lock(name).lock();
            assertEquals("$-1", RedisServer.command(url, setIfAbsent));
            client.lock(name).unlock();
        }
    }

    private static String ofThisRun(MatchResult url) {
        return '"' + Support.url(url.group(1), directory) + '"';
    }
}
