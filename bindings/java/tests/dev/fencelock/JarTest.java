package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The built jar, used by a program outside of this tree. */
class JarTest {
    private static final Path JAR = Path.of(System.getProperty("fencelock.jar"));

    private static final String MAIN =
            """
            import dev.fencelock.*;
            import java.time.Duration;

            public class Main {
                public static void main(String[] arguments) {
                    try (Fencelock client = Fencelock.connect("memory:");
                            RustLock lock = client.lock("a").acquire(Duration.ofSeconds(5))) {
                        System.out.println("held: " + lock.isHeldByCurrentThread());
                    }
                }
            }
            """;

    @TempDir static Path project;

    @BeforeAll
    static void build() throws Exception {
        assertTrue(Files.exists(JAR), JAR + " is not there; run make java");
        Path source = Files.writeString(project.resolve("Main.java"), MAIN);
        String javac = Support.java("javac");
        String[] command = {
            javac, "-Xlint:all", "-Werror", "-cp", JAR.toString(), source.toString()
        };
        assertEquals(0, Support.run(command));
    }

    /** Runs it with a folder for temporary files of its own, in which nothing may stay. */
    private static void runs(String classPath, String main, String... arguments) throws Exception {
        Path temporary = Files.createTempDirectory(project, "tmp");
        List<String> options = List.of("-Djava.io.tmpdir=" + temporary);
        try (Support.Program jvm = new Support.Program(classPath, options, main, arguments)) {
            assertEquals("held: true", jvm.end(0));
        }
        try (Stream<Path> left = Files.list(temporary)) {
            assertEquals(List.of(), left.filter(file -> !file.endsWith("hsperfdata")).toList());
        }
    }

    @Test
    void onTheClassPath() throws Exception {
        runs(project + File.pathSeparator + JAR, "Main");
    }

    @Test
    void insideAFatJar() throws Exception {
        Path fat = project.resolve("fat.jar");
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.MAIN_CLASS, "Main");
        manifest.getMainAttributes().putValue("Enable-Native-Access", "ALL-UNNAMED");
        try (OutputStream file = Files.newOutputStream(fat);
                JarOutputStream to = new JarOutputStream(file, manifest);
                JarFile from = new JarFile(JAR.toFile())) {
            for (JarEntry entry : from.stream().toList()) {
                if (!entry.getName().startsWith("META-INF")) {
                    to.putNextEntry(new JarEntry(entry.getName()));
                    try (InputStream bytes = from.getInputStream(entry)) {
                        bytes.transferTo(to);
                    }
                }
            }
            to.putNextEntry(new JarEntry("Main.class"));
            Files.copy(project.resolve("Main.class"), to);
        }
        runs(null, null, "-jar", fat.toString());
    }

    @Test
    void fromTheLibraryPath() throws Exception {
        Path folder = Files.createDirectories(project.resolve("libraries"));
        Path bare = project.resolve("bare.jar");
        try (OutputStream file = Files.newOutputStream(bare);
                JarOutputStream to = new JarOutputStream(file);
                JarFile from = new JarFile(JAR.toFile())) {
            for (JarEntry entry : from.stream().filter(found -> !found.isDirectory()).toList()) {
                try (InputStream bytes = from.getInputStream(entry)) {
                    if (entry.getName().contains("/native/")) {
                        String name = Path.of(entry.getName()).getFileName().toString();
                        Files.copy(bytes, folder.resolve(name));
                    } else if (!entry.getName().startsWith("META-INF")) {
                        to.putNextEntry(new JarEntry(entry.getName()));
                        bytes.transferTo(to);
                    }
                }
            }
        }
        String classPath = project + File.pathSeparator + bare;
        List<String> options = List.of("-Djava.library.path=" + folder);
        try (Support.Program jvm = new Support.Program(classPath, options, "Main")) {
            assertEquals("held: true", jvm.end(0));
        }
    }

    /** Each has a library of its own: they share nothing but what the backend shares. */
    @Test
    void twoClassLoadersInOneJvm() throws Exception {
        List<Object> clients = new ArrayList<>();
        String url = Support.url("redis", project);
        for (int i = 0; i < 2; i++) {
            URLClassLoader loader =
                    new URLClassLoader(
                            new URL[] {JAR.toUri().toURL()}, ClassLoader.getPlatformClassLoader());
            Class<?> type = loader.loadClass("dev.fencelock.Fencelock");
            clients.add(type.getMethod("connect", String.class).invoke(null, url));
        }
        List<Boolean> got = new ArrayList<>();
        for (Object client : clients) {
            Object lock = client.getClass().getMethod("lock", String.class).invoke(client, "a");
            got.add((Boolean) lock.getClass().getMethod("tryLock").invoke(lock));
        }
        assertEquals(List.of(true, false), got);
        for (Object client : clients) {
            client.getClass().getMethod("close").invoke(client);
        }
    }

    @Test
    void itHasAModuleNameAndOneLibraryForEachPlatform() throws Exception {
        try (JarFile jar = new JarFile(JAR.toFile())) {
            Map<Object, Object> manifest = jar.getManifest().getMainAttributes();
            assertEquals(
                    "dev.fencelock", manifest.get(new Attributes.Name("Automatic-Module-Name")));
            assertTrue(
                    jar.stream().anyMatch(entry -> entry.getName().startsWith("dev/fencelock/native/")));
        }
    }
}
