/* The examples, compiled as their README says and run over every backend. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support.h"

struct example {
    const char *name, *backend, *options, *says;
};

static void run_example(const void *argument) {
    const struct example *example = argument;
    struct space space;
    space_start(&space, example->backend);
    char command[2048], output[8192];
    snprintf(command, sizeof command, "%s/%s --url '%s' %s", getenv("EXAMPLES"), example->name, space.url,
             example->options);
    FILE *program = popen(command, "r");
    CHECK(program != NULL);
    output[fread(output, 1, sizeof output - 1, program)] = '\0';
    int status = pclose(program);
    if (status != 0 || strstr(output, example->says) == NULL)
        FAIL("%s ended with %d and printed:\n%s", command, status, output);
    space_end(&space);
}

static void add(const char *name, const char *what, const char *options, const char *says) {
    for (const char *const *backend = BACKENDS; *backend != NULL; backend++) {
        struct example *example = malloc(sizeof *example);
        *example = (struct example){name, *backend, options, says};
        char full[128];
        snprintf(full, sizeof full, "examples.%s.%s[%s]", name, what, *backend);
        test_add(full, run_example, example, CLEAN, NULL);
    }
}

void add_example_tests(void) {
    add("flash_sale_c", "sells_every_unit_once", "--stock 300", "OK: every unit was sold exactly once");
    add("flash_sale_c", "goes_on_after_a_crash", "--stock 100 --workers 4 --crash",
        "OK: every unit was sold exactly once");
    add("flash_sale_c", "oversells_without_the_lock", "--stock 300 --no-lock", "WITHOUT THE LOCK");
    add("order_code_c", "every_order_has_a_code_of_its_own", "", "OK: every order has a code of its own");
    add("order_code_c", "codes_are_taken_twice_without_the_lock", "--no-lock", "WITHOUT THE LOCK");
}
