import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import org.junit.jupiter.api.Test;

class FlashSaleTest {
    private static String sell(String url, boolean locked) throws Exception {
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        assertTrue(FlashSale.sell(url, 100, 8, locked, new PrintStream(output)), output::toString);
        return output.toString();
    }

    @Test
    void everyUnitIsSoldOnceInFiles() throws Exception {
        assertTrue(sell(null, true).contains("oversold    0"));
    }

    @Test
    void everyUnitIsSoldOnceInRedis() throws Exception {
        String server = System.getenv("FENCELOCK_TEST_REDIS_URL");
        assertTrue(server != null, "FENCELOCK_TEST_REDIS_URL is not set");
        String url = server + "?fl.prefix=flash-sale-java-" + System.nanoTime() + ":";
        assertTrue(sell(url, true).contains("OK: every unit was sold once"));
    }

    @Test
    void withoutTheLockMoreIsSoldThanThereIs() throws Exception {
        assertFalse(sell("memory:", false).contains("oversold    0"));
    }
}
