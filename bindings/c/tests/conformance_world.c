/* Executes the steps of one case. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_conformance.h"

/* Longer than anything but a hang takes on a busy machine. */
enum { PATIENCE_MS = 30000 };

enum kind { CLIENT, LOCK, LEASE, WAIT, STOPWATCH };

/* What the steps have made, by kind and name. A name that is used again hides the old thing. */
struct thing {
    enum kind kind;
    char *name;
    void *object;
    double started;
    struct thing *before;
};

/* An acquire in the background. */
struct wait {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ended;
    fencelock_op *op;
    fencelock_code code;
    fencelock_lease *lease;
    fencelock_error *error;
};

struct world {
    const struct space *space;
    const json_t *step;
    size_t number;
    struct thing *things;
    /* Of every lease, also of those that are gone. */
    json_t *tokens;
};

/* How a step ended, as far as the library is concerned. */
struct outcome {
    fencelock_code code;
    fencelock_error *error;
};

static _Noreturn void differs(const struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static _Noreturn void differs(const struct world *world, const char *format, ...) {
    char why[2048];
    va_list values;
    va_start(values, format);
    vsnprintf(why, sizeof why, format, values);
    va_end(values);
    char *step = json_dumps(world->step, JSON_COMPACT);
    FAIL("step %zu: %s\n  %.2000s", world->number, why, step);
}

static const char *word_of(const struct world *world, const char *key) {
    const char *text = json_string_value(json_object_get(world->step, key));
    if (text == NULL)
        differs(world, "no text %s", key);
    return text;
}

static bool has(const struct world *world, const char *key) {
    return json_object_get(world->step, key) != NULL;
}

/* An argument of the library, whose times are whole numbers. */
static int64_t time_of(const struct world *world, const json_t *value) {
    if (json_is_string(value) && strcmp(json_string_value(value), "max") == 0)
        return INT64_MAX;
    if (!json_is_integer(value))
        differs(world, "C has no such time");
    return json_integer_value(value);
}

static double bound_of(const struct world *world, const char *key) {
    const json_t *value = json_object_get(world->step, key);
    if (!json_is_number(value))
        differs(world, "no number %s", key);
    return json_number_value(value);
}

static struct thing *find(const struct world *world, enum kind kind, const char *key) {
    const char *name = word_of(world, key);
    for (struct thing *thing = world->things; thing != NULL; thing = thing->before)
        if (thing->kind == kind && strcmp(thing->name, name) == 0)
            return thing;
    differs(world, "nothing has the name %s", name);
}

static void keep(struct world *world, enum kind kind, const char *name, void *object) {
    struct thing *thing = malloc(sizeof *thing);
    *thing = (struct thing){kind, strdup(name), object, now_s(), world->things};
    world->things = thing;
}

static void keep_lease(struct world *world, const char *name, fencelock_lease *lease) {
    keep(world, LEASE, name, lease);
    json_object_set_new(world->tokens, name, json_integer((json_int_t)fencelock_lease_token(lease)));
}

static void expect(const struct world *world, bool found) {
    const json_t *wanted = json_object_get(world->step, "expect");
    if (!json_is_boolean(wanted))
        differs(world, "no true or false for expect");
    if (found != json_is_true(wanted))
        differs(world, "is %s", found ? "true" : "false");
}

static void bounded(const struct world *world, double found_ms) {
    if (found_ms < bound_of(world, "at_least_ms") || found_ms > bound_of(world, "at_most_ms"))
        differs(world, "is %.3f ms", found_ms);
}

static char *maybe_text(const struct world *world, const json_t *object, const char *key) {
    (void)world;
    const json_t *value = json_object_get(object, key);
    return value == NULL || json_is_null(value) ? NULL : text_of(value);
}

/* ---- the steps: each sets the outcome, and judges what succeeded ---- */

static fencelock_client_options *client_options(const struct world *world) {
    fencelock_client_options *options = fencelock_client_options_new();
    const json_t *given = json_object_get(world->step, "options"), *value;
    only_keys(given, "connect_timeout_ms request_timeout_ms prefix collection root node_layout");
    if ((value = json_object_get(given, "connect_timeout_ms")) != NULL)
        fencelock_client_options_set_connect_timeout_ms(options, time_of(world, value));
    if ((value = json_object_get(given, "request_timeout_ms")) != NULL)
        fencelock_client_options_set_request_timeout_ms(options, time_of(world, value));
    static const struct {
        const char *key;
        void (*set)(fencelock_client_options *, const char *);
    } texts[] = {
        {"prefix", fencelock_client_options_set_prefix},
        {"collection", fencelock_client_options_set_collection},
        {"root", fencelock_client_options_set_root},
        {"node_layout", fencelock_client_options_set_node_layout},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = maybe_text(world, given, texts[i].key);
        if (text != NULL)
            texts[i].set(options, text);
        free(text);
    }
    return options;
}

/* The URL with a query option and with user:password, where the step has them. */
static char *url_of(const struct world *world) {
    if (has(world, "url"))
        return maybe_text(world, world->step, "url");
    char *query = maybe_text(world, world->step, "query");
    char *credentials = maybe_text(world, world->step, "credentials");
    const char *url = world->space->url, *rest = strstr(url, "://");
    size_t scheme = credentials && rest ? (size_t)(rest + 3 - url) : 0;
    size_t size = strlen(url) + (query ? strlen(query) : 0) + (credentials ? strlen(credentials) : 0) + 3;
    char *full = malloc(size);
    snprintf(full, size, "%.*s%s%s%s%s%s", (int)scheme, url, credentials ? credentials : "",
             credentials ? "@" : "", url + scheme, query ? (strchr(url, '?') ? "&" : "?") : "",
             query ? query : "");
    free(query), free(credentials);
    return full;
}

static void do_connect(struct world *world, struct outcome *outcome) {
    char *url = url_of(world);
    fencelock_client_options *options = client_options(world);
    fencelock_client *client;
    outcome->code = fencelock_connect_with(url, options, &client, &outcome->error);
    fencelock_client_options_free(options);
    free(url);
    if (outcome->code == FENCELOCK_OK)
        keep(world, CLIENT, word_of(world, "as"), client);
}

static void do_close(struct world *world, struct outcome *outcome) {
    outcome->code = fencelock_client_close(find(world, CLIENT, "client")->object, &outcome->error);
}

static void do_lock(struct world *world, struct outcome *outcome) {
    fencelock_lock_options *options = fencelock_lock_options_new();
    const json_t *value;
    if ((value = json_object_get(world->step, "ttl_ms")) != NULL)
        fencelock_lock_options_set_ttl_ms(options, time_of(world, value));
    if ((value = json_object_get(world->step, "max_hold_ms")) != NULL)
        fencelock_lock_options_set_max_hold_ms(options, time_of(world, value));
    if ((value = json_object_get(world->step, "renew")) != NULL)
        fencelock_lock_options_set_renew(options, json_is_true(value));
    char *metadata = maybe_text(world, world->step, "metadata");
    if (metadata != NULL)
        fencelock_lock_options_set_metadata(options, metadata);
    char *name = text_of(json_object_get(world->step, "name"));
    fencelock_lock *lock;
    outcome->code = fencelock_lock_new(find(world, CLIENT, "client")->object, name, options, &lock,
                                       &outcome->error);
    free(name), free(metadata);
    fencelock_lock_options_free(options);
    if (outcome->code == FENCELOCK_OK)
        keep(world, LOCK, word_of(world, "as"), lock);
}

static int64_t timeout_of(const struct world *world) {
    return has(world, "timeout_ms") ? time_of(world, json_object_get(world->step, "timeout_ms")) : -1;
}

static void do_acquire(struct world *world, struct outcome *outcome) {
    fencelock_lease *lease;
    outcome->code =
        fencelock_acquire(find(world, LOCK, "lock")->object, timeout_of(world), &lease, &outcome->error);
    if (outcome->code == FENCELOCK_OK)
        keep_lease(world, word_of(world, "as"), lease);
}

static void do_try_acquire(struct world *world, struct outcome *outcome) {
    fencelock_lease *lease;
    outcome->code = fencelock_try_acquire(find(world, LOCK, "lock")->object, &lease, &outcome->error);
    if (outcome->code == FENCELOCK_OK)
        keep_lease(world, word_of(world, "as"), lease);
    /* In C, not to have obtained it is a failure. */
    bool obtained = outcome->code == FENCELOCK_OK;
    if (!has(world, "error") && (obtained || outcome->code == FENCELOCK_TIMEOUT)) {
        expect(world, obtained);
        fencelock_error_free(outcome->error);
        *outcome = (struct outcome){FENCELOCK_OK, NULL};
    }
}

static void acquire_ended(fencelock_code code, fencelock_lease *lease, fencelock_error *error, void *data) {
    struct wait *wait = data;
    pthread_mutex_lock(&wait->mutex);
    wait->code = code, wait->lease = lease, wait->error = error, wait->ended = true;
    pthread_cond_broadcast(&wait->changed);
    pthread_mutex_unlock(&wait->mutex);
}

static void wait_for_end(const struct world *world, struct wait *wait) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_MS / 1000;
    pthread_mutex_lock(&wait->mutex);
    while (!wait->ended)
        if (pthread_cond_timedwait(&wait->changed, &wait->mutex, &end) == ETIMEDOUT)
            differs(world, "no end after %d ms", PATIENCE_MS);
    pthread_mutex_unlock(&wait->mutex);
}

static void do_start_acquire(struct world *world, struct outcome *outcome) {
    struct wait *wait = calloc(1, sizeof *wait);
    pthread_mutex_init(&wait->mutex, NULL);
    pthread_cond_init(&wait->changed, NULL);
    outcome->code = fencelock_acquire_async(find(world, LOCK, "lock")->object, timeout_of(world),
                                            acquire_ended, wait, &wait->op, &outcome->error);
    if (outcome->code == FENCELOCK_OK)
        keep(world, WAIT, word_of(world, "as"), wait);
    else
        free(wait);
}

static void do_await_acquire(struct world *world, struct outcome *outcome) {
    struct wait *wait = find(world, WAIT, "lease")->object;
    wait_for_end(world, wait);
    *outcome = (struct outcome){wait->code, wait->error};
    wait->error = NULL;
    if (wait->lease != NULL)
        keep_lease(world, word_of(world, "lease"), wait->lease);
    wait->lease = NULL;
}

static void do_cancel_acquire(struct world *world, struct outcome *outcome) {
    struct wait *wait = find(world, WAIT, "lease")->object;
    outcome->code = fencelock_op_cancel(wait->op);
    wait_for_end(world, wait);
    fencelock_lease_free(wait->lease);
    wait->lease = NULL;
}

static void do_release(struct world *world, struct outcome *outcome) {
    outcome->code = fencelock_release(find(world, LEASE, "lease")->object, &outcome->error);
}

static void do_drop(struct world *world, struct outcome *outcome) {
    (void)outcome;
    fencelock_lease_free(find(world, LEASE, "lease")->object);
}

static void do_renew(struct world *world, struct outcome *outcome) {
    outcome->code = fencelock_lease_renew(find(world, LEASE, "lease")->object, &outcome->error);
}

static void do_check(struct world *world, struct outcome *outcome) {
    outcome->code = fencelock_lease_check(find(world, LEASE, "lease")->object, &outcome->error);
}

static void do_held(struct world *world, struct outcome *outcome) {
    (void)outcome;
    expect(world, fencelock_lease_is_held(find(world, LEASE, "lease")->object));
}

static void do_is_lost(struct world *world, struct outcome *outcome) {
    (void)outcome;
    expect(world, fencelock_lease_is_lost(find(world, LEASE, "lease")->object));
}

static void do_wait_lost(struct world *world, struct outcome *outcome) {
    const json_t *within = json_object_get(world->step, "within_ms");
    bool lost = false;
    outcome->code =
        fencelock_lease_wait_lost(find(world, LEASE, "lease")->object,
                                  within ? time_of(world, within) : PATIENCE_MS, &lost, &outcome->error);
    if (outcome->code == FENCELOCK_OK)
        expect(world, lost);
}

static void do_remaining(struct world *world, struct outcome *outcome) {
    (void)outcome;
    bounded(world, (double)fencelock_lease_remaining_ms(find(world, LEASE, "lease")->object));
}

static void do_token(struct world *world, struct outcome *outcome) {
    (void)outcome;
    json_int_t ours = json_integer_value(json_object_get(world->tokens, word_of(world, "lease")));
    size_t index;
    json_t *other;
    if (json_array_size(json_object_get(world->step, "greater_than")) == 0)
        differs(world, "no leases to compare with");
    json_array_foreach(json_object_get(world->step, "greater_than"), index, other) {
        json_t *theirs = json_object_get(world->tokens, json_string_value(other));
        if (theirs == NULL || ours <= json_integer_value(theirs))
            differs(world, "token %lld is not greater than that of %s", (long long)ours,
                    json_string_value(other));
    }
}

static fencelock_info *inspect(struct world *world, struct outcome *outcome) {
    char *name = text_of(json_object_get(world->step, "name"));
    fencelock_info *info;
    outcome->code =
        fencelock_inspect(find(world, CLIENT, "client")->object, name, &info, &outcome->error);
    if (outcome->code == FENCELOCK_OK && strcmp(fencelock_info_name(info), name) != 0)
        differs(world, "shown is the name %s", fencelock_info_name(info));
    free(name);
    return info;
}

static void do_inspect(struct world *world, struct outcome *outcome) {
    fencelock_info *info = inspect(world, outcome);
    char why[512];
    if (outcome->code == FENCELOCK_OK &&
        !as_shown(world->space, json_object_get(world->step, "shows"), info, world->tokens, why,
                  sizeof why))
        differs(world, "%s", why);
    fencelock_info_free(info);
}

static void do_wait_until(struct world *world, struct outcome *outcome) {
    double end = now_s() + PATIENCE_MS / 1000.0 * 2 / 3;
    if (!has(world, "shows"))
        differs(world, "no shows");
    for (;;) {
        fencelock_info *info = inspect(world, outcome);
        if (outcome->code != FENCELOCK_OK)
            return;
        char why[512];
        bool shown = as_shown(world->space, json_object_get(world->step, "shows"), info,
                              world->tokens, why, sizeof why);
        fencelock_info_free(info);
        if (shown)
            return;
        if (now_s() > end)
            differs(world, "never came: %s", why);
        sleep_ms(5);
    }
}

static int by_bytes(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void do_list(struct world *world, struct outcome *outcome) {
    fencelock_info_list *list;
    outcome->code = fencelock_list(find(world, CLIENT, "client")->object, &list, &outcome->error);
    if (outcome->code != FENCELOCK_OK || has(world, "error"))
        return;
    size_t number = fencelock_info_list_len(list);
    const json_t *names = json_object_get(world->step, "names");
    if (!json_is_array(names) || json_array_size(names) != number)
        differs(world, "listed are %zu names", number);
    char **found = calloc(number + 1, sizeof *found);
    for (size_t i = 0; i < number; i++) {
        fencelock_info *info = fencelock_info_list_get(list, i);
        found[i] = strdup(fencelock_info_name(info));
        fencelock_info_free(info);
    }
    qsort(found, number, sizeof *found, by_bytes);
    for (size_t i = 0; i < number; i++) {
        char *wanted = text_of(json_array_get(names, i));
        if (strcmp(found[i], wanted) != 0)
            differs(world, "name %zu of the list is %s", i, found[i]);
        free(wanted), free(found[i]);
    }
    free(found);
    fencelock_info_list_free(list);
}

static void do_force_release(struct world *world, struct outcome *outcome) {
    char *name = text_of(json_object_get(world->step, "name"));
    bool ended;
    outcome->code = fencelock_force_release(find(world, CLIENT, "client")->object, name, &ended,
                                            &outcome->error);
    free(name);
    if (outcome->code == FENCELOCK_OK && !has(world, "error"))
        expect(world, ended);
}

static void do_sleep(struct world *world, struct outcome *outcome) {
    (void)outcome;
    sleep_ms((long)time_of(world, json_object_get(world->step, "ms")));
}

static void do_stopwatch(struct world *world, struct outcome *outcome) {
    (void)outcome;
    keep(world, STOPWATCH, word_of(world, "as"), NULL);
}

static void do_elapsed(struct world *world, struct outcome *outcome) {
    (void)outcome;
    bounded(world, (now_s() - find(world, STOPWATCH, "since")->started) * 1000);
}

static void do_redis(struct world *world, struct outcome *outcome) {
    (void)outcome;
    const json_t *list = json_object_get(world->step, "arguments");
    size_t number = json_array_size(list);
    const char **arguments = calloc(number + 1, sizeof *arguments);
    for (size_t i = 0; i < number; i++)
        arguments[i] = json_string_value(json_array_get(list, i));
    char *name = text_of(json_object_get(world->step, "name"));
    redis_command(world->space, word_of(world, "command"), name, arguments, number);
    free(name), free(arguments);
}

static const struct step {
    const char *word, *keys;
    void (*run)(struct world *, struct outcome *);
} STEPS[] = {
    {"connect", "as url query credentials options", do_connect},
    {"close", "client", do_close},
    {"lock", "client name as ttl_ms renew max_hold_ms metadata", do_lock},
    {"acquire", "lock as timeout_ms", do_acquire},
    {"try_acquire", "lock as expect", do_try_acquire},
    {"start_acquire", "lock as timeout_ms", do_start_acquire},
    {"await_acquire", "lease", do_await_acquire},
    {"cancel_acquire", "lease", do_cancel_acquire},
    {"release", "lease", do_release},
    {"drop", "lease", do_drop},
    {"renew", "lease", do_renew},
    {"check", "lease", do_check},
    {"held", "lease expect", do_held},
    {"is_lost", "lease expect", do_is_lost},
    {"wait_lost", "lease within_ms expect", do_wait_lost},
    {"remaining", "lease at_least_ms at_most_ms", do_remaining},
    {"token", "lease greater_than", do_token},
    {"inspect", "client name shows", do_inspect},
    {"wait_until", "client name shows", do_wait_until},
    {"list", "client names", do_list},
    {"force_release", "client name expect", do_force_release},
    {"sleep", "ms", do_sleep},
    {"stopwatch", "as", do_stopwatch},
    {"elapsed", "since at_least_ms at_most_ms", do_elapsed},
    {"redis", "command name arguments", do_redis},
};

const char *word_at(size_t index) {
    return index < sizeof STEPS / sizeof *STEPS ? STEPS[index].word : NULL;
}

static void judge_error(const struct world *world, const struct outcome *outcome) {
    const char *wanted = word_of(world, "error"), *found = fencelock_code_name(outcome->code);
    const char *message = fencelock_error_message(outcome->error);
    const char *cause = fencelock_error_cause(outcome->error);
    if (strcmp(wanted, found) != 0)
        differs(world, "the error is %s (%s)", found, message);
    size_t index;
    json_t *part;
    json_array_foreach(json_object_get(world->step, "says"), index, part) {
        char *text = text_of(part);
        if (strstr(message, text) == NULL)
            differs(world, "the message does not say %s: %s", text, message);
        free(text);
    }
    json_array_foreach(json_object_get(world->step, "hides"), index, part) {
        char *text = text_of(part);
        if (strstr(message, text) != NULL || (cause != NULL && strstr(cause, text) != NULL))
            differs(world, "the message shows %.40s: %s", text, message);
        free(text);
    }
}

static void judged(struct world *world) {
    const char *word = word_of(world, "do");
    const struct step *step = NULL;
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++)
        if (strcmp(STEPS[i].word, word) == 0)
            step = &STEPS[i];
    if (step == NULL)
        differs(world, "unknown word");
    char keys[256];
    snprintf(keys, sizeof keys, "do error says hides %s", step->keys);
    only_keys(world->step, keys);
    struct outcome outcome = {FENCELOCK_OK, NULL};
    step->run(world, &outcome);
    if (has(world, "error"))
        judge_error(world, &outcome);
    else if (outcome.code != FENCELOCK_OK)
        differs(world, "%s: %s", fencelock_code_name(outcome.code),
                fencelock_error_message(outcome.error));
    fencelock_error_free(outcome.error);
}

/* Gives everything back, in the order in which it came: clients first, so that waits end. */
static void end(struct world *world) {
    for (struct thing *thing = world->things; thing != NULL; thing = thing->before)
        if (thing->kind == CLIENT) {
            fencelock_client_close(thing->object, NULL);
            fencelock_client_free(thing->object);
        }
    while (world->things != NULL) {
        struct thing *thing = world->things;
        if (thing->kind == LOCK)
            fencelock_lock_free(thing->object);
        if (thing->kind == LEASE)
            fencelock_lease_free(thing->object);
        if (thing->kind == WAIT) {
            struct wait *wait = thing->object;
            wait_for_end(world, wait);
            fencelock_lease_free(wait->lease);
            fencelock_error_free(wait->error);
            fencelock_op_free(wait->op);
            free(wait);
        }
        world->things = thing->before;
        free(thing->name), free(thing);
    }
    json_decref(world->tokens);
}

void execute(const struct space *space, const json_t *steps) {
    struct world world = {.space = space, .tokens = json_object()};
    size_t index;
    json_t *step;
    json_array_foreach(steps, index, step) {
        world.step = step;
        world.number = index + 1;
        judged(&world);
    }
    end(&world);
}
