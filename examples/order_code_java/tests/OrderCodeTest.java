import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import org.junit.jupiter.api.Test;

class OrderCodeTest {
    private static void run(String url) throws Exception {
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        assertTrue(OrderCode.run(url, 20, true, new PrintStream(output)), output::toString);
        assertTrue(output.toString().contains("different   20"), output::toString);
    }

    @Test
    void allCodesDifferInFiles() throws Exception {
        run(null);
    }

    @Test
    void allCodesDifferInRedis() throws Exception {
        String server = System.getenv("FENCELOCK_TEST_REDIS_URL");
        assertTrue(server != null, "FENCELOCK_TEST_REDIS_URL is not set");
        run(server + "?fl.prefix=order-code-java-" + System.nanoTime() + ":");
    }

    @Test
    void codesRiseAlsoOverMidnightAndWhenTheClockIsSetBack() {
        assertEquals("20261231-000042", Sequence.next("20261231-000041", "20261231"));
        assertEquals("20270101-000001", Sequence.next("20261231-000042", "20270101"));
        assertEquals("20270101-000002", Sequence.next("20270101-000001", "20261231"));
    }
}
