/* Locks driven from C, ours and what hiredis needs for the same, turn by turn as the benchmark asks; the
 * protocol is that of `peers.py`, of which it knows `["cycle", lock, n]`. Called with the URL. */
#include <fencelock.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recorded.h"

enum { TTL_MS = 30000 };

static _Noreturn void give_up(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

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

struct subject {
    const char *name;
    void (*cycle)(void *);
    void *data;
};

static void answer(const struct subject *subject, long count) {
    for (long i = 0; i < count; i++) {
        int64_t start = now_ns();
        subject->cycle(subject->data);
        printf("%s%" PRId64, i == 0 ? "[" : ",", now_ns() - start);
    }
    puts("]");
    fflush(stdout);
}

int main(int argc, char **argv) {
    char host[256], line[256], name[64];
    int port;
    long count;
    if (argc != 2 || sscanf(argv[1], "redis://%255[^:/]:%d", host, &port) != 2)
        give_up("usage", "peers redis://HOST:PORT/");

    fencelock_client *client;
    fencelock_lock *lock;
    if (fencelock_connect(argv[1], &client, NULL) != FENCELOCK_OK ||
        fencelock_lock_new(client, "bench/c", NULL, &lock, NULL) != FENCELOCK_OK)
        give_up(argv[1], "no connection");
    struct bare bare = {.redis = connect_to(host, port)};
    record(&bare.recorded, host, port, of_fencelock, lock);
    const struct subject subjects[] = {
        {"fencelock", of_fencelock, lock},
        {"scripts", of_scripts, &bare},
        {"by-hand", by_hand, bare.redis},
    };

    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "[\"cycle\", \"%63[^\"]\",%ld]", name, &count) != 2)
            give_up("unknown", line);
        size_t i = 0;
        while (i < sizeof subjects / sizeof *subjects && strcmp(subjects[i].name, name) != 0)
            i++;
        if (i == sizeof subjects / sizeof *subjects)
            give_up("no such lock", name);
        answer(&subjects[i], count);
    }
    redisFree(bare.redis);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
    return 0;
}
