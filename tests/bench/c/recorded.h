/* The two script calls of one acquire and release, as the library sends them. */
#ifndef RECORDED_H
#define RECORDED_H

#include <hiredis.h>
#include <stdbool.h>

/* EVALSHA, hash, number of keys, five keys, owner value, channel prefix, token, tombstone. */
enum { WORDS = 12, TOKEN_AT = 10 };

struct call {
    int count;
    char *words[WORDS];
};

struct recorded {
    struct call contend, release;
};

/* Takes one cycle down from the server while `cycle` does it; the server knows the scripts then. */
void record(struct recorded *recorded, const char *host, int port, void (*cycle)(void *), void *data);

/* Sends both, with nothing around them; ends the program unless the lock was granted and released. */
void replay(redisContext *redis, const struct recorded *recorded);

/* A connection; a reply that is an error ends the program, as no connection does. */
redisContext *connect_to(const char *host, int port);
redisReply *checked(redisContext *redis, void *reply);

#endif
