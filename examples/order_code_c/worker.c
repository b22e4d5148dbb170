/* This file is the example: how a thread uses the lock. */
#include "worker.h"

#include <stdio.h>
#include <time.h>

const char LOCK[] = "order-code";

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool complain(fencelock_error *err) {
    fprintf(stderr, "order_code: %s\n", fencelock_error_message(err));
    fencelock_error_free(err);
    return false;
}

/* Reads the last code, goes one on, and writes that back. `lease` is NULL without a lock. */
static bool next_code(const fencelock_lease *lease, const char *sequence, order_code code) {
    fencelock_error *err;
    order_code last;
    if (!sequence_read(sequence, last)) {
        perror("order_code");
        return false;
    }
    sequence_next(last, code);
    /* If the lease was lost by now, another thread may be drawing this very code: write nothing. */
    if (lease != NULL && fencelock_lease_check(lease, &err) != FENCELOCK_OK)
        return complain(err);
    return sequence_write(sequence, code);
}

bool draw_code(fencelock_lock *lock, const char *sequence, struct draw *draw) {
    if (lock == NULL)
        return next_code(NULL, sequence, draw->code);
    fencelock_lease *lease;
    fencelock_error *err;
    double asked = now_ms();
    if (fencelock_acquire(lock, -1, &lease, &err) != FENCELOCK_OK)
        return complain(err);
    draw->waited_ms = now_ms() - asked;
    draw->token = fencelock_lease_token(lease);
    bool drawn = next_code(lease, sequence, draw->code);
    /* The code counts only if the lock was ours to the end. */
    if (fencelock_release(lease, &err) != FENCELOCK_OK)
        drawn = complain(err);
    fencelock_lease_free(lease);
    return drawn;
}
