/* The cases of tests/conformance: read and expanded (cases.c), executed (world.c), judged. */
#ifndef TEST_CONFORMANCE_H
#define TEST_CONFORMANCE_H

#include <jansson.h>

#include "support.h"

struct conformance_case {
    char *name;
    json_t *needs;
    /* NULL = all */
    json_t *backends;
    json_t *steps, *tables;
};

/* All cases of all files. A file that is not as the README says ends the program. */
extern struct conformance_case *cases;
extern size_t case_count;
void read_cases(void);

/* The plain steps of a case; `all` also those of rows that need what C has not. */
json_t *plain_steps(const struct conformance_case *one, bool all);

/* What C cannot express of what is needed; NULL if it can. */
const char *lacking(const json_t *needs);

/* The README of the cases. */
char *readme(void);

extern const char *const CAPABILITIES[];

/* The words of steps that can be executed; NULL after the last. */
const char *word_at(size_t index);

/* Executes all steps; fails the test on any difference. */
void execute(const struct space *space, const json_t *steps);

/* Whether an info is as `shows` says; else `why` says what is different. Tokens: name to number. */
bool as_shown(const struct space *space, const json_t *shows, const fencelock_info *info,
              const json_t *tokens, char *why, size_t size);

/* A text of the cases, to be freed; fails the test if it is none. */
char *text_of(const json_t *value);

/* Fails if the object has any other key than those, separated by blanks. */
void only_keys(const json_t *object, const char *keys);

#endif
