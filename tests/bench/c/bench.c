/* Acquire and release of a free lock from C: ours, what hiredis needs for the same, and Rust, turn by
 * turn in one run, as ratios.
 *
 * usage: bench URL [ROUNDS]
 *
 * FENCELOCK_BENCH_RUST names the program of tests/bench, whose `agent peer` is the Rust figure; without it
 * there is none. */
#include <fencelock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "recorded.h"

/* Short turns, and many of them: so all that is compared happens within a fraction of a second. */
enum { TURN = 60, WARM_UP = 500, TTL_MS = 30000, MOST_ROUNDS = 10000 };

static _Noreturn void give_up(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- the cycles ---- */

static void of_fencelock(void *lock) {
    fencelock_lease *lease;
    if (fencelock_acquire(lock, -1, &lease, NULL) != FENCELOCK_OK ||
        fencelock_release(lease, NULL) != FENCELOCK_OK)
        give_up("fencelock", "no lock, or lost");
    fencelock_lease_free(lease);
}

struct bare {
    redisContext *redis;
    struct recorded recorded;
};

static void of_scripts(void *data) {
    struct bare *bare = data;
    replay(bare->redis, &bare->recorded);
}

/* The lock that services write by hand: no queue, no token, no renewal. */
static void by_hand(void *data) {
    static const char COMPARE_AND_DELETE[] =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    static char hash[41];
    static const char OWNER[] = "0123456789abcdef0123456789abcdef";
    redisContext *redis = data;
    if (hash[0] == '\0') {
        redisReply *loaded = checked(redis, redisCommand(redis, "SCRIPT LOAD %s", COMPARE_AND_DELETE));
        snprintf(hash, sizeof hash, "%s", loaded->str);
        freeReplyObject(loaded);
    }
    redisReply *reply = checked(redis, redisCommand(redis, "SET bench/by-hand %s NX PX %d", OWNER, TTL_MS));
    if (reply->type != REDIS_REPLY_STATUS)
        give_up("SET NX PX", "the key is there already");
    freeReplyObject(reply);
    reply = checked(redis, redisCommand(redis, "EVALSHA %s 1 bench/by-hand %s", hash, OWNER));
    if (reply->integer != 1)
        give_up("compare and delete", "the key is another's");
    freeReplyObject(reply);
}

/* ---- Rust, in a process of its own ---- */

struct agent {
    FILE *to, *from;
    pid_t process;
};

static struct agent start_agent(const char *program, const char *url) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0)
        give_up("pipe", "no descriptors");
    pid_t process = fork();
    if (process == 0) {
        dup2(to[0], STDIN_FILENO), dup2(from[1], STDOUT_FILENO);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execl(program, program, "agent", "peer", url, (char *)NULL);
        perror(program);
        _exit(127);
    }
    close(to[0]), close(from[1]);
    return (struct agent){fdopen(to[1], "w"), fdopen(from[0], "r"), process};
}

static void end_agent(struct agent *agent) {
    fclose(agent->to), fclose(agent->from);
    waitpid(agent->process, NULL, 0);
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(const double *numbers, size_t count) {
    double *sorted = malloc(count * sizeof *sorted);
    memcpy(sorted, numbers, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    double middle = sorted[count / 2];
    free(sorted);
    return middle;
}

/* It answers with the nanoseconds of each cycle, as `[1,2,3]`. */
static double turn_of_agent(struct agent *agent) {
    double times[TURN];
    fprintf(agent->to, "[\"cycle\", \"fencelock\", %d]\n", TURN);
    fflush(agent->to);
    for (int i = 0; i < TURN; i++) {
        double nanoseconds;
        if (fscanf(agent->from, "%*[[,]%lf", &nanoseconds) != 1)
            give_up("the Rust program", "no answer");
        times[i] = nanoseconds / 1e3;
    }
    if (fscanf(agent->from, "]") == EOF)
        give_up("the Rust program", "half an answer");
    fgetc(agent->from);
    return median(times, TURN);
}

/* ---- turns and ratios ---- */

enum { OURS, SCRIPTS, BY_HAND, RUST, SUBJECTS };

struct subject {
    const char *name;
    void (*cycle)(void *);
    void *data;
    double medians[MOST_ROUNDS];
};

/* The median of the microseconds of a cycle. */
static double turn(const struct subject *subject) {
    if (subject->cycle == NULL)
        return turn_of_agent(subject->data);
    double times[TURN];
    for (int i = 0; i < TURN; i++) {
        double start = now_us();
        subject->cycle(subject->data);
        times[i] = now_us() - start;
    }
    return median(times, TURN);
}

static void print_row(const struct subject *subjects, int other, int rounds, double target) {
    static double ratios[MOST_ROUNDS];
    for (int i = 0; i < rounds; i++)
        ratios[i] = subjects[OURS].medians[i] / subjects[other].medians[i];
    double ratio = median(ratios, (size_t)rounds);
    char wanted[16] = "";
    if (target > 0)
        snprintf(wanted, sizeof wanted, "≤ %.1f", target);
    const char *verdict = target == 0 ? "" : ratio <= target ? "met" : "MISSED";
    printf("| C, fencelock / %s | %.2f | %s | %s | %.1f against %.1f µs |\n", subjects[other].name, ratio,
           wanted, verdict, median(subjects[OURS].medians, (size_t)rounds),
           median(subjects[other].medians, (size_t)rounds));
}

int main(int argc, char **argv) {
    char host[256];
    int port, rounds = argc > 2 ? atoi(argv[2]) : 100;
    if (argc < 2 || rounds < 1 || rounds > MOST_ROUNDS ||
        sscanf(argv[1], "redis://%255[^:/]:%d", host, &port) != 2)
        give_up("usage", "bench redis://HOST:PORT/ [ROUNDS]");

    /* Before there are threads: a child of a process with them would have to be careful. */
    const char *program = getenv("FENCELOCK_BENCH_RUST");
    struct agent agent;
    if (program != NULL)
        agent = start_agent(program, argv[1]);

    fencelock_client *client;
    fencelock_lock *lock;
    if (fencelock_connect(argv[1], &client, NULL) != FENCELOCK_OK ||
        fencelock_lock_new(client, "bench/c", NULL, &lock, NULL) != FENCELOCK_OK)
        give_up(argv[1], "no connection");
    struct bare bare = {.redis = connect_to(host, port)};
    record(&bare.recorded, host, port, of_fencelock, lock);

    static struct subject subjects[SUBJECTS] = {
        [OURS] = {.name = "fencelock", .cycle = of_fencelock},
        [SCRIPTS] = {.name = "its two scripts by hiredis", .cycle = of_scripts},
        [BY_HAND] = {.name = "SET NX PX and compare-and-delete by hiredis", .cycle = by_hand},
        [RUST] = {.name = "Rust"},
    };
    subjects[OURS].data = lock;
    subjects[SCRIPTS].data = &bare;
    subjects[BY_HAND].data = bare.redis;
    subjects[RUST].data = &agent;
    int count = program != NULL ? SUBJECTS : RUST;

    for (int i = 0; i < count; i++)
        for (int turns = 0; turns < WARM_UP / TURN; turns++)
            turn(&subjects[i]);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            /* There and back, so that none always comes after the same one. */
            int next = round % 2 ? count - 1 - i : i;
            subjects[next].medians[round] = turn(&subjects[next]);
        }

    puts("## Acquire and release of a free lock, from C\n\n| what | ratio | target | | median of a cycle |\n"
         "|---|---|---|---|---|");
    print_row(subjects, SCRIPTS, rounds, 0);
    print_row(subjects, BY_HAND, rounds, 0);
    if (program != NULL) {
        print_row(subjects, RUST, rounds, 1.6);
        end_agent(&agent);
    }
    redisFree(bare.redis);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
    return 0;
}
