/* A hostile host, inside one process: threads, signals, panics, very many turns. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { CROWD = 20, TURNS = 200000 };

struct crowd {
    fencelock_client *client;
    fencelock_lock *lock;
    pthread_barrier_t barrier;
    bool frees;
};

/* Calls whatever there is until the client is closed or gone. */
static void *caller(void *argument) {
    struct crowd *crowd = argument;
    pthread_barrier_wait(&crowd->barrier);
    for (;;) {
        fencelock_lease *lease;
        fencelock_error *err;
        fencelock_code code = fencelock_acquire(crowd->lock, 1000, &lease, &err);
        fencelock_error_free(err);
        if (code == FENCELOCK_OK) {
            /* A release meets the close, which has released the lease or is about to. */
            fencelock_code released = fencelock_release(lease, NULL);
            CHECK(released == FENCELOCK_OK || released == FENCELOCK_LOST ||
                  released == FENCELOCK_UNAVAILABLE || released == FENCELOCK_CLOSED);
        } else {
            CHECK(code == FENCELOCK_TIMEOUT || code == FENCELOCK_CLOSED || code == FENCELOCK_UNAVAILABLE ||
                  (crowd->frees && code == FENCELOCK_INVALID_ARGUMENT));
        }
        fencelock_lease_free(lease);
        fencelock_info *info;
        fencelock_code seen = fencelock_inspect(crowd->client, "a", &info, NULL);
        fencelock_info_free(info);
        if (code == FENCELOCK_CLOSED || code == FENCELOCK_INVALID_ARGUMENT || seen == FENCELOCK_CLOSED)
            return NULL;
    }
}

static void run_crowd(const char *backend, bool frees) {
    struct space space;
    space_start(&space, backend);
    struct crowd crowd = {.client = connected(space.url), .frees = frees};
    crowd.lock = lock_of(crowd.client, "a");
    pthread_t threads[CROWD];
    pthread_barrier_init(&crowd.barrier, NULL, CROWD + 1);
    for (int i = 0; i < CROWD; i++)
        pthread_create(&threads[i], NULL, caller, &crowd);
    pthread_barrier_wait(&crowd.barrier);
    sleep_ms(100);
    fencelock_client *client = crowd.client;
    if (frees) {
        fencelock_lock_free(crowd.lock);
        fencelock_client_free(client);
    } else {
        double start = now_s();
        OK(fencelock_client_close(client, &err));
        OK(fencelock_client_close(client, &err));
        CHECK(now_s() - start < 5);
    }
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&crowd.barrier);
    fencelock_lock_free(crowd.lock);
    fencelock_client_free(client);
    space_end(&space);
}

static void a_client_is_closed_during_calls_of_20_threads(const void *backend) {
    run_crowd(backend, false);
}

static void objects_are_freed_during_calls_of_20_threads(const void *backend) {
    run_crowd(backend, true);
}

static void *close_client(void *client) {
    OK(fencelock_client_close(client, &err));
    return NULL;
}

static void g7_closing_ends_waits(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url), *other = connected(space.url);
    fencelock_lock *theirs = lock_of(other, "a"), *ours = lock_of(client, "a");
    fencelock_lease *held = acquired(theirs), *none;
    pthread_t thread;
    pthread_create(&thread, NULL, close_client, client);
    CODE(fencelock_acquire(ours, -1, &none, &err), FENCELOCK_CLOSED);
    pthread_join(thread, NULL);
    fencelock_lease_free(held);
    fencelock_lock_free(ours), fencelock_lock_free(theirs);
    OK(fencelock_client_close(other, &err));
    fencelock_client_free(client), fencelock_client_free(other);
    space_end(&space);
}

static volatile sig_atomic_t signals;

static void count_signal(int number) {
    (void)number;
    signals++;
}

struct waiting {
    fencelock_lock *lock;
    fencelock_lease *lease;
};

static void *wait_for_lock(void *argument) {
    struct waiting *waiting = argument;
    waiting->lease = acquired(waiting->lock);
    return NULL;
}

/* Handled without SA_RESTART: system calls of the wait end with EINTR. */
static void signals_do_not_end_a_wait(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *holder = acquired(lock);
    struct sigaction action = {.sa_handler = count_signal};
    sigaction(SIGUSR1, &action, NULL);
    struct waiting waiting = {.lock = lock};
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_lock, &waiting);
    wait_for_queue(client, "a", 1);
    for (int i = 1; i <= 50; i++) {
        pthread_kill(thread, SIGUSR1);
        while (signals < i)
            sched_yield();
    }
    wait_for_queue(client, "a", 1);
    OK(fencelock_release(holder, &err));
    pthread_join(thread, NULL);
    CHECK(fencelock_lease_is_held(waiting.lease));
    CHECK_IS(signals, 50);
    fencelock_lease_free(holder), fencelock_lease_free(waiting.lease);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
    space_end(&space);
}

/* Threads of the library would end the process by a signal that the host has blocked in its own. */
static void signals_of_the_process_are_left_to_the_host(const void *backend) {
    struct space space;
    space_start(&space, backend);
    fencelock_client *client = connected(space.url);
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease = acquired(lock);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGTERM);
    CHECK_IS(sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = 20}), SIGTERM);
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
    space_end(&space);
}

static void a_panic_becomes_an_error(const void *unused) {
    (void)unused;
    fencelock_error *err;
    CHECK_IS(fencelock_test_panic(&err), FENCELOCK_INTERNAL);
    CHECK(strstr(fencelock_error_message(err), "asked for by a test") != NULL);
    fencelock_error_free(err);
    CHECK_IS(fencelock_test_panic(NULL), FENCELOCK_INTERNAL);
    fencelock_client *client = connected("memory:");
    CHECK_IS(fencelock_test_panic(NULL), FENCELOCK_INTERNAL);
    fencelock_client_free(client);
}

struct lines {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char last[512];
    fencelock_client *client;
};

static void keep_line(int32_t level, const char *message, void *data) {
    struct lines *lines = data;
    CHECK(level == FENCELOCK_LOG_WARNING || level == FENCELOCK_LOG_ERROR);
    CHECK(strchr(message, '\n') == NULL);
    /* It may call the library. */
    fencelock_info *info;
    OK(fencelock_inspect(lines->client, "a", &info, &err));
    fencelock_info_free(info);
    pthread_mutex_lock(&lines->mutex);
    snprintf(lines->last, sizeof lines->last, "%s", message);
    pthread_cond_broadcast(&lines->changed);
    pthread_mutex_unlock(&lines->mutex);
}

static void never_logged(int32_t level, const char *message, void *data) {
    (void)data;
    FAIL("logged at %d: %s", level, message);
}

static void warnings_reach_the_log(const void *backend) {
    struct space space;
    space_start(&space, backend);
    struct lines lines = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    lines.client = connected(space.url);
    fencelock_set_log(never_logged, NULL);
    fencelock_set_log(keep_line, &lines);
    /* Short enough to be noticed soon; no shorter, or a busy machine lets the session of ZooKeeper end too. */
    fencelock_lock *lock = lock_with(lines.client, "a", 3000, true);
    fencelock_lease *lease = acquired(lock);
    OK(fencelock_force_release(lines.client, "a", NULL, &err));
    OK(fencelock_lease_wait_lost(lease, -1, NULL, &err));
    pthread_mutex_lock(&lines.mutex);
    while (lines.last[0] == '\0')
        pthread_cond_wait(&lines.changed, &lines.mutex);
    CHECK(strstr(lines.last, "\"a\"") != NULL || strstr(lines.last, "lock=") != NULL);
    pthread_mutex_unlock(&lines.mutex);
    fencelock_set_log(NULL, NULL);
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    OK(fencelock_client_close(lines.client, &err));
    fencelock_client_free(lines.client);
    space_end(&space);
}

static long resident_kb(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%*s %ld", &pages) == 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void turns(fencelock_client *client, long number) {
    char name[32];
    for (long i = 0; i < number; i++) {
        /* Distinct names: a map of locks would grow. */
        snprintf(name, sizeof name, "n%ld", i);
        fencelock_lock *lock;
        fencelock_lease *lease;
        CHECK_IS(fencelock_lock_new(client, name, NULL, &lock, NULL), FENCELOCK_OK);
        CHECK_IS(fencelock_acquire(lock, -1, &lease, NULL), FENCELOCK_OK);
        CHECK_IS(fencelock_release(lease, NULL), FENCELOCK_OK);
        fencelock_lease_free(lease);
        fencelock_lock_free(lock);
    }
}

/* FENCELOCK_TEST_TURNS is another number: fewer for a tool that checks every access, and whose own memory
 * grows, so that then nothing is judged; a million of them by hand. */
static void memory_is_flat_over_many_turns(const void *unused) {
    (void)unused;
    const char *given = getenv("FENCELOCK_TEST_TURNS");
    long number = given != NULL ? atol(given) : TURNS;
    fencelock_client *client = connected("memory:");
    turns(client, number / 10);
    long before = resident_kb();
    turns(client, number);
    long grown = resident_kb() - before;
    if (number >= TURNS && grown > 2048)
        FAIL("%ld turns have left %ld KiB", number, grown);
    fencelock_client_free(client);
}

void add_hostility_tests(void) {
    test_on_each_backend("hostility.a_client_is_closed_during_calls_of_20_threads",
                         a_client_is_closed_during_calls_of_20_threads, CLEAN);
    test_on_each_backend("hostility.objects_are_freed_during_calls_of_20_threads",
                         objects_are_freed_during_calls_of_20_threads, CLEAN);
    test_on_each_backend("hostility.g7_closing_ends_waits", g7_closing_ends_waits, CLEAN);
    test_on_each_backend("hostility.signals_do_not_end_a_wait", signals_do_not_end_a_wait, CLEAN);
    test_on_each_backend("hostility.signals_of_the_process_are_left_to_the_host",
                         signals_of_the_process_are_left_to_the_host, CLEAN);
    test_add("hostility.a_panic_becomes_an_error", a_panic_becomes_an_error, NULL, CLEAN, NULL);
    test_on_each_backend("hostility.warnings_reach_the_log", warnings_reach_the_log, CLEAN);
    test_add("hostility.memory_is_flat_over_many_turns", memory_is_flat_over_many_turns, NULL, CLEAN, NULL);
}
