/* Acquiring without a thread that waits: callbacks, cancelling, and what is left behind. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

enum { CANCELS = 300 };

/* Where a callback leaves what it got. */
struct end {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int calls;
    fencelock_code code;
    fencelock_lease *lease;
};

#define END {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

static void note(fencelock_code code, fencelock_lease *lease, fencelock_error *err, void *data) {
    struct end *end = data;
    if ((code == FENCELOCK_OK) != (lease != NULL) || (code == FENCELOCK_OK) != (err == NULL) ||
        fencelock_error_code(err) != code)
        FAIL("a callback got %s with %s lease and %s error", fencelock_code_name(code),
             lease ? "a" : "no", err ? "an" : "no");
    fencelock_error_free(err);
    pthread_mutex_lock(&end->mutex);
    end->calls++;
    end->code = code;
    end->lease = lease;
    pthread_cond_broadcast(&end->changed);
    pthread_mutex_unlock(&end->mutex);
}

static fencelock_code wait_for_end(struct end *end) {
    pthread_mutex_lock(&end->mutex);
    while (end->calls == 0)
        pthread_cond_wait(&end->changed, &end->mutex);
    fencelock_code code = end->code;
    pthread_mutex_unlock(&end->mutex);
    return code;
}

static void a_callback_is_called_once_with_the_outcome(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    struct end first = END, second = END, third = END;
    OK(fencelock_acquire_async(lock, -1, note, &first, NULL, &err));
    CHECK_IS(wait_for_end(&first), FENCELOCK_OK);
    CHECK(fencelock_lease_is_held(first.lease));
    OK(fencelock_acquire_async(lock, 50, note, &second, NULL, &err));
    CHECK_IS(wait_for_end(&second), FENCELOCK_TIMEOUT);
    fencelock_op *op;
    OK(fencelock_acquire_async(lock, -1, note, &third, &op, &err));
    wait_for_queue(client, "a", 1);
    fencelock_lock_free(lock);
    OK(fencelock_release(first.lease, &err));
    CHECK_IS(wait_for_end(&third), FENCELOCK_OK);
    /* After the end it has no effect. */
    CHECK_IS(fencelock_op_cancel(op), FENCELOCK_OK);
    CHECK(fencelock_lease_is_held(third.lease));
    CHECK(fencelock_lease_token(third.lease) > fencelock_lease_token(first.lease));
    fencelock_op_free(op);
    fencelock_op_free(op);
    CHECK_IS(fencelock_op_cancel(op), FENCELOCK_INVALID_ARGUMENT);
    fencelock_lease_free(first.lease), fencelock_lease_free(third.lease);
    OK(fencelock_client_close(client, &err));
    CHECK(first.calls == 1 && second.calls == 1 && third.calls == 1);
    fencelock_client_free(client);
    space_end(&space);
}

static void g7_a_cancelled_wait_leaves_nothing(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *holder = acquired(lock);
    struct end end = END;
    fencelock_op *op;
    OK(fencelock_acquire_async(lock, -1, note, &end, &op, &err));
    wait_for_queue(client, "a", 1);
    CHECK_IS(fencelock_op_cancel(op), FENCELOCK_OK);
    CHECK_IS(fencelock_op_cancel(op), FENCELOCK_OK);
    CHECK_IS(wait_for_end(&end), FENCELOCK_CANCELLED);
    wait_for_queue(client, "a", 0);
    CHECK_IS(fencelock_op_cancel(op), FENCELOCK_OK);
    CHECK_IS(end.calls, 1);
    CHECK(fencelock_lease_is_held(holder));
    fencelock_op_free(op);
    fencelock_lease_free(holder);
    fencelock_lock_free(lock);
    OK(fencelock_client_close(client, &err));
    fencelock_client_free(client);
    space_end(&space);
}

/* The holder gives it back and takes it again, so that cancels meet waits, grants and releases. */
static void g7_300_cancels_at_random_moments_leave_nothing(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_with(client, "a", 20000, true);
    /* They outlive the loop: a second callback would find its place, and be counted. */
    static struct end ends[CANCELS];
    int obtained = 0, cancelled = 0;
    for (int i = 0; i < CANCELS; i++) {
        fencelock_lease *holder = i % 2 ? acquired(lock) : NULL;
        struct end *end = &ends[i];
        *end = (struct end)END;
        fencelock_op *op;
        OK(fencelock_acquire_async(lock, 30000, note, end, &op, &err));
        sleep_ms(random_below(2) ? random_below(4) : 0);
        if (random_below(2))
            fencelock_lease_free(holder);
        CHECK_IS(fencelock_op_cancel(op), FENCELOCK_OK);
        fencelock_code code = wait_for_end(end);
        if (code != FENCELOCK_OK)
            CHECK_IS(code, FENCELOCK_CANCELLED);
        code == FENCELOCK_OK ? obtained++ : cancelled++;
        fencelock_lease_free(end->lease);
        fencelock_lease_free(holder);
        fencelock_op_free(op);
    }
    CHECK(cancelled > 0 && obtained > 0);
    wait_for_free(client, "a");
    fencelock_client *another = connected(space.url);
    fencelock_lock *theirs = lock_of(another, "a");
    fencelock_lease *lease;
    OK(fencelock_try_acquire(theirs, &lease, &err));
    fencelock_lease_free(lease);
    fencelock_lock_free(theirs), fencelock_lock_free(lock);
    OK(fencelock_client_close(another, &err));
    OK(fencelock_client_close(client, &err));
    for (int i = 0; i < CANCELS; i++)
        CHECK_IS(ends[i].calls, 1);
    fencelock_client_free(another), fencelock_client_free(client);
    space_end(&space);
}

static void g7_closing_ends_waits_through_their_callbacks(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *holder = acquired(lock);
    struct end ends[] = {END, END, END, END};
    for (int i = 0; i < 3; i++)
        OK(fencelock_acquire_async(lock, -1, note, &ends[i], NULL, &err));
    wait_for_queue(client, "a", 3);
    OK(fencelock_client_close(client, &err));
    OK(fencelock_acquire_async(lock, -1, note, &ends[3], NULL, &err));
    for (int i = 0; i < 4; i++)
        CHECK_IS(wait_for_end(&ends[i]), FENCELOCK_CLOSED);
    fencelock_lease_free(holder);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
    space_end(&space);
}

struct nested {
    fencelock_client *client;
    fencelock_lock *lock;
    struct end inner;
    struct end outer;
};

static void calls_the_library(fencelock_code code, fencelock_lease *lease, fencelock_error *err, void *data) {
    struct nested *nested = data;
    CHECK_IS(code, FENCELOCK_OK);
    CHECK(err == NULL);
    fencelock_info *info;
    OK(fencelock_inspect(nested->client, "a", &info, &err));
    CHECK_IS(fencelock_info_token(info), fencelock_lease_token(lease));
    fencelock_info_free(info);
    fencelock_lock *other = lock_of(nested->client, "b");
    fencelock_lease *of_other = acquired(other);
    OK(fencelock_release(of_other, &err));
    fencelock_lease_free(of_other), fencelock_lock_free(other);
    OK(fencelock_acquire_async(nested->lock, -1, note, &nested->inner, NULL, &err));
    OK(fencelock_release(lease, &err));
    /* Blocks until another callback has run, which therefore needs another thread. */
    CHECK_IS(wait_for_end(&nested->inner), FENCELOCK_OK);
    fencelock_lease_free(nested->inner.lease);
    note(FENCELOCK_OK, lease, NULL, &nested->outer);
}

static void a_callback_may_call_the_library(const void *backend) {
    struct space space;
    space_start(&space, backend);
    struct nested nested = {.inner = END, .outer = END};
    nested.client = connected(space.url);
    nested.lock = lock_of(nested.client, "a");
    OK(fencelock_acquire_async(nested.lock, -1, calls_the_library, &nested, NULL, &err));
    CHECK_IS(wait_for_end(&nested.outer), FENCELOCK_OK);
    fencelock_lease_free(nested.outer.lease);
    fencelock_lock_free(nested.lock);
    OK(fencelock_client_close(nested.client, &err));
    fencelock_client_free(nested.client);
    space_end(&space);
}

struct busy {
    fencelock_lease *lease;
    struct end end;
};

static void blocks(fencelock_code code, fencelock_lease *lease, fencelock_error *err, void *data) {
    struct busy *busy = data;
    CHECK(code == FENCELOCK_OK && err == NULL);
    double end = now_s() + 1.5;
    while (now_s() < end) {
    }
    CHECK(fencelock_lease_is_held(lease));
    note(code, lease, NULL, &busy->end);
}

/* Host busy for 1.5 ttl, in the very function that the library has called. */
static void a_busy_callback_stops_no_renewal(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_with(client, "a", 1000, true);
    struct busy busy = {.end = END};
    OK(fencelock_acquire_async(lock, -1, blocks, &busy, NULL, &err));
    CHECK_IS(wait_for_end(&busy.end), FENCELOCK_OK);
    OK(fencelock_release(busy.end.lease, &err));
    fencelock_lease_free(busy.end.lease);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
    space_end(&space);
}

void add_async_tests(void) {
    test_on_each_backend("async.a_callback_is_called_once_with_the_outcome",
                         a_callback_is_called_once_with_the_outcome, CLEAN);
    test_on_each_backend("async.g7_a_cancelled_wait_leaves_nothing", g7_a_cancelled_wait_leaves_nothing,
                         CLEAN);
    test_on_each_backend("async.g7_300_cancels_at_random_moments_leave_nothing",
                         g7_300_cancels_at_random_moments_leave_nothing, CLEAN);
    test_on_each_backend("async.g7_closing_ends_waits_through_their_callbacks",
                         g7_closing_ends_waits_through_their_callbacks, CLEAN);
    test_on_each_backend("async.a_callback_may_call_the_library", a_callback_may_call_the_library, CLEAN);
    test_on_each_backend("async.a_busy_callback_stops_no_renewal", a_busy_callback_stops_no_renewal, CLEAN);
}
