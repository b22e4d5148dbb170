/* The sequence that all threads share: a file with the last code.
 *
 * It stands for a row of a database, or for a service that knows only "read" and "write". Nothing here
 * is atomic: that is what the threads need the lock for. */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include <stdbool.h>

/* A day and a number, such as 20261130-000042. Later codes are greater, also as texts. */
enum { CODE_LENGTH = 15 };
typedef char order_code[CODE_LENGTH + 1];

/* A new sequence; nothing was drawn yet. False when it cannot be written. */
bool sequence_create(const char *file);

/* Reads the last code. */
bool sequence_read(const char *file, order_code last);

/* The code that comes after another; the first of a new day begins at 1. */
void sequence_next(const order_code last, order_code next);

/* Writes it back. */
bool sequence_write(const char *file, const order_code next);

#endif
