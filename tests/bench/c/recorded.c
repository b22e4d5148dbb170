#include "recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static _Noreturn void give_up(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

redisContext *connect_to(const char *host, int port) {
    redisContext *redis = redisConnect(host, port);
    if (redis == NULL || redis->err != 0)
        give_up("Redis", redis != NULL ? redis->errstr : "no memory");
    return redis;
}

redisReply *checked(redisContext *redis, void *reply) {
    redisReply *checked = reply;
    if (checked == NULL)
        give_up("Redis", redis->errstr);
    if (checked->type == REDIS_REPLY_ERROR)
        give_up("Redis", checked->str);
    return checked;
}

static int hex(char digit) {
    return digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10;
}

/* One quoted word of a line of MONITOR, without its escapes; `end` is behind its last quote. */
static char *unquoted(const char *from, const char **end) {
    static const char ESCAPED[] = "n\nr\rt\ta\ab\b";
    char *word = malloc(strlen(from) + 1), *to = word;
    for (from++; *from != '"' && *from != '\0'; from++) {
        if (*from != '\\') {
            *to++ = *from;
        } else if (*++from == 'x') {
            *to++ = (char)(hex(from[1]) << 4 | hex(from[2]));
            from += 2;
        } else {
            const char *known = *from == '\0' ? NULL : strchr(ESCAPED, *from);
            *to++ = known != NULL ? known[1] : *from;
        }
    }
    *to = '\0';
    *end = from + (*from == '"');
    return word;
}

/* `1700000000.123456 [0 127.0.0.1:4711] "EVALSHA" "..."` as words. What a script itself calls has `lua` in
 * the place of the address, and is no call of a client. */
static bool parse(const char *line, struct call *call) {
    memset(call, 0, sizeof *call);
    if (strstr(line, " lua] ") != NULL)
        return false;
    for (const char *next = strchr(line, '"'); next != NULL; next = strchr(next, '"')) {
        char *word = unquoted(next, &next);
        if (call->count == 0 && strcasecmp(word, "EVALSHA") != 0) {
            free(word);
            return false;
        }
        if (call->count == WORDS)
            give_up("MONITOR", line);
        call->words[call->count++] = word;
    }
    return call->count > 0;
}

void record(struct recorded *recorded, const char *host, int port, void (*cycle)(void *), void *data) {
    redisContext *monitor = connect_to(host, port), *marker = connect_to(host, port);
    struct call *calls[] = {&recorded->contend, &recorded->release};
    size_t found = 0;
    /* The first one loads the scripts. */
    cycle(data);
    freeReplyObject(checked(monitor, redisCommand(monitor, "MONITOR")));
    cycle(data);
    freeReplyObject(checked(marker, redisCommand(marker, "ECHO the-cycle-is-over")));
    for (bool over = false; !over;) {
        void *line;
        struct call call;
        if (redisGetReply(monitor, &line) != REDIS_OK)
            give_up("MONITOR", monitor->errstr);
        const char *text = checked(monitor, line)->str;
        over = strstr(text, "\"the-cycle-is-over\"") != NULL;
        if (parse(text, &call)) {
            if (found == 2)
                give_up("more than two calls in one cycle", text);
            *calls[found++] = call;
        }
        freeReplyObject(line);
    }
    if (found != 2 || recorded->release.count != WORDS)
        give_up("MONITOR", "a cycle is not the two calls that this program knows");
    redisFree(monitor), redisFree(marker);
}

static redisReply *sent(redisContext *redis, const struct call *call) {
    return checked(redis, redisCommandArgv(redis, call->count, (const char **)call->words, NULL));
}

void replay(redisContext *redis, const struct recorded *recorded) {
    char token[24];
    redisReply *reply = sent(redis, &recorded->contend);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        strcmp(reply->element[0]->str, "granted") != 0)
        give_up("the contend script", "not granted");
    snprintf(token, sizeof token, "%lld", reply->element[1]->integer);
    freeReplyObject(reply);
    struct call release = recorded->release;
    release.words[TOKEN_AT] = token;
    reply = sent(redis, &release);
    if (reply->type != REDIS_REPLY_STRING || strcmp(reply->str, "released") != 0)
        give_up("the release script", "not released");
    freeReplyObject(reply);
}
