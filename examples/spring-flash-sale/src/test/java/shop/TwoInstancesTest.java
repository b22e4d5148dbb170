package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Two instances, one Redis, 200 buyers at once. */
class TwoInstancesTest {
    private static final int STOCK = 100;
    private static final int BUYERS = 200;
    private static final Pattern PORT = Pattern.compile("Tomcat started on port (\\d+)");

    private final HttpClient http =
            HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(30)).build();

    private static Process start(String redis) throws IOException {
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-jar",
                        System.getProperty("service"),
                        "--server.port=0",
                        "--shop.stock=" + STOCK,
                        "--shop.redis=" + redis)
                .redirectErrorStream(true)
                .start();
    }

    private static int port(Process instance) throws IOException {
        StringBuilder said = new StringBuilder();
        BufferedReader output = instance.inputReader();
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            said.append(line).append('\n');
            Matcher found = PORT.matcher(line);
            if (found.find()) {
                // Nobody reads on: what it says must not fill the pipe.
                Thread drain = new Thread(() -> drain(output));
                drain.setDaemon(true);
                drain.start();
                return Integer.parseInt(found.group(1));
            }
        }
        throw new AssertionError("it did not start:\n" + said);
    }

    private static void drain(BufferedReader output) {
        try {
            output.transferTo(Writer.nullWriter());
        } catch (IOException closed) {
            // The end of the instance.
        }
    }

    private CompletableFuture<HttpResponse<String>> get(int port, String path) {
        URI uri = URI.create("http://127.0.0.1:" + port + path);
        return http.sendAsync(
                HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(60)).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void nothingIsOversold() throws Exception {
        String redis = System.getenv("FENCELOCK_TEST_REDIS_URL");
        assertTrue(redis != null, "FENCELOCK_TEST_REDIS_URL is not set");
        String product = "p" + System.nanoTime();
        List<Process> instances = List.of(start(redis), start(redis));
        try {
            int[] ports = {port(instances.get(0)), port(instances.get(1))};
            assertEquals(
                    "Product " + product + ": 100 in all, 100 left",
                    get(ports[0], "/product/" + product).get().body());

            List<CompletableFuture<HttpResponse<String>>> buying = new ArrayList<>();
            for (int buyer = 0; buyer < BUYERS; buyer++) {
                buying.add(get(ports[buyer % 2], "/product/order/" + product));
            }
            TreeMap<Integer, Integer> statuses = new TreeMap<>();
            TreeMap<String, Integer> orders = new TreeMap<>();
            for (CompletableFuture<HttpResponse<String>> one : buying) {
                HttpResponse<String> answer = one.get(90, TimeUnit.SECONDS);
                statuses.merge(answer.statusCode(), 1, Integer::sum);
                boolean sold = answer.statusCode() == 200;
                assertTrue(answer.body().startsWith(sold ? "Success: order" : "Failure: "), answer.body());
                if (sold) {
                    orders.merge(answer.body().split("\\.")[0], 1, Integer::sum);
                }
            }
            System.out.println("answers by status: " + statuses);
            // Every unit was sold, once; every other buyer was told.
            assertEquals(STOCK, statuses.get(200));
            assertEquals(BUYERS - STOCK, statuses.get(409));
            assertEquals(STOCK, orders.size());
            assertEquals(
                    "Product " + product + ": 100 in all, 0 left",
                    get(ports[1], "/product/" + product).get().body());
        } finally {
            for (Process instance : instances) {
                instance.destroy();
                assertTrue(instance.waitFor(30, TimeUnit.SECONDS), "it does not end");
            }
        }
    }
}
