/* A hostile host, as processes: fork at any moment, and exit with whatever is under way. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

/* Ends a child without what its parent registered for its own exit. */
static _Noreturn void leave(void) {
    fflush(NULL);
    _exit(0);
}

static void check_ends_well(pid_t child) {
    int status;
    CHECK_IS(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void never_called(fencelock_code code, fencelock_lease *lease, fencelock_error *err, void *data) {
    (void)code, (void)lease, (void)err, (void)data;
    FAIL("called");
}

static void uses_what_the_parent_has(fencelock_client *client, fencelock_lock *lock, fencelock_lease *lease,
                                     fencelock_op *op) {
    const fencelock_code forked = FENCELOCK_FORKED;
    fencelock_lock *new_lock;
    fencelock_lease *none;
    fencelock_info *info;
    fencelock_info_list *list;
    CHECK(!fencelock_lease_is_held(lease) && !fencelock_lease_is_lost(lease));
    CHECK_IS(fencelock_lease_remaining_ms(lease), 0);
    CODE(fencelock_lease_check(lease, &err), forked);
    CODE(fencelock_lease_renew(lease, &err), forked);
    CODE(fencelock_lease_wait_lost(lease, -1, NULL, &err), forked);
    CHECK_IS(fencelock_lease_lost_fd(lease), -1);
    CODE(fencelock_release(lease, &err), forked);
    CODE(fencelock_acquire(lock, -1, &none, &err), forked);
    CODE(fencelock_try_acquire(lock, &none, &err), forked);
    CODE(fencelock_acquire_async(lock, -1, never_called, NULL, NULL, &err), forked);
    CHECK_IS(fencelock_op_cancel(op), forked);
    CODE(fencelock_lock_new(client, "b", NULL, &new_lock, &err), forked);
    CODE(fencelock_inspect(client, "a", &info, &err), forked);
    CODE(fencelock_list(client, &list, &err), forked);
    CODE(fencelock_force_release(client, "a", NULL, &err), forked);
    CODE(fencelock_client_close(client, &err), forked);
    fencelock_op_free(op);
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
}

static void free_what_came(fencelock_code code, fencelock_lease *lease, fencelock_error *err, void *data) {
    (void)code, (void)data;
    fencelock_lease_free(lease);
    fencelock_error_free(err);
}

static void g9_a_child_touches_nothing_of_its_parent(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease = acquired(lock);
    fencelock_op *op;
    OK(fencelock_acquire_async(lock, -1, free_what_came, NULL, &op, &err));
    wait_for_queue(client, "a", 1);
    for (int normal = 0; normal < 2; normal++) {
        pid_t child = fork();
        if (child == 0) {
            uses_what_the_parent_has(client, lock, lease, op);
            if (normal)
                exit(0);
            leave();
        }
        check_ends_well(child);
        CHECK(fencelock_lease_is_held(lease));
        wait_for_queue(client, "a", 1);
    }
    CHECK_IS(fencelock_op_cancel(op), FENCELOCK_OK);
    wait_for_queue(client, "a", 0);
    OK(fencelock_release(lease, &err));
    fencelock_op_free(op);
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    OK(fencelock_client_close(client, &err));
    fencelock_client_free(client);
    wait_for_open(0);
    space_end(&space);
}

static void g9_a_new_client_in_a_child_works(const void *backend) {
    bool zookeeper = strcmp(backend, "zookeeper") == 0, memory = strcmp(backend, "memory") == 0;
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease = acquired(lock);
    pid_t child = fork();
    if (child == 0) {
        fencelock_client *own;
        if (zookeeper) {
            CODE(fencelock_connect(space.url, &own, &err), FENCELOCK_UNSUPPORTED);
            leave();
        }
        own = connected(space.url);
        fencelock_lock *same = lock_of(own, "a"), *another = lock_of(own, "b");
        fencelock_lease *none;
        if (!memory)
            CODE(fencelock_try_acquire(same, &none, &err), FENCELOCK_TIMEOUT);
        fencelock_lease *held = acquired(another);
        OK(fencelock_release(held, &err));
        fencelock_lease_free(held), fencelock_lock_free(same), fencelock_lock_free(another);
        fencelock_client_free(own);
        check_nothing_is_open();
        exit(0);
    }
    check_ends_well(child);
    CHECK(fencelock_lease_is_held(lease));
    OK(fencelock_release(lease, &err));
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    OK(fencelock_client_close(client, &err));
    fencelock_client_free(client);
    space_end(&space);
}

struct forking {
    fencelock_client *client;
    volatile bool stop;
};

static void *keep_calling(void *argument) {
    struct forking *forking = argument;
    while (!forking->stop) {
        fencelock_lock *lock = lock_of(forking->client, "a");
        fencelock_lease *lease;
        fencelock_acquire(lock, 0, &lease, NULL);
        fencelock_lease_free(lease);
        fencelock_lock_free(lock);
    }
    return NULL;
}

static void g9_a_child_forked_during_calls_does_not_hang(const void *unused) {
    (void)unused;
    struct forking forking = {.client = connected("memory:")};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, keep_calling, &forking);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0) {
            fencelock_client *own = connected("memory:");
            fencelock_lock *lock = lock_of(own, "a");
            fencelock_lease *lease = acquired(lock);
            OK(fencelock_release(lease, &err));
            if (i % 2)
                exit(0);
            leave();
        }
        check_ends_well(child);
    }
    forking.stop = true;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    fencelock_client_free(forking.client);
}

typedef void (*leaving)(const char *url);

static void *wait_for_ever(void *lock) {
    fencelock_lease *lease;
    fencelock_acquire(lock, -1, &lease, NULL);
    return NULL;
}

static void with_a_held_lease(const char *url) {
    fencelock_lock *lock = lock_of(connected(url), "a");
    acquired(lock);
}

static void with_a_renewal(const char *url) {
    fencelock_lock *lock = lock_with(connected(url), "a", 300, true);
    acquired(lock);
    sleep_ms(80 + random_below(60));
}

static void with_waits(const char *url) {
    fencelock_client *client = connected(url);
    fencelock_lock *lock = lock_of(client, "a");
    acquired(lock);
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_ever, lock);
    OK(fencelock_acquire_async(lock, -1, free_what_came, NULL, NULL, &err));
    wait_for_queue(client, "a", 2);
}

static void with_everything_freed(const char *url) {
    fencelock_client *client = connected(url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease_free(acquired(lock));
    fencelock_lock_free(lock);
    fencelock_client_free(client);
}

static fencelock_lease *of_the_handler;

static void release_at_exit(void) {
    CHECK_IS(fencelock_release(of_the_handler, NULL), FENCELOCK_OK);
    fencelock_lease_free(of_the_handler);
}

/* Registered before the library's own handler, so it runs after that. */
static void with_a_handler_that_runs_late(const char *url) {
    atexit(release_at_exit);
    of_the_handler = acquired(lock_of(connected(url), "a"));
}

static void with_a_handler_that_runs_early(const char *url) {
    fencelock_client *client = connected(url);
    atexit(release_at_exit);
    of_the_handler = acquired(lock_of(client, "a"));
}

static const leaving LEAVING[] = {with_a_held_lease,     with_a_renewal,
                                  with_waits,            with_everything_freed,
                                  with_a_handler_that_runs_late, with_a_handler_that_runs_early};

/* Ends processes, and looks how: quick, quiet, with code 0, and the lock is free at once. */
static void g7_exit_is_quick_and_quiet_and_releases(const void *backend) {
    struct space space;
    space_start(&space, backend);
    for (size_t i = 0; i < sizeof LEAVING / sizeof *LEAVING; i++) {
        int before[2];
        CHECK_IS(pipe(before), 0);
        double begun = now_s();
        pid_t child = fork();
        if (child == 0) {
            /* The harness takes anything that is printed for a failure. */
            LEAVING[i](space.url);
            double now = now_s();
            CHECK_IS(write(before[1], &now, sizeof now), sizeof now);
            exit(0);
        }
        close(before[1]);
        double left;
        if (read(before[0], &left, sizeof left) != sizeof left)
            FAIL("way %zu of leaving ended early", i);
        /* It had the lock by then: the one before left nothing behind. */
        if (left - begun > 10)
            FAIL("the way before %zu of leaving kept the lock", i);
        close(before[0]);
        check_ends_well(child);
        /* 500 ms, and room for a busy machine. */
        if (now_s() - left > 2.5)
            FAIL("way %zu of leaving took %.2f s", i, now_s() - left);
    }
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease;
    double start = now_s();
    OK(fencelock_acquire(lock, 20000, &lease, &err));
    CHECK(now_s() - start < 3);
    OK(fencelock_release(lease, &err));
    fencelock_lease_free(lease), fencelock_lock_free(lock);
    OK(fencelock_client_close(client, &err));
    fencelock_client_free(client);
    space_end(&space);
}

/* GCC 12's allocator for it keeps what threads of the parent had locked, and a child hangs in malloc. */
#ifdef __SANITIZE_ADDRESS__
#define NOT_DURING_CALLS "AddressSanitizer itself does not survive such a fork"
#else
#define NOT_DURING_CALLS NULL
#endif

void add_process_tests(void) {
    test_on_each_backend("processes.g9_a_child_touches_nothing_of_its_parent",
                         g9_a_child_touches_nothing_of_its_parent, CLEAN);
    test_on_each_backend("processes.g9_a_new_client_in_a_child_works", g9_a_new_client_in_a_child_works,
                         CLEAN);
    test_add("processes.g9_a_child_forked_during_calls_does_not_hang",
             g9_a_child_forked_during_calls_does_not_hang, NULL, CLEAN, NOT_DURING_CALLS);
    test_on_each_backend("processes.g7_exit_is_quick_and_quiet_and_releases",
                         g7_exit_is_quick_and_quiet_and_releases, CLEAN);
}
