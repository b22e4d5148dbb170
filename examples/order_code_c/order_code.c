/* Order codes: many threads draw the next code from one sequence, and no code is given out twice.
 *
 * How the lock is used stands in worker.c; what it protects in sequence.c. */
#include <fencelock.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

static const char USAGE[] =
    "usage: order_code [--url URL] [--threads N] [--no-lock]\n"
    "\n"
    "Draws order codes, one in each thread, all at once.\n"
    "\n"
    "  --url URL    where the lock is kept, such as redis://host/ (default: what FENCELOCK_URL says,\n"
    "               else files of this machine)\n"
    "  --threads N  threads, each of which draws one code (default 20)\n"
    "  --no-lock    do not lock: shows how many orders get the same code then\n";

enum { MOST_THREADS = 1000 };

struct thread {
    pthread_t id;
    pthread_barrier_t *start;
    fencelock_lock *lock;
    const char *sequence;
    struct draw draw;
    bool drawn;
};

static void *run(void *argument) {
    struct thread *thread = argument;
    pthread_barrier_wait(thread->start);
    thread->drawn = draw_code(thread->lock, thread->sequence, &thread->draw);
    return NULL;
}

/* In the order in which the lock was granted; without a lock, of the codes. */
static int by_grant(const void *one, const void *other) {
    const struct draw *a = &((const struct thread *)one)->draw, *b = &((const struct thread *)other)->draw;
    if (a->token != b->token)
        return a->token < b->token ? -1 : 1;
    return strcmp(a->code, b->code);
}

/* Prints what was drawn; whether it is as promised. */
static bool print(struct thread *threads, size_t number, const char *place, bool locked) {
    qsort(threads, number, sizeof *threads, by_grant);
    size_t different = 0;
    bool rise = true;
    double longest = 0;
    printf("Order codes: %zu threads, %s%s\n", number, locked ? "lock in " : "", place);
    for (size_t i = 0; i < number; i++) {
        const struct draw *draw = &threads[i].draw;
        if (locked)
            printf("%s  token %llu\n", draw->code, (unsigned long long)draw->token);
        else
            printf("%s\n", draw->code);
        bool higher = i == 0 || strcmp(draw->code, threads[i - 1].draw.code) > 0;
        different += higher;
        rise = rise && higher && (i == 0 || draw->token > threads[i - 1].draw.token);
        longest = draw->waited_ms > longest ? draw->waited_ms : longest;
    }
    printf("drawn       %zu\ndifferent   %zu\n", number, different);
    if (!locked) {
        printf("WITHOUT THE LOCK: %zu of %zu orders got a code that was taken\n", number - different,
               number);
        return true;
    }
    printf("longest     %.2f ms of waiting\n", longest);
    printf("codes       %s in the order of the grants\n", rise ? "rise" : "DO NOT RISE");
    bool fine = rise && different == number;
    puts(fine ? "OK: every order has a code of its own" : "FAILED: see the figures above");
    return fine;
}

static bool draw_codes(const char *url, const char *sequence, size_t number, bool locked) {
    /* One client for all threads: it has one connection and one watchdog, whatever their number. */
    fencelock_client *client = NULL;
    fencelock_lock *lock = NULL;
    fencelock_error *err = NULL;
    if (locked && (fencelock_connect(url, &client, &err) != FENCELOCK_OK ||
                   fencelock_lock_new(client, LOCK, NULL, &lock, &err) != FENCELOCK_OK)) {
        fprintf(stderr, "order_code: %s\n", fencelock_error_message(err));
        fencelock_error_free(err);
        fencelock_client_free(client);
        return false;
    }
    struct thread *threads = calloc(number, sizeof *threads);
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)number);
    for (size_t i = 0; i < number; i++) {
        threads[i].start = &start;
        threads[i].lock = lock;
        threads[i].sequence = sequence;
        if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0)
            abort();
    }
    bool drawn = true;
    for (size_t i = 0; i < number; i++) {
        pthread_join(threads[i].id, NULL);
        drawn = drawn && threads[i].drawn;
    }
    pthread_barrier_destroy(&start);
    char place[32] = "no lock";
    if (locked)
        snprintf(place, sizeof place, "%.*s", (int)strcspn(url, ":"), url);
    bool fine = drawn && print(threads, number, place, locked);
    free(threads);
    fencelock_lock_free(lock);
    if (client != NULL)
        fencelock_client_close(client, NULL);
    fencelock_client_free(client);
    return fine;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    return remove(path);
}

int main(int argc, char **argv) {
    const char *url = getenv("FENCELOCK_URL");
    long number = 20;
    bool locked = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--url") == 0 && i + 1 < argc)
            url = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            number = strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--no-lock") == 0)
            locked = false;
        else
            number = 0;
    }
    if (number < 1 || number > MOST_THREADS) {
        fputs(USAGE, stderr);
        return 2;
    }
    char folder[] = "/tmp/order_code-XXXXXX", sequence[64], files[64];
    if (mkdtemp(folder) == NULL) {
        perror("order_code");
        return 1;
    }
    snprintf(sequence, sizeof sequence, "%s/last", folder);
    snprintf(files, sizeof files, "file://%s/locks", folder);
    bool fine = sequence_create(sequence) &&
                draw_codes(url ? url : files, sequence, (size_t)number, locked);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return fine ? 0 : 1;
}
