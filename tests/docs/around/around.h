/* The reader's own functions, in C. */
#include <stdint.h>
#include <stdio.h>

static inline int fail(fencelock_error *err) {
    fprintf(stderr, "%s\n", fencelock_error_message(err));
    return 1;
}

static inline void take_one_unit(uint64_t token) {
    if (token == 0)
        fail(NULL);
}

static inline void update(uint64_t token) {
    take_one_unit(token);
}
