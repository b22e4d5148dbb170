package shop;

import dev.fencelock.Fencelock;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/** A shop that sells one product. */
@SpringBootApplication
public class ShopApplication {
    /** Starts one instance. */
    public static void main(String[] arguments) {
        SpringApplication.run(ShopApplication.class, arguments);
    }

    /** One client for the whole service; Spring closes it, which releases what is held. */
    @Bean
    Fencelock fencelock(@Value("${shop.redis}") String url) {
        return Fencelock.connect(url);
    }
}
