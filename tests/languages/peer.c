/* One process of C in the contest of languages, see README.md. */
#include <fencelock.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void succeed(fencelock_code code, fencelock_error *err) {
    if (code == FENCELOCK_OK)
        return;
    fprintf(stderr, "%s: %s\n", fencelock_code_name(code), fencelock_error_message(err));
    exit(1);
}

static FILE *open_file(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static void increment(const char *path) {
    long number;
    FILE *file = open_file(path, "r");
    if (fscanf(file, "%ld", &number) != 1)
        exit(1);
    fclose(file);
    file = open_file(path, "w");
    fprintf(file, "%ld", number + 1);
    fclose(file);
}

int main(int argc, char **argv) {
    fencelock_client *client;
    fencelock_lock *lock;
    fencelock_lease *lease;
    fencelock_error *err;
    char tokens[1024];
    if (argc != 5)
        return 2;
    snprintf(tokens, sizeof tokens, "%s.tokens", argv[4]);

    fencelock_code code = fencelock_connect(argv[1], &client, &err);
    succeed(code, err);
    code = fencelock_lock_new(client, argv[2], NULL, &lock, &err);
    succeed(code, err);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    for (long round = atol(argv[3]); round > 0; round--) {
        code = fencelock_acquire(lock, -1, &lease, &err);
        succeed(code, err);
        increment(argv[4]);
        FILE *file = open_file(tokens, "a");
        fprintf(file, "c %" PRIu64 "\n", fencelock_lease_token(lease));
        fclose(file);
        code = fencelock_release(lease, &err);
        succeed(code, err);
        fencelock_lease_free(lease);
    }
    fencelock_lock_free(lock);
    fencelock_client_close(client, NULL);
    fencelock_client_free(client);
    return 0;
}
