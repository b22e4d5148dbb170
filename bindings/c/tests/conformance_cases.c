/* Reads the case files and expands rows and for_each to plain steps. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_conformance.h"

struct conformance_case *cases;
size_t case_count;

const char *const CAPABILITIES[] = {"signed_time", "raw_bytes", "drop_releases", NULL};

static _Noreturn void bad_file(const char *topic, const char *what) {
    fprintf(stderr, "tests/conformance/%s.json: %s\n", topic, what);
    exit(2);
}

const char *lacking(const json_t *needs) {
    size_t index;
    json_t *need;
    json_array_foreach(needs, index, need) {
        bool has = false;
        for (const char *const *ours = CAPABILITIES; *ours != NULL; ours++)
            has = has || strcmp(json_string_value(need), *ours) == 0;
        if (!has)
            return json_string_value(need);
    }
    return NULL;
}

/* Replaces "$key" by the row's value of that key. */
static json_t *filled(const json_t *value, const json_t *row) {
    if (json_is_string(value) && json_string_value(value)[0] == '$') {
        json_t *found = json_object_get(row, json_string_value(value) + 1);
        if (found == NULL)
            bad_file("(a row)", json_string_value(value));
        return json_incref(found);
    }
    if (json_is_array(value)) {
        json_t *list = json_array(), *entry;
        size_t index;
        json_array_foreach(value, index, entry) json_array_append_new(list, filled(entry, row));
        return list;
    }
    if (json_is_object(value)) {
        json_t *object = json_object(), *entry;
        const char *key;
        json_object_foreach((json_t *)value, key, entry) {
            /* A for_each inside has rows of its own. */
            bool own = strcmp(key, "steps") == 0;
            json_object_set_new(object, key, own ? json_incref(entry) : filled(entry, row));
        }
        return object;
    }
    return json_incref((json_t *)value);
}

static void add_case(const char *topic, const json_t *one, const json_t *row, json_t *tables) {
    char name[256];
    snprintf(name, sizeof name, "%s.%s%s%s", topic, json_string_value(json_object_get(one, "id")),
             row ? "." : "", row ? json_string_value(json_object_get(row, "id")) : "");
    json_t *needs = json_array(), *more = json_object_get(one, "needs");
    if (more != NULL)
        json_array_extend(needs, more);
    if (row != NULL && (more = json_object_get(row, "needs")) != NULL)
        json_array_extend(needs, more);
    json_t *steps = json_object_get(one, "steps");
    if (!json_is_array(steps))
        bad_file(topic, "a case has no steps");
    cases = realloc(cases, (case_count + 1) * sizeof *cases);
    cases[case_count++] = (struct conformance_case){
        .name = strdup(name),
        .needs = needs,
        .backends = json_object_get(one, "backends"),
        .steps = row ? filled(steps, row) : json_incref(steps),
        .tables = tables,
    };
}

static void read_file(const char *topic) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.json", FENCELOCK_CONFORMANCE, topic);
    json_error_t error;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (file == NULL)
        bad_file(topic, error.text);
    only_keys(file, "about tables cases");
    json_t *tables = json_object_get(file, "tables"), *list = json_object_get(file, "cases"), *one;
    size_t index;
    if (json_array_size(list) == 0)
        bad_file(topic, "no cases");
    json_array_foreach(list, index, one) {
        only_keys(one, "id about rows needs backends steps");
        const char *table = json_string_value(json_object_get(one, "rows"));
        if (table == NULL) {
            add_case(topic, one, NULL, tables);
            continue;
        }
        json_t *rows = json_object_get(tables, table), *row;
        if (json_array_size(rows) == 0)
            bad_file(topic, table);
        size_t number;
        json_array_foreach(rows, number, row) add_case(topic, one, row, tables);
    }
}

static int is_json(const struct dirent *entry) {
    const char *end = strrchr(entry->d_name, '.');
    return end != NULL && strcmp(end, ".json") == 0;
}

void read_cases(void) {
    struct dirent **files;
    int number = scandir(FENCELOCK_CONFORMANCE, &files, is_json, alphasort);
    if (number <= 0)
        bad_file("*", "no files");
    for (int i = 0; i < number; i++) {
        *strrchr(files[i]->d_name, '.') = '\0';
        read_file(files[i]->d_name);
        free(files[i]);
    }
    free(files);
}

json_t *plain_steps(const struct conformance_case *one, bool all) {
    json_t *plain = json_array(), *step;
    size_t index;
    json_array_foreach(one->steps, index, step) {
        const char *word = json_string_value(json_object_get(step, "do"));
        if (word == NULL || strcmp(word, "for_each") != 0) {
            json_array_append(plain, step);
            continue;
        }
        only_keys(step, "do row steps");
        json_t *rows = json_object_get(one->tables, json_string_value(json_object_get(step, "row")));
        size_t number;
        json_t *row;
        json_array_foreach(rows, number, row) {
            if (!all && lacking(json_object_get(row, "needs")) != NULL)
                continue;
            json_t *steps = filled(json_object_get(step, "steps"), row);
            json_array_extend(plain, steps);
            json_decref(steps);
        }
    }
    return plain;
}

char *readme(void) {
    FILE *file = fopen(FENCELOCK_CONFORMANCE "/README.md", "r");
    if (file == NULL)
        bad_file("README.md", "cannot be read");
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, '\0', file) < 0)
        bad_file("README.md", "is empty");
    fclose(file);
    return text;
}

void only_keys(const json_t *object, const char *keys) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        char padded_key[128], padded[512];
        snprintf(padded_key, sizeof padded_key, " %s ", key);
        snprintf(padded, sizeof padded, " %s ", keys);
        if (strstr(padded, padded_key) == NULL)
            FAIL("unknown key %s; known are %s", key, keys);
    }
}
