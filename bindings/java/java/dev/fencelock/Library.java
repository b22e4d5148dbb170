package dev.fencelock;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/** Loads the native library: from the library path, or else from the jar. */
final class Library {
    private static final String NAME = "fencelock_java";

    private Library() {}

    static void load() {
        try {
            System.loadLibrary(NAME);
            return;
        } catch (UnsatisfiedLinkError notThere) {
            // Also so where another class loader has it already; a copy of our own then.
        }
        String resource = "native/" + classifier() + "/" + System.mapLibraryName(NAME);
        try (InputStream bytes = Library.class.getResourceAsStream(resource)) {
            if (bytes == null) {
                throw new UnsatisfiedLinkError(
                        "fencelock has no library for " + classifier() + " in this jar ("
                                + resource + ") nor on java.library.path");
            }
            Path file = Files.createTempFile("fencelock-", ".library");
            try {
                Files.copy(bytes, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toAbsolutePath().toString());
            } finally {
                // What is mapped stays; a crash leaves no file behind either.
                Files.deleteIfExists(file);
            }
        } catch (IOException e) {
            throw (UnsatisfiedLinkError) new UnsatisfiedLinkError(
                            "fencelock's library could not be written to java.io.tmpdir: " + e)
                    .initCause(e);
        }
    }

    /** System and processor, such as {@code linux-x86_64}. */
    private static String classifier() {
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        String processor = switch (arch) {
            case "amd64", "x86_64" -> "x86_64";
            case "aarch64", "arm64" -> "aarch64";
            default -> arch;
        };
        return (os.startsWith("mac") ? "macos" : os) + "-" + processor;
    }
}
