/* A lock that obeys lines, as tests/fleets/README.md describes: one process of C in a contest of
 * languages. Called with URL NAME. `count ROUNDS FILE` also appends each token to FILE.tokens. */
#include <fencelock.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void end_if(fencelock_code code, fencelock_error *err) {
    if (code == FENCELOCK_OK)
        return;
    fprintf(stderr, "%s: %s\n", fencelock_code_name(code), fencelock_error_message(err));
    exit(1);
}

/* Unguarded: what two do at once is lost. */
static void increment(const char *path) {
    long value = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%ld", &value) != 1)
        exit(1);
    fclose(file);
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    file = fopen(path, "w");
    fprintf(file, "%ld", value + 1);
    fclose(file);
}

static void note_token(const char *path, uint64_t token) {
    char tokens[1024];
    snprintf(tokens, sizeof tokens, "%s.tokens", path);
    FILE *file = fopen(tokens, "a");
    fprintf(file, "%" PRIu64 "\n", token);
    fclose(file);
}

static void give_back(fencelock_lease *lease) {
    fencelock_error *err;
    fencelock_code code = fencelock_release(lease, &err);
    end_if(code, err);
    fencelock_lease_free(lease);
}

int main(int argc, char **argv) {
    fencelock_client *client;
    fencelock_lock *lock;
    fencelock_lease *lease = NULL;
    fencelock_error *err;
    if (argc != 3)
        return 2;
    fencelock_code code = fencelock_connect(argv[1], &client, &err);
    end_if(code, err);
    code = fencelock_lock_new(client, argv[2], NULL, &lock, &err);
    end_if(code, err);
    puts("ready");
    fflush(stdout);
    char line[1024], path[900];
    long number;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "acquire %ld", &number) == 1) {
            code = fencelock_acquire(lock, number, &lease, &err);
            if (code != FENCELOCK_TIMEOUT)
                end_if(code, err);
            fencelock_error_free(err);
            puts(code == FENCELOCK_OK ? "true" : "false");
        } else if (strcmp(line, "release\n") == 0) {
            give_back(lease);
            puts("released");
        } else if (sscanf(line, "count %ld %899s", &number, path) == 2) {
            for (; number > 0; number--) {
                code = fencelock_acquire(lock, -1, &lease, &err);
                end_if(code, err);
                note_token(path, fencelock_lease_token(lease));
                increment(path);
                give_back(lease);
            }
            puts("counted");
        } else {
            return 2;
        }
        fflush(stdout);
    }
    fencelock_lock_free(lock);
    fencelock_client_close(client, NULL);
    fencelock_client_free(client);
    return 0;
}
