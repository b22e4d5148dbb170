#include "sequence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The way to the database and back. */
enum { ROUND_TRIP_NS = 100000 };

static void code_of_today(order_code code, long number) {
    time_t now = time(NULL);
    struct tm today;
    gmtime_r(&now, &today);
    char text[64];
    snprintf(text, sizeof text, "%04d%02d%02d-%06ld", today.tm_year + 1900, today.tm_mon + 1,
             today.tm_mday, number % 1000000);
    memcpy(code, text, CODE_LENGTH);
    code[CODE_LENGTH] = '\0';
}

bool sequence_create(const char *file) {
    order_code none;
    code_of_today(none, 0);
    return sequence_write(file, none);
}

bool sequence_read(const char *file, order_code last) {
    struct timespec there_and_back = {.tv_nsec = ROUND_TRIP_NS};
    FILE *stream = fopen(file, "r");
    bool fine = stream != NULL && fread(last, 1, CODE_LENGTH, stream) == CODE_LENGTH;
    last[fine ? CODE_LENGTH : 0] = '\0';
    if (stream != NULL)
        fclose(stream);
    nanosleep(&there_and_back, NULL);
    return fine;
}

void sequence_next(const order_code last, order_code next) {
    code_of_today(next, 0);
    long number = strncmp(last, next, 8) == 0 ? strtol(last + 9, NULL, 10) : 0;
    code_of_today(next, number + 1);
}

bool sequence_write(const char *file, const order_code next) {
    /* Renamed into place, so that without the lock a reader still finds a whole code. */
    char draft[512];
    static _Thread_local char here;
    snprintf(draft, sizeof draft, "%s.%p", file, (void *)&here);
    FILE *stream = fopen(draft, "w");
    if (stream == NULL)
        return false;
    bool fine = fwrite(next, 1, CODE_LENGTH, stream) == CODE_LENGTH;
    return fclose(stream) == 0 && fine && rename(draft, file) == 0;
}
