/*
 * Runs tests, each in a process of its own: one that crashes, hangs or leaves threads behind spoils no
 * other, and each starts with a library that has done nothing yet. The process that starts them never
 * calls the library.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdarg.h>
#include <stdbool.h>

typedef void (*test_function)(const void *argument);

/* What a test may leave. */
enum { CLEAN = 0, LEAVES_OBJECTS = 1 };

/* `name` is copied; `argument` has to live on. `skip` says why the test is not run, or is NULL. */
void test_add(const char *name, test_function run, const void *argument, int leaves, const char *skip);

/* usage: PROGRAM [--jobs N] [--junit FILE] [--list] [--without PART]... [PART OF A NAME]... */
int tests_main(int argc, char **argv);

/* Ends the test as failed. */
_Noreturn void fail_at(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define FAIL(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            FAIL("not true: %s", #condition);                                                      \
    } while (0)

/* Compares whole numbers. */
#define CHECK_IS(found, wanted)                                                                    \
    do {                                                                                           \
        long long found_ = (long long)(found), wanted_ = (long long)(wanted);                      \
        if (found_ != wanted_)                                                                     \
            FAIL("%s is %lld, not %lld (%s)", #found, found_, wanted_, #wanted);                   \
    } while (0)

#define CHECK_TEXT(found, wanted)                                                                  \
    do {                                                                                           \
        const char *found_ = (found), *wanted_ = (wanted);                                         \
        if (found_ == NULL || strcmp(found_, wanted_) != 0)                                        \
            FAIL("%s is \"%s\", not \"%s\"", #found, found_ ? found_ : "(NULL)", wanted_);         \
    } while (0)

#endif
