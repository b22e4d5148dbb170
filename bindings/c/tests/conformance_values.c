/* Texts of the cases as C's, and what inspect shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_conformance.h"

static char *bytes_of(const json_t *list) {
    size_t index;
    json_t *byte;
    char *text = calloc(1, json_array_size(list) + 1);
    json_array_foreach(list, index, byte) text[index] = (char)json_integer_value(byte);
    return text;
}

char *text_of(const json_t *value) {
    if (json_is_string(value)) {
        if (strlen(json_string_value(value)) != json_string_length(value))
            FAIL("C has no text with NUL inside");
        return strdup(json_string_value(value));
    }
    if (json_is_array(json_object_get(value, "bytes")))
        return bytes_of(json_object_get(value, "bytes"));
    const char *part = json_string_value(json_object_get(value, "repeat"));
    const char *then = json_string_value(json_object_get(value, "then"));
    size_t times = (size_t)json_integer_value(json_object_get(value, "times"));
    if (part == NULL || times == 0)
        FAIL("C has no such text");
    size_t length = strlen(part);
    char *text = malloc(length * times + (then ? strlen(then) : 0) + 1), *end = text;
    for (size_t i = 0; i < times; i++, end += length)
        memcpy(end, part, length);
    strcpy(end, then ? then : "");
    return text;
}

/* null = there is none. */
static bool same_text(const json_t *wanted, const char *found) {
    if (json_is_null(wanted) || found == NULL)
        return json_is_null(wanted) && found == NULL;
    char *text = text_of(wanted);
    bool same = strcmp(text, found) == 0;
    free(text);
    return same;
}

static bool is_id(const char *owner) {
    return owner != NULL && strlen(owner) == 32 && strspn(owner, "0123456789abcdef") == 32;
}

/* A negative number means that there is none; null that there must be none. */
static bool within(const json_t *bounds, int64_t found) {
    if (json_is_null(bounds) || found < 0)
        return json_is_null(bounds) && found < 0;
    if (json_array_size(bounds) != 2)
        FAIL("no pair of bounds");
    return (double)found >= json_number_value(json_array_get(bounds, 0)) &&
           (double)found <= json_number_value(json_array_get(bounds, 1));
}

static bool contains_all(const char *text, const json_t *parts) {
    size_t index;
    json_t *part;
    bool all = text != NULL;
    json_array_foreach(parts, index, part) {
        char *wanted = text_of(part);
        all = all && strstr(text, wanted) != NULL;
        free(wanted);
    }
    return all;
}

static bool are_different_ids(const fencelock_info *info) {
    for (size_t i = 0; i < fencelock_info_queue_len(info); i++) {
        const char *one = fencelock_info_waiter_owner(info, i), *holder = fencelock_info_owner(info);
        if (!is_id(one) || (holder != NULL && strcmp(one, holder) == 0))
            return false;
        for (size_t other = 0; other < i; other++)
            if (strcmp(one, fencelock_info_waiter_owner(info, other)) == 0)
                return false;
    }
    return true;
}

static bool metadata_of_queue(const json_t *wanted, const fencelock_info *info) {
    size_t index;
    json_t *text;
    bool same = json_array_size(wanted) == fencelock_info_queue_len(info);
    json_array_foreach(wanted, index, text) same =
        same && same_text(text, fencelock_info_waiter_metadata(info, index));
    return same;
}

static bool waiting_of_queue(const json_t *bounds, const fencelock_info *info) {
    for (size_t i = 0; i < fencelock_info_queue_len(info); i++)
        if (!within(bounds, fencelock_info_waiter_waiting_ms(info, i)))
            return false;
    return true;
}

static const char *state_of(const fencelock_info *info) {
    switch (fencelock_info_state(info)) {
    case FENCELOCK_STATE_FREE:
        return "free";
    case FENCELOCK_STATE_HELD:
        return "held";
    default:
        return "foreign";
    }
}

static bool is_shown(const char *key, const json_t *wanted, const fencelock_info *info,
                     const json_t *tokens) {
    const char *text = json_string_value(wanted);
    if (strcmp(key, "state") == 0)
        return strcmp(text ? text : "", state_of(info)) == 0;
    if (strcmp(key, "owner") == 0)
        return text && strcmp(text, "id") == 0 ? is_id(fencelock_info_owner(info))
                                               : same_text(wanted, fencelock_info_owner(info));
    if (strcmp(key, "token") == 0) {
        uint64_t token = fencelock_info_token(info);
        if (text == NULL)
            return json_is_null(wanted) && token == 0;
        json_t *known = json_object_get(tokens, text);
        if (known == NULL)
            FAIL("no lease %s", text);
        return token == (uint64_t)json_integer_value(known);
    }
    if (strcmp(key, "metadata") == 0)
        return same_text(wanted, fencelock_info_metadata(info));
    if (strcmp(key, "metadata_says") == 0)
        return contains_all(fencelock_info_metadata(info), wanted);
    if (strcmp(key, "held_ms") == 0)
        return within(wanted, fencelock_info_held_ms(info));
    if (strcmp(key, "ttl_left_ms") == 0)
        return within(wanted, fencelock_info_ttl_left_ms(info));
    if (strcmp(key, "queue_length") == 0)
        return json_integer_value(wanted) == (json_int_t)fencelock_info_queue_len(info);
    if (strcmp(key, "queue_metadata") == 0)
        return metadata_of_queue(wanted, info);
    if (strcmp(key, "queue_owners") == 0 && text != NULL && strcmp(text, "ids") == 0)
        return are_different_ids(info);
    if (strcmp(key, "queue_waiting_ms") == 0)
        return waiting_of_queue(wanted, info);
    FAIL("unknown key or value of shows: %s", key);
}

/* What the backend does not know must be missing. */
static bool is_unknown(const struct space *space, const char *key) {
    return !space->shows_times && (strcmp(key, "held_ms") == 0 || strcmp(key, "ttl_left_ms") == 0);
}

bool as_shown(const struct space *space, const json_t *shows, const fencelock_info *info,
              const json_t *tokens, char *why, size_t size) {
    const char *key;
    json_t *wanted;
    json_object_foreach((json_t *)shows, key, wanted) {
        if (is_shown(key, is_unknown(space, key) ? json_null() : wanted, info, tokens))
            continue;
        const char *owner = fencelock_info_owner(info), *metadata = fencelock_info_metadata(info);
        snprintf(why, size,
                 "%s differs: %s, owner %s, token %llu, held %lld ms, %lld ms left, metadata %s, %zu wait",
                 key, state_of(info), owner ? owner : "(none)",
                 (unsigned long long)fencelock_info_token(info),
                 (long long)fencelock_info_held_ms(info), (long long)fencelock_info_ttl_left_ms(info),
                 metadata ? metadata : "(none)", fencelock_info_queue_len(info));
        return false;
    }
    return true;
}
