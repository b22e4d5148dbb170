package shop;

import dev.fencelock.FencelockException;
import dev.fencelock.LockTimeoutException;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** The two endpoints of the shop. */
@RestController
@RequestMapping("/product")
public class ProductController {
    private final ProductService products;

    ProductController(ProductService products) {
        this.products = products;
    }

    /** How much there is. */
    @GetMapping("/{id}")
    public String query(@PathVariable String id) {
        return products.describe(id);
    }

    /** Buys one unit. The message and the status tell success from failure. */
    @GetMapping("/order/{id}")
    public ResponseEntity<String> order(@PathVariable String id) {
        String order = products.order(id);
        return order == null
                ? failed(HttpStatus.CONFLICT, "product " + id + " is sold out")
                : ResponseEntity.ok("Success: " + order + ". " + products.describe(id));
    }

    /** Too many buyers at once: nothing was written. */
    @ExceptionHandler(LockTimeoutException.class)
    ResponseEntity<String> busy() {
        return failed(HttpStatus.SERVICE_UNAVAILABLE, "there are too many buyers, try again");
    }

    /** The lock was lost, and somebody else has sold meanwhile: nothing was written. */
    @ExceptionHandler(ProductService.OvertakenException.class)
    ResponseEntity<String> overtaken() {
        return failed(HttpStatus.SERVICE_UNAVAILABLE, "another order came first, try again");
    }

    /** The lock was lost before the order was written, or its server does not answer. */
    @ExceptionHandler(FencelockException.class)
    ResponseEntity<String> noLock(FencelockException error) {
        return failed(HttpStatus.SERVICE_UNAVAILABLE, "the shop cannot sell now: " + error.code());
    }

    private static ResponseEntity<String> failed(HttpStatus status, String why) {
        return ResponseEntity.status(status).body("Failure: " + why);
    }
}
