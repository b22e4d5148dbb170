/* A flash sale: many workers buy the same product at once, and every unit is sold exactly once.
 *
 * How the lock is used stands in worker.c; how a store checks fencing tokens in store.c. */
#include <errno.h>
#include <fencelock.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sale.h"
#include "store.h"

static const char USAGE[] =
    "usage: flash_sale [--url URL] [--stock N] [--workers N] [--no-lock | --crash]\n"
    "\n"
    "Sells the stock of product 123, one unit at a time, to workers that all want it at once.\n"
    "\n"
    "  --url URL    where the lock is kept, such as redis://host/ (default: what FENCELOCK_URL says,\n"
    "               else files of this machine); workers are processes, with memory: threads\n"
    "  --stock N    units to sell (default 2000)\n"
    "  --workers N  workers that buy (default 8)\n"
    "  --no-lock    do not lock: shows how much is oversold then\n"
    "  --crash      kill a worker while it holds the lock: shows how the others go on when its ttl\n"
    "               is over\n";

enum { MOST_WORKERS = 1000, TTL_MS = 30000, TTL_CRASH_MS = 2000 };

struct options {
    const char *url;
    long stock;
    int workers;
    bool no_lock, crash, processes;
};

struct worker {
    struct job job;
    pid_t process;
    pthread_t thread;
    fencelock_client *client;
};

/* What came of the sale. */
struct result {
    long outcomes[FAILED + 1];
    size_t waits;
    double *waited_ms;
    double first, last;
};

double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void report(const struct job *job, struct turn turn) {
    /* Short enough to be written in one piece, also where many write. */
    if (write(job->report, &turn, sizeof turn) != (ssize_t)sizeof turn)
        abort();
}

static long number(const char *text, long least, long most) {
    char *end;
    errno = 0;
    long value = text ? strtol(text, &end, 10) : 0;
    if (text == NULL || *text == '\0' || *end != '\0' || errno || value < least || value > most) {
        fprintf(stderr, "flash_sale: %s is not in %ld to %ld\n", text ? text : "nothing", least, most);
        exit(2);
    }
    return value;
}

static struct options parse(char **argv) {
    struct options options = {.url = getenv("FENCELOCK_URL"), .stock = 2000, .workers = 8};
    for (char **argument = argv + 1; *argument != NULL; argument++) {
        if (strcmp(*argument, "--url") == 0 && argument[1] != NULL)
            options.url = *++argument;
        else if (strcmp(*argument, "--stock") == 0 && argument[1] != NULL)
            options.stock = number(*++argument, 1, 1000000);
        else if (strcmp(*argument, "--workers") == 0 && argument[1] != NULL)
            options.workers = (int)number(*++argument, 1, MOST_WORKERS);
        else if (strcmp(*argument, "--no-lock") == 0)
            options.no_lock = true;
        else if (strcmp(*argument, "--crash") == 0)
            options.crash = true;
        else {
            bool help = strcmp(*argument, "--help") == 0;
            fputs(USAGE, help ? stdout : stderr);
            exit(help ? 0 : 2);
        }
    }
    if (options.crash && (options.workers < 2 || options.no_lock)) {
        fputs("flash_sale: --crash needs the lock, and at least 2 workers\n", stderr);
        exit(2);
    }
    options.processes = options.url == NULL || strncmp(options.url, "memory:", 7) != 0;
    return options;
}

static fencelock_client *connect_or_end(const char *url) {
    fencelock_client *client;
    fencelock_error *err;
    if (fencelock_connect(url, &client, &err) == FENCELOCK_OK)
        return client;
    fprintf(stderr, "flash_sale: %s\n", fencelock_error_message(err));
    fencelock_error_free(err);
    exit(1);
}

static void *run_thread(void *worker) {
    run_worker(&((struct worker *)worker)->job, ((struct worker *)worker)->client);
    return NULL;
}

/* A process has a client of its own, made after the fork. Threads share one. */
static void start(struct worker *worker, bool as_process) {
    if (!as_process) {
        pthread_create(&worker->thread, NULL, run_thread, worker);
        return;
    }
    worker->process = fork();
    if (worker->process == 0) {
        fencelock_client *client = connect_or_end(worker->job.url);
        run_worker(&worker->job, client);
        fencelock_client_close(client, NULL);
        fencelock_client_free(client);
        exit(0);
    }
}

static void note(struct result *result, struct turn turn) {
    result->outcomes[turn.outcome]++;
    if (turn.outcome != SOLD)
        return;
    result->waited_ms = realloc(result->waited_ms, (result->waits + 1) * sizeof *result->waited_ms);
    result->waited_ms[result->waits++] = (turn.start - turn.asked) * 1000;
    result->first = result->waits == 1 || turn.start < result->first ? turn.start : result->first;
    result->last = turn.end > result->last ? turn.end : result->last;
}

/* The whole sale. False when a worker failed. */
static bool sell(const struct options *options, const char *folder, const char *url,
                 struct result *result) {
    struct worker *workers = calloc((size_t)options->workers, sizeof *workers);
    fencelock_client *shared = options->processes ? NULL : connect_or_end(url);
    int reports[2];
    if (workers == NULL || pipe(reports) != 0)
        return false;
    double opens_at = now_s() + (options->processes ? 0.5 : 0);
    for (int i = 0; i < options->workers; i++) {
        bool crashes = options->crash && i == 0;
        workers[i].client = shared;
        workers[i].job = (struct job){
            .worker = i,
            .url = url,
            .folder = folder,
            .opens_at = opens_at,
            .ttl_ms = options->crash ? TTL_CRASH_MS : TTL_MS,
            .renew = !crashes || options->processes,
            .no_lock = options->no_lock,
            /* When a quarter of the stock is sold. */
            .crash_after = crashes ? options->stock / (4 * options->workers) : -1,
            .report = reports[1],
        };
        start(&workers[i], options->processes);
    }

    int left = options->workers;
    struct turn turn;
    while (left > 0 && read(reports[0], &turn, sizeof turn) == (ssize_t)sizeof turn) {
        if (turn.outcome == CRASHED && options->processes)
            kill(workers[turn.worker].process, SIGKILL);
        if (turn.outcome == CRASHED || turn.outcome == SOLD_OUT || turn.outcome == FAILED)
            left--;
        note(result, turn);
    }
    bool ended_well = true;
    for (int i = 0; i < options->workers; i++) {
        int status = 0;
        if (options->processes)
            waitpid(workers[i].process, &status, 0);
        else
            pthread_join(workers[i].thread, NULL);
        ended_well = ended_well && (status == 0 || (options->crash && i == 0));
    }
    if (shared != NULL)
        fencelock_client_close(shared, NULL);
    fencelock_client_free(shared);
    free(workers);
    close(reports[0]), close(reports[1]);
    return ended_well && result->outcomes[FAILED] == 0;
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Prints what came of it; whether it is as promised. */
static bool print(const struct options *options, const char *folder, const char *url,
                  struct result *result) {
    size_t orders;
    uint64_t *tokens = store_tokens(folder, &orders);
    bool rise = true;
    for (size_t i = 1; i < orders; i++)
        rise = rise && tokens[i] > tokens[i - 1];
    free(tokens);
    long left = store_read_stock(folder, 0), sold = (long)orders;
    long oversold = sold > options->stock ? sold - options->stock : 0;
    qsort(result->waited_ms, result->waits, sizeof *result->waited_ms, by_size);

    printf("Flash sale of product 123: %d %s, ", options->workers,
           options->processes ? "processes" : "threads");
    if (options->no_lock)
        printf("no lock\n");
    else
        printf("lock in %.*s\n", (int)strcspn(url, ":"), url);
    printf("total       %ld\nsold        %ld\nleft        %ld\noversold    %ld\n", options->stock, sold,
           left, oversold);
    if (result->waits > 0) {
        printf("orders/s    %.0f\n", (double)sold / (result->last - result->first));
        printf("wait p50    %.2f ms\n", result->waited_ms[result->waits / 2]);
        printf("wait p99    %.2f ms\n", result->waited_ms[result->waits * 99 / 100]);
    }
    if (options->no_lock) {
        printf("WITHOUT THE LOCK: %ld of %ld orders sold what was not there\n", oversold, sold);
        return true;
    }
    printf("lost        %ld (leases that ended before the write: nothing written)\n",
           result->outcomes[LOST]);
    printf("refused     %ld (orders with an older token than the store had seen)\n",
           result->outcomes[REFUSED]);
    printf("tokens      %s in the order of the orders\n", rise ? "rise" : "DO NOT RISE");
    if (options->crash)
        printf("crashed     %ld worker while it held the lock\n", result->outcomes[CRASHED]);
    bool fine = sold == options->stock && left == 0 && rise &&
                result->outcomes[CRASHED] == (options->crash ? 1 : 0);
    puts(fine ? "OK: every unit was sold exactly once" : "FAILED: see the figures above");
    return fine;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    return remove(path);
}

int main(int argc, char **argv) {
    (void)argc;
    struct options options = parse(argv);
    char folder[] = "/tmp/flash_sale-XXXXXX", files[64];
    if (mkdtemp(folder) == NULL || !store_create(folder, options.stock)) {
        perror("flash_sale");
        return 1;
    }
    snprintf(files, sizeof files, "file://%s/locks", folder);
    const char *url = options.url ? options.url : files;
    struct result result = {.waits = 0};
    bool fine = sell(&options, folder, url, &result);
    fine = print(&options, folder, url, &result) && fine;
    free(result.waited_ms);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return fine ? 0 : 1;
}
