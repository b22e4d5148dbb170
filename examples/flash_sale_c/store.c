#include "store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* The way to the database and back. */
enum { ROUND_TRIP_NS = 100000 };

/* What the stock file holds. */
struct row {
    long left;
    uint64_t highest_token;
    int file;
};

static void path_of(char *path, size_t size, const char *folder, const char *file) {
    snprintf(path, size, "%s/%s", folder, file);
}

/* Begins one atomic statement on the row of product 123. */
static bool begin(struct row *row, const char *folder) {
    char path[512], text[64] = "";
    struct timespec there_and_back = {.tv_nsec = ROUND_TRIP_NS};
    nanosleep(&there_and_back, NULL);
    path_of(path, sizeof path, folder, "stock");
    row->file = open(path, O_RDWR | O_CLOEXEC);
    if (row->file < 0)
        return false;
    /* The database's own row lock, until the file is closed. */
    flock(row->file, LOCK_EX);
    return read(row->file, text, sizeof text - 1) > 0 &&
           sscanf(text, "%ld %" SCNu64, &row->left, &row->highest_token) == 2;
}

static void end(struct row *row) {
    char text[64];
    int length = snprintf(text, sizeof text, "%-20ld %-20" PRIu64, row->left, row->highest_token);
    if (pwrite(row->file, text, (size_t)length, 0) != length)
        abort();
    close(row->file);
}

bool store_create(const char *folder, long stock) {
    char path[512];
    path_of(path, sizeof path, folder, "orders");
    FILE *orders = fopen(path, "w");
    path_of(path, sizeof path, folder, "stock");
    FILE *file = fopen(path, "w");
    if (orders == NULL || file == NULL)
        return false;
    fprintf(file, "%ld 0", stock);
    return fclose(file) == 0 && fclose(orders) == 0;
}

long store_read_stock(const char *folder, uint64_t token) {
    struct row row;
    if (!begin(&row, folder))
        return -1;
    if (token > row.highest_token)
        row.highest_token = token;
    end(&row);
    return row.left;
}

bool store_place_order(const char *folder, int worker, uint64_t token, long left) {
    struct row row;
    if (!begin(&row, folder))
        return false;
    bool taken = token == 0 || token >= row.highest_token;
    if (taken) {
        char path[512];
        path_of(path, sizeof path, folder, "orders");
        row.left = left;
        row.highest_token = token > row.highest_token ? token : row.highest_token;
        FILE *orders = fopen(path, "a");
        if (orders == NULL)
            abort();
        fprintf(orders, "%" PRIu64 " worker-%d\n", token, worker);
        fclose(orders);
    }
    end(&row);
    return taken;
}

uint64_t *store_tokens(const char *folder, size_t *number) {
    char path[512];
    path_of(path, sizeof path, folder, "orders");
    uint64_t *tokens = NULL, token;
    *number = 0;
    FILE *orders = fopen(path, "r");
    while (orders != NULL && fscanf(orders, "%" SCNu64 " %*s", &token) == 1) {
        tokens = realloc(tokens, (*number + 1) * sizeof *tokens);
        tokens[(*number)++] = token;
    }
    if (orders != NULL)
        fclose(orders);
    return tokens;
}
