#include "support.h"

#include <ftw.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const char *const BACKENDS[] = {"memory", "file", "redis", "mongodb", "zookeeper", NULL};

double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void sleep_ms(long ms) {
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

unsigned random_below(unsigned limit) {
    static __thread unsigned seed;
    if (seed == 0)
        seed = (unsigned)(now_s() * 1e6) ^ (unsigned)getpid() << 16;
    return (unsigned)rand_r(&seed) % limit;
}

/* Not a skip: a run without servers must not look like a good one. */
static const char *server_url(const char *variable) {
    const char *url = getenv(variable);
    if (url == NULL)
        FAIL("%s is not set: run the tests with tests/services/run", variable);
    return url;
}

void space_start(struct space *space, const char *backend) {
    /* Servers outlive this process, so the process is a part of the name. */
    static unsigned number;
    char name[96];
    snprintf(name, sizeof name, "c-%ld-%llu-%u", (long)getpid(),
             (unsigned long long)(now_s() * 1e6), number++);
    memset(space, 0, sizeof *space);
    space->shows_times = strcmp(backend, "zookeeper") != 0;
    unsetenv("FENCELOCK_URL");
    if (strcmp(backend, "memory") == 0) {
        snprintf(space->url, sizeof space->url, "memory:%s", name);
    } else if (strcmp(backend, "file") == 0) {
        strcpy(space->directory, "/tmp/fencelock-c-XXXXXX");
        CHECK(mkdtemp(space->directory) != NULL);
        snprintf(space->url, sizeof space->url, "file://%s/locks", space->directory);
    } else if (strcmp(backend, "redis") == 0) {
        snprintf(space->server, sizeof space->server, "%s", server_url("FENCELOCK_TEST_REDIS_URL"));
        snprintf(space->prefix, sizeof space->prefix, "%s:", name);
        snprintf(space->url, sizeof space->url, "%s%cfl.prefix=%s", space->server,
                 strchr(space->server, '?') ? '&' : '?', space->prefix);
    } else {
        bool mongodb = strcmp(backend, "mongodb") == 0;
        const char *server =
            server_url(mongodb ? "FENCELOCK_TEST_MONGODB_URL" : "FENCELOCK_TEST_ZOOKEEPER_URL");
        snprintf(space->url, sizeof space->url, "%s%c%s%s", server, strchr(server, '?') ? '&' : '?',
                 mongodb ? "fl.collection=fencelock." : "fl.root=/", name);
    }
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    return remove(path);
}

void space_end(struct space *space) {
    if (space->directory[0] != '\0')
        nftw(space->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void send_bulk(FILE *server, const char *prefix, const char *text) {
    fprintf(server, "$%zu\r\n%s%s\r\n", strlen(prefix) + strlen(text), prefix, text);
}

void redis_command(const struct space *space, const char *command, const char *name,
                   const char *const *arguments, size_t number) {
    char host[256], port[16];
    if (sscanf(space->server, "redis://%255[^:/]:%15[0-9]", host, port) != 2)
        FAIL("no host and port in %s", space->server);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *address;
    CHECK_IS(getaddrinfo(host, port, &hints, &address), 0);
    int fd = socket(address->ai_family, SOCK_STREAM, 0);
    CHECK_IS(connect(fd, address->ai_addr, address->ai_addrlen), 0);
    freeaddrinfo(address);
    FILE *server = fdopen(fd, "r+");
    fprintf(server, "*%zu\r\n", number + 2);
    send_bulk(server, "", command);
    send_bulk(server, space->prefix, name);
    for (size_t i = 0; i < number; i++)
        send_bulk(server, "", arguments[i]);
    fflush(server);
    char reply[512];
    CHECK(fgets(reply, sizeof reply, server) != NULL);
    if (reply[0] == '-')
        FAIL("%s: %s", command, reply);
    fclose(server);
}

void test_on_each_backend(const char *name, test_function run, int leaves) {
    for (const char *const *backend = BACKENDS; *backend != NULL; backend++) {
        char full[160];
        snprintf(full, sizeof full, "%s[%s]", name, *backend);
        test_add(full, run, *backend, leaves, NULL);
    }
}

void check_code(const char *file, int line, const char *call, fencelock_code found,
                fencelock_code wanted, fencelock_error *err) {
    if (found != wanted)
        fail_at(file, line, "%s gives %s, not %s: %s", call, fencelock_code_name(found),
                fencelock_code_name(wanted), fencelock_error_message(err));
    if ((found == FENCELOCK_OK) != (err == NULL))
        fail_at(file, line, "%s gives %s, and an error object does not go with it", call,
                fencelock_code_name(found));
    fencelock_error_free(err);
}

fencelock_client *connected(const char *url) {
    fencelock_client *client;
    OK(fencelock_connect(url, &client, &err));
    return client;
}

fencelock_lock *lock_of(fencelock_client *client, const char *name) {
    return lock_with(client, name, 0, true);
}

fencelock_lock *lock_with(fencelock_client *client, const char *name, int64_t ttl_ms, bool renew) {
    fencelock_lock_options *options = fencelock_lock_options_new();
    if (ttl_ms != 0)
        fencelock_lock_options_set_ttl_ms(options, ttl_ms);
    fencelock_lock_options_set_renew(options, renew);
    fencelock_lock *lock;
    OK(fencelock_lock_new(client, name, options, &lock, &err));
    fencelock_lock_options_free(options);
    return lock;
}

fencelock_lease *acquired(fencelock_lock *lock) {
    fencelock_lease *lease;
    OK(fencelock_acquire(lock, 60000, &lease, &err));
    return lease;
}

static void wait_for(fencelock_client *client, const char *name, size_t length, bool free) {
    double end = now_s() + 30;
    for (;;) {
        fencelock_info *info;
        OK(fencelock_inspect(client, name, &info, &err));
        size_t found = fencelock_info_queue_len(info);
        bool is_free = fencelock_info_state(info) == FENCELOCK_STATE_FREE;
        fencelock_info_free(info);
        if (found == length && (is_free || !free))
            return;
        if (now_s() > end)
            FAIL("%zu contenders wait, not %zu; %s", found, length, is_free ? "free" : "held");
        sleep_ms(2);
    }
}

void wait_for_queue(fencelock_client *client, const char *name, size_t length) {
    wait_for(client, name, length, false);
}

void wait_for_free(fencelock_client *client, const char *name) {
    wait_for(client, name, 0, true);
}

void wait_for_open(size_t number) {
    double end = now_s() + 30;
    while (fencelock_test_open() != number) {
        if (now_s() > end)
            FAIL("%zu objects are open, not %zu", fencelock_test_open(), number);
        sleep_ms(1);
    }
}

void check_nothing_is_open(void) {
    size_t open = fencelock_test_open();
    if (open != 0)
        FAIL("the test has left %zu objects open", open);
}
