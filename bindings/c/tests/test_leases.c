/* Leases in C: exclusion between threads, loss as a descriptor, and who frees what. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

enum { THREADS = 8, TURNS = 25 };

struct race {
    fencelock_client *client;
    pthread_barrier_t barrier;
    /* Protected by nothing but the lock. */
    long counter;
    uint64_t last_token;
};

static void *racer(void *argument) {
    struct race *race = argument;
    fencelock_lock *lock = lock_of(race->client, "counter");
    pthread_barrier_wait(&race->barrier);
    for (int turn = 0; turn < TURNS; turn++) {
        fencelock_lease *lease = acquired(lock);
        long counter = race->counter;
        uint64_t token = fencelock_lease_token(lease);
        if (token <= race->last_token)
            FAIL("token %llu came after %llu", (unsigned long long)token,
                 (unsigned long long)race->last_token);
        race->last_token = token;
        sched_yield();
        race->counter = counter + 1;
        OK(fencelock_lease_check(lease, &err));
        OK(fencelock_release(lease, &err));
        fencelock_lease_free(lease);
    }
    fencelock_lock_free(lock);
    return NULL;
}

static void g1_g3_threads_exclude_each_other(const void *backend) {
    struct space space;
    space_start(&space, backend);
    struct race race = {.client = connected(space.url)};
    pthread_t threads[THREADS];
    pthread_barrier_init(&race.barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, racer, &race);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&race.barrier);
    CHECK_IS(race.counter, THREADS * TURNS);
    OK(fencelock_client_close(race.client, &err));
    fencelock_client_free(race.client);
    space_end(&space);
}

static int readable(int fd, int timeout_ms) {
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    int found = poll(&poller, 1, timeout_ms);
    CHECK(found >= 0);
    return found == 1 && poller.revents == POLLIN;
}

static void g2_the_lost_fd_is_readable_from_the_deadline_on(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_with(client, "a", 1000, false);
    fencelock_lease *lease = acquired(lock);
    int fd = fencelock_lease_lost_fd(lease);
    CHECK(fd >= 0);
    CHECK_IS(fencelock_lease_lost_fd(lease), fd);
    CHECK(fencelock_lease_is_held(lease) && !readable(fd, 0));
    double start = now_s();
    int64_t left = fencelock_lease_remaining_ms(lease);
    CHECK(left > 0 && left <= 988);
    CHECK(readable(fd, 20000));
    CHECK((now_s() - start) * 1000 >= (double)left - 1);
    CHECK(fencelock_lease_is_lost(lease) && !fencelock_lease_is_held(lease));
    bool lost = false;
    OK(fencelock_lease_wait_lost(lease, -1, &lost, &err));
    CHECK(lost && readable(fd, 0));
    CODE(fencelock_lease_check(lease, &err), FENCELOCK_LOST);
    CODE(fencelock_release(lease, &err), FENCELOCK_LOST);
    /* Asked for first when the lease is lost already. */
    fencelock_lease_free(lease);
    fencelock_lock *again = lock_with(client, "b", 100, false);
    lease = acquired(again);
    OK(fencelock_lease_wait_lost(lease, -1, NULL, &err));
    CHECK(readable(fencelock_lease_lost_fd(lease), 20000));
    fencelock_lease_free(lease);
    fencelock_lock_free(again), fencelock_lock_free(lock);
    OK(fencelock_client_close(client, &err));
    fencelock_client_free(client);
    space_end(&space);
}

static void the_lost_fd_is_not_readable_after_a_release(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease = acquired(lock);
    int fd = fencelock_lease_lost_fd(lease);
    OK(fencelock_release(lease, &err));
    bool lost = true;
    OK(fencelock_lease_wait_lost(lease, -1, &lost, &err));
    CHECK(!lost);
    CHECK(!readable(fd, 200));
    CHECK(!fencelock_lease_is_lost(lease));
    OK(fencelock_release(lease, &err));
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
    space_end(&space);
}

static void *wait_until_lost(void *lease) {
    bool lost = true;
    OK(fencelock_lease_wait_lost(lease, -1, &lost, &err));
    CHECK(!lost);
    return NULL;
}

static void waiting_for_the_loss_keeps_no_lease(const void *unused) {
    (void)unused;
    fencelock_client *client = connected("memory:");
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease = acquired(lock);
    bool lost = true;
    OK(fencelock_lease_wait_lost(lease, 20, &lost, &err));
    CHECK(!lost);
    CODE(fencelock_lease_wait_lost(lease, -2, &lost, &err), FENCELOCK_INVALID_ARGUMENT);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_until_lost, lease);
    sleep_ms(50);
    fencelock_lease_free(lease);
    pthread_join(thread, NULL);
    wait_for_free(client, "a");
    fencelock_lock_free(lock);
    fencelock_client_free(client);
}

static void g7_freeing_a_lease_releases_it(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    for (int i = 0; i < 3; i++)
        fencelock_lease_free(acquired(lock));
    wait_for_free(client, "a");
    fencelock_lock_free(lock);
    OK(fencelock_client_close(client, &err));
    fencelock_client_free(client);
    space_end(&space);
}

static void objects_may_be_freed_in_any_order(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_with(client, "a", 2000, true);
    fencelock_client_free(client);
    fencelock_lease *lease = acquired(lock);
    fencelock_lock_free(lock);
    /* Nobody but the lease refers to the client, whose watchdog renews all the same. */
    sleep_ms(3000);
    CHECK(fencelock_lease_is_held(lease));
    OK(fencelock_lease_renew(lease, &err));
    OK(fencelock_release(lease, &err));
    fencelock_lease_free(lease);
    space_end(&space);
}

static void g5_try_acquire_is_a_failure_on_a_held_lock(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease, *second = (fencelock_lease *)(void *)&space;
    OK(fencelock_try_acquire(lock, &lease, &err));
    CODE(fencelock_try_acquire(lock, &second, &err), FENCELOCK_TIMEOUT);
    CHECK(second == NULL);
    CODE(fencelock_acquire(lock, 0, &second, &err), FENCELOCK_TIMEOUT);
    CODE(fencelock_acquire(lock, 20, &second, &err), FENCELOCK_TIMEOUT);
    bool ended = false;
    OK(fencelock_force_release(client, "a", &ended, &err));
    CHECK(ended);
    OK(fencelock_force_release(client, "a", &ended, &err));
    CHECK(!ended);
    CODE(fencelock_release(lease, &err), FENCELOCK_LOST);
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    OK(fencelock_client_close(client, &err));
    CHECK(fencelock_client_is_closed(client));
    fencelock_client_free(client);
    space_end(&space);
}

void add_lease_tests(void) {
    test_on_each_backend("leases.g1_g3_threads_exclude_each_other", g1_g3_threads_exclude_each_other,
                         CLEAN);
    test_on_each_backend("leases.g2_the_lost_fd_is_readable_from_the_deadline_on",
                         g2_the_lost_fd_is_readable_from_the_deadline_on, CLEAN);
    test_on_each_backend("leases.the_lost_fd_is_not_readable_after_a_release",
                         the_lost_fd_is_not_readable_after_a_release, CLEAN);
    test_add("leases.waiting_for_the_loss_keeps_no_lease", waiting_for_the_loss_keeps_no_lease, NULL,
             CLEAN, NULL);
    test_on_each_backend("leases.g7_freeing_a_lease_releases_it", g7_freeing_a_lease_releases_it, CLEAN);
    test_on_each_backend("leases.objects_may_be_freed_in_any_order", objects_may_be_freed_in_any_order,
                         CLEAN);
    test_on_each_backend("leases.g5_try_acquire_is_a_failure_on_a_held_lock",
                         g5_try_acquire_is_a_failure_on_a_held_lock, CLEAN);
}
