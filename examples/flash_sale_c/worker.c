/* A worker: buys one unit after the other until there are none left.
 *
 * This file is the example; the others only start workers and count what they did. */
#include <fencelock.h>
#include <stdio.h>
#include <unistd.h>

#include "sale.h"
#include "store.h"

/* What everybody has to lock who sells product 123. */
static const char LOCK[] = "product/123";

/* Says what went wrong, and frees it. */
static void complain(const struct job *job, fencelock_error *err) {
    fprintf(stderr, "worker %d: %s\n", job->worker, fencelock_error_message(err));
    fencelock_error_free(err);
}

/* The section that must not run twice at the same time.
 *
 * It reads the stock, checks it, and writes it back less one. Everything that can go wrong without a
 * lock goes wrong between the read and the write. `lease` is NULL without a lock. */
static enum outcome sell_one_unit(const struct job *job, const fencelock_lease *lease) {
    uint64_t token = fencelock_lease_token(lease);
    long left = store_read_stock(job->folder, token);
    if (left == 0)
        return SOLD_OUT;
    /* If the lease was lost by now, somebody else may be selling this very unit: write nothing. */
    if (lease != NULL && fencelock_lease_check(lease, NULL) != FENCELOCK_OK)
        return LOST;
    /* We may still be paused right here, for longer than our lease lasts, and no lock can help that.
     * So the order carries the fencing token, and the store refuses it if somebody with a higher one
     * has been there meanwhile. */
    return store_place_order(job->folder, job->worker, token, left - 1) ? SOLD : REFUSED;
}

/* Buys one unit under the lock. */
static struct turn buy_one(const struct job *job, fencelock_lock *lock) {
    struct turn turn = {.worker = job->worker, .outcome = FAILED, .asked = now_s()};
    fencelock_lease *lease;
    fencelock_error *err;
    if (fencelock_acquire(lock, -1, &lease, &err) != FENCELOCK_OK) {
        complain(job, err);
        return turn;
    }
    turn.token = fencelock_lease_token(lease);
    turn.start = now_s();
    turn.outcome = sell_one_unit(job, lease);
    turn.end = now_s();
    /* FENCELOCK_LOST here: the order stands all the same. Had anybody with a higher token been at the
     * store before it, the store had refused it. */
    fencelock_code code = fencelock_release(lease, &err);
    if (code != FENCELOCK_OK && code != FENCELOCK_LOST)
        complain(job, err);
    else
        fencelock_error_free(err);
    fencelock_lease_free(lease);
    return turn;
}

/* The same without the lock, to see what it prevents. */
static struct turn buy_without_lock(const struct job *job) {
    struct turn turn = {.worker = job->worker, .asked = now_s(), .start = now_s()};
    turn.outcome = sell_one_unit(job, NULL);
    turn.end = now_s();
    return turn;
}

/* Takes the lock and never gives it back, as a worker does that crashes. A process is killed now; a
 * thread just forgets its lease, which ends with the ttl because this one lock does not renew. */
static void hold_for_ever(const struct job *job, fencelock_lock *lock) {
    struct turn turn = {.worker = job->worker, .outcome = CRASHED, .asked = now_s()};
    fencelock_lease *lease;
    fencelock_error *err;
    if (fencelock_acquire(lock, -1, &lease, &err) != FENCELOCK_OK) {
        complain(job, err);
        turn.outcome = FAILED;
    }
    turn.token = fencelock_lease_token(lease);
    turn.start = turn.end = now_s();
    report(job, turn);
    if (job->renew)
        pause();
}

void run_worker(const struct job *job, fencelock_client *client) {
    fencelock_lock_options *options = fencelock_lock_options_new();
    fencelock_lock_options_set_ttl_ms(options, job->ttl_ms);
    fencelock_lock_options_set_renew(options, job->renew);
    fencelock_lock *lock;
    fencelock_error *err;
    if (fencelock_lock_new(client, LOCK, options, &lock, &err) != FENCELOCK_OK)
        complain(job, err);
    fencelock_lock_options_free(options);

    while (now_s() < job->opens_at)
        usleep(200);
    enum outcome outcome = SOLD;
    for (long turns = 0; outcome != SOLD_OUT && outcome != FAILED; turns++) {
        if (turns == job->crash_after) {
            hold_for_ever(job, lock);
            break;
        }
        struct turn turn = job->no_lock ? buy_without_lock(job) : buy_one(job, lock);
        report(job, turn);
        outcome = turn.outcome;
    }
    fencelock_lock_free(lock);
}
