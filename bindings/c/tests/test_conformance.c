/* The cases that every language runs, over every backend, and the tests of their format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_conformance.h"

struct run {
    const struct conformance_case *one;
    const char *backend;
};

static void run_case(const void *argument) {
    const struct run *run = argument;
    struct space space;
    space_start(&space, run->backend);
    json_t *steps = plain_steps(run->one, false);
    execute(&space, steps);
    json_decref(steps);
    space_end(&space);
}

static bool makes_sense_on(const struct conformance_case *one, const char *backend) {
    size_t index;
    json_t *name;
    json_array_foreach(one->backends, index, name) if (strcmp(json_string_value(name), backend) == 0)
        return true;
    return one->backends == NULL;
}

/* ---- the README, the files and this runner say the same ---- */

/* The first column of the first table below a heading of the README, as keys. */
static json_t *table(const char *heading) {
    char *text = readme(), title[96];
    snprintf(title, sizeof title, "\n## %s\n", heading);
    char *place = strstr(text, title);
    if (place == NULL || (place = strstr(place, "\n|")) == NULL)
        FAIL("no table below %s", heading);
    json_t *names = json_object();
    for (char *line = place + 1; line[0] == '|'; line = strchr(line, '\n') + 1) {
        char name[64];
        if (sscanf(line, "| `%63[^`]`", name) == 1)
            json_object_set_new(names, name, json_true());
    }
    free(text);
    if (json_object_size(names) == 0)
        FAIL("an empty table below %s", heading);
    return names;
}

/* All values of a key in all steps, whether C can execute them or not. */
static json_t *of_steps(const char *key) {
    json_t *found = json_object();
    for (size_t i = 0; i < case_count; i++) {
        json_t *steps = plain_steps(&cases[i], true), *step;
        size_t index;
        json_array_foreach(steps, index, step) {
            const char *value = json_string_value(json_object_get(step, key));
            if (value != NULL)
                json_object_set_new(found, value, json_true());
        }
        json_decref(steps);
    }
    return found;
}

static void inside(const char *what, json_t *names, const json_t *others) {
    const char *name;
    json_t *value;
    json_object_foreach(names, name, value) if (json_object_get(others, name) == NULL)
        FAIL("%s: %s is not among the others", what, name);
}

static void same(const char *what, json_t *found, json_t *wanted) {
    inside(what, found, wanted);
    inside(what, wanted, found);
}

static json_t *names_of(const char *const *list) {
    json_t *names = json_object();
    for (; *list != NULL; list++)
        json_object_set_new(names, *list, json_true());
    return names;
}

static void words(const void *unused) {
    (void)unused;
    json_t *described = table("Steps"), *used = of_steps("do"), *known = json_object();
    for (size_t i = 0; word_at(i) != NULL; i++)
        json_object_set_new(known, word_at(i), json_true());
    same("words that the cases use", used, described);
    same("words that the runner knows", known, described);
    json_decref(described), json_decref(used), json_decref(known);
}

static void capabilities(const void *unused) {
    (void)unused;
    json_t *described = table("Capabilities"), *needed = json_object(), *ours = names_of(CAPABILITIES);
    for (size_t i = 0; i < case_count; i++) {
        size_t index;
        json_t *need;
        json_array_foreach(cases[i].needs, index, need)
            json_object_set_new(needed, json_string_value(need), json_true());
    }
    same("capabilities that cases need", needed, described);
    inside("capabilities of the runner", ours, described);
    json_decref(described), json_decref(needed), json_decref(ours);
}

static void backends(const void *unused) {
    (void)unused;
    json_t *described = table("Backends"), *named = json_object(), *ours = names_of(BACKENDS);
    for (size_t i = 0; i < case_count; i++) {
        size_t index;
        json_t *name;
        json_array_foreach(cases[i].backends, index, name)
            json_object_set_new(named, json_string_value(name), json_true());
    }
    inside("backends that cases name", named, described);
    same("backends of the runner", ours, described);
    json_decref(described), json_decref(named), json_decref(ours);
}

static void kinds(const void *unused) {
    (void)unused;
    json_t *provoked = of_steps("error"), *excused = table("Errors that no case provokes");
    json_t *all = json_object();
    for (fencelock_code code = 1; strcmp(fencelock_code_name(code), "UNKNOWN") != 0; code++)
        json_object_set_new(all, fencelock_code_name(code), json_true());
    const char *kind;
    json_t *value;
    json_object_foreach(provoked, kind, value) if (json_object_get(excused, kind) != NULL)
        FAIL("%s is provoked, though the README says that none does", kind);
    json_object_update(provoked, excused);
    same("kinds", provoked, all);
    json_decref(provoked), json_decref(excused), json_decref(all);
}

static void names(const void *unused) {
    (void)unused;
    json_t *seen = json_object();
    for (size_t i = 0; i < case_count; i++) {
        if (json_object_get(seen, cases[i].name) != NULL)
            FAIL("two cases have the name %s", cases[i].name);
        json_object_set_new(seen, cases[i].name, json_true());
    }
    json_decref(seen);
}

void add_conformance_tests(void) {
    read_cases();
    test_add("conformance.format.words", words, NULL, CLEAN, NULL);
    test_add("conformance.format.capabilities", capabilities, NULL, CLEAN, NULL);
    test_add("conformance.format.backends", backends, NULL, CLEAN, NULL);
    test_add("conformance.format.kinds", kinds, NULL, CLEAN, NULL);
    test_add("conformance.format.names", names, NULL, CLEAN, NULL);
    for (size_t i = 0; i < case_count; i++)
        for (const char *const *backend = BACKENDS; *backend != NULL; backend++) {
            if (!makes_sense_on(&cases[i], *backend))
                continue;
            struct run *run = malloc(sizeof *run);
            *run = (struct run){&cases[i], *backend};
            char name[320], *why = NULL;
            snprintf(name, sizeof name, "conformance.%s[%s]", cases[i].name, *backend);
            const char *missing = lacking(cases[i].needs);
            if (missing != NULL) {
                why = malloc(64);
                snprintf(why, 64, "needs %s", missing);
            }
            test_add(name, run_case, run, CLEAN, why);
        }
}
