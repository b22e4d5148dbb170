/* What the parts of the flash sale tell each other. */
#ifndef SALE_H
#define SALE_H

#include <stdbool.h>
#include <stdint.h>

/* What one worker is told. */
struct job {
    int worker;
    const char *url;
    const char *folder;
    /* Seconds of the monotonic clock: when the sale opens. */
    double opens_at;
    int64_t ttl_ms;
    /* Whether the library renews the lease, as it should. */
    bool renew;
    bool no_lock;
    /* Crash in the turn after this many; -1 = never. */
    long crash_after;
    /* Where turns are reported. */
    int report;
};

/* How a turn ended. */
enum outcome {
    SOLD,
    SOLD_OUT,
    /* The lease was lost before the write, so nothing was written. */
    LOST,
    /* The store refused the order: it has seen a higher token. */
    REFUSED,
    /* The worker died while it held the lock. */
    CRASHED,
    FAILED
};

/* One turn with the lock, as it is reported. Times are seconds of the monotonic clock. */
struct turn {
    int worker;
    enum outcome outcome;
    uint64_t token;
    double asked, start, end;
};

double now_s(void);
void report(const struct job *job, struct turn turn);

/* worker.c: buys until everything is sold. */
struct fencelock_client;
void run_worker(const struct job *job, struct fencelock_client *client);

#endif
