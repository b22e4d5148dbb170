package dev.fencelock;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** A Redis server of one test, which may stop it; and a client for single commands. */
final class RedisServer implements AutoCloseable {
    final String url;
    private final Process process;

    RedisServer(Path directory) throws Exception {
        String given = System.getenv("FENCELOCK_TEST_REDIS_SERVER");
        String binary = given == null || given.isEmpty() ? "redis-server" : given;
        int port = freePort();
        process =
                new ProcessBuilder(
                                binary, "--port", Integer.toString(port), "--bind", "127.0.0.1",
                                "--save", "", "--appendonly", "no")
                        .directory(directory.toFile())
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
        url = "redis://127.0.0.1:" + port + "/";
        Support.until(
                () -> {
                    assertTrue(process.isAlive(), "redis-server ended at once");
                    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
                        return socket.isConnected();
                    } catch (IOException notYet) {
                        return false;
                    }
                });
    }

    static int freePort() throws IOException {
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return probe.getLocalPort();
        }
    }

    /** It answers nothing from here on. */
    void freeze() throws Exception {
        Support.signal(process, "STOP");
    }

    void thaw() throws Exception {
        Support.signal(process, "CONT");
    }

    @Override
    public void close() throws Exception {
        process.destroyForcibly().waitFor();
    }

    /** Sends one command; its answer in the form of the protocol. */
    static String command(String url, String... words) throws IOException {
        URI server = URI.create(url);
        int port = server.getPort() < 0 ? 6379 : server.getPort();
        try (Socket socket = new Socket(server.getHost(), port)) {
            ByteArrayOutputStream request = new ByteArrayOutputStream();
            request.writeBytes(("*" + words.length + "\r\n").getBytes(StandardCharsets.UTF_8));
            for (String word : words) {
                byte[] bytes = word.getBytes(StandardCharsets.UTF_8);
                request.writeBytes(("$" + bytes.length + "\r\n").getBytes(StandardCharsets.UTF_8));
                request.writeBytes(bytes);
                request.writeBytes("\r\n".getBytes(StandardCharsets.UTF_8));
            }
            socket.getOutputStream().write(request.toByteArray());
            InputStream answer = new BufferedInputStream(socket.getInputStream());
            String line = line(answer);
            assertTrue(!line.startsWith("-"), line);
            if (line.startsWith("$") && !line.startsWith("$-")) {
                return new String(
                        answer.readNBytes(Integer.parseInt(line.substring(1))),
                        StandardCharsets.UTF_8);
            }
            return line;
        }
    }

    private static String line(InputStream answer) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int read = answer.read(); read != '\n' && read >= 0; read = answer.read()) {
            line.append((char) read);
        }
        return line.toString().strip();
    }
}
