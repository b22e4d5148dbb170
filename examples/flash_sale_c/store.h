/* The store that all workers share: a folder with the stock and the orders.
 *
 * It stands for the database of a shop. As there, one statement is atomic by itself, and takes a
 * moment to get there and back. What is not atomic is a read and the write that follows from it: that
 * is what the workers need the lock for. */
#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A new store in an empty folder. False when it cannot be written. */
bool store_create(const char *folder, long stock);

/* The units left; -1 when the store cannot be read. With a token (not 0) this is the first step of a
 * change, and from now on nobody with a lower token changes anything: he cannot know what we are about
 * to write. */
long store_read_stock(const char *folder, uint64_t token);

/* Sets the units left and appends the order. False if the order was refused because somebody with a
 * higher token has been here. The check is part of the same atomic step as the write, as in
 * `UPDATE ... SET left = ?, token = ? WHERE product = 123 AND token <= ?`. */
bool store_place_order(const char *folder, int worker, uint64_t token, long left);

/* The tokens of all orders, oldest first, to be freed; 0 without a lock. */
uint64_t *store_tokens(const char *folder, size_t *number);

#endif
