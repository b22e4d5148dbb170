/* What the tests share: spaces of a backend, and calls that have to succeed. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <fencelock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness.h"

/* Of the library that the tests are linked to; no header declares them. */
fencelock_code fencelock_test_kind(size_t number, fencelock_error **err);
fencelock_code fencelock_test_panic(fencelock_error **err);
size_t fencelock_test_open(void);

/* "memory", "file" and so on; ends with NULL. */
extern const char *const BACKENDS[];

/* An empty space of a backend, for one test. */
struct space {
    char url[1024];
    /* Of Redis: where raw commands go, and what its keys begin with. */
    char server[512], prefix[128];
    /* Of file: it goes with space_end(). */
    char directory[64];
    /* Whether inspect knows for how long a lock has been held, and what is left. */
    bool shows_times;
};

void space_start(struct space *space, const char *backend);
void space_end(struct space *space);

/* Sends COMMAND prefix+name ARGUMENTS... to the Redis server of a space. */
void redis_command(const struct space *space, const char *command, const char *name,
                   const char *const *arguments, size_t number);

/* Adds a test for each backend, as `name[backend]`, with the name of the backend as argument. */
void test_on_each_backend(const char *name, test_function run, int leaves);

/* Seconds since any instant; a pause; a number from 0 to limit - 1. */
double now_s(void);
void sleep_ms(long ms);
unsigned random_below(unsigned limit);

/* Fails the test with the message of the library unless the code is the wanted one; frees the error. */
#define OK(call) CODE(call, FENCELOCK_OK)
#define CODE(call, wanted)                                                                         \
    do {                                                                                           \
        fencelock_error *err = NULL;                                                               \
        fencelock_code code_ = (call);                                                             \
        check_code(__FILE__, __LINE__, #call, code_, (wanted), err);                               \
    } while (0)
void check_code(const char *file, int line, const char *call, fencelock_code found,
                fencelock_code wanted, fencelock_error *err);

fencelock_client *connected(const char *url);
fencelock_lock *lock_of(fencelock_client *client, const char *name);
/* ttl_ms 0 = the default */
fencelock_lock *lock_with(fencelock_client *client, const char *name, int64_t ttl_ms, bool renew);
fencelock_lease *acquired(fencelock_lock *lock);

/* Waits until the backend shows so many contenders, or so many objects are open. */
void wait_for_queue(fencelock_client *client, const char *name, size_t length);
void wait_for_open(size_t number);
/* Waits until the backend shows that nobody holds the name and nobody waits. */
void wait_for_free(fencelock_client *client, const char *name);

void check_nothing_is_open(void);

/* Each file's tests. */
void add_argument_tests(void);
void add_lease_tests(void);
void add_async_tests(void);
void add_hostility_tests(void);
void add_process_tests(void);
void add_conformance_tests(void);
void add_package_tests(void);
void add_example_tests(void);

#endif
