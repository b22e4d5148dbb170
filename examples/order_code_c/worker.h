/* One thread, which draws one code. */
#ifndef WORKER_H
#define WORKER_H

#include <fencelock.h>
#include <stdbool.h>
#include <stdint.h>

#include "sequence.h"

struct draw {
    order_code code;
    uint64_t token;
    double waited_ms;
};

/* What everybody has to lock who draws a code. */
extern const char LOCK[];

/* Draws the next code, under the lock unless that is NULL. False, and a message on standard error, if
 * there is none. */
bool draw_code(fencelock_lock *lock, const char *sequence, struct draw *draw);

#endif
