/* Arguments that are not what they should be: errors, and never a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static const struct {
    fencelock_code code;
    const char *name;
} KINDS[] = {
    {FENCELOCK_TIMEOUT, "TIMEOUT"},
    {FENCELOCK_LOST, "LOST"},
    {FENCELOCK_CANCELLED, "CANCELLED"},
    {FENCELOCK_CLOSED, "CLOSED"},
    {FENCELOCK_FORKED, "FORKED"},
    {FENCELOCK_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
    {FENCELOCK_UNSUPPORTED, "UNSUPPORTED"},
    {FENCELOCK_UNAVAILABLE, "UNAVAILABLE"},
    {FENCELOCK_AUTH_FAILED, "AUTH_FAILED"},
    {FENCELOCK_CONFLICT, "CONFLICT"},
    {FENCELOCK_INTERNAL, "INTERNAL"},
};

/* Walks all kinds of errors that the core has: each has a code and a name of its own here. */
static void every_kind_has_a_code(const void *unused) {
    (void)unused;
    size_t number = sizeof KINDS / sizeof *KINDS;
    for (size_t i = 0; i < number; i++) {
        fencelock_error *err;
        CHECK_IS(fencelock_test_kind(i, &err), KINDS[i].code);
        CHECK_IS(KINDS[i].code, i + 1);
        CHECK_IS(fencelock_error_code(err), KINDS[i].code);
        CHECK_TEXT(fencelock_code_name(KINDS[i].code), KINDS[i].name);
        CHECK_TEXT(fencelock_error_message(err), KINDS[i].name);
        CHECK(fencelock_error_cause(err) == NULL);
        fencelock_error_free(err);
    }
    CHECK_IS(fencelock_test_kind(number, NULL), -1);
    CHECK_TEXT(fencelock_code_name(FENCELOCK_OK), "OK");
    CHECK_TEXT(fencelock_code_name(12), "UNKNOWN");
    CHECK_TEXT(fencelock_code_name(-1), "UNKNOWN");
    CHECK_TEXT(fencelock_version(), FENCELOCK_VERSION);
}

static void null_is_an_error(const void *unused) {
    (void)unused;
    const fencelock_code invalid = FENCELOCK_INVALID_ARGUMENT;
    fencelock_client *client = connected("memory:");
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lock *made = lock;
    fencelock_lease *lease;
    fencelock_info *info;
    fencelock_info_list *list;

    CODE(fencelock_connect("memory:", NULL, &err), invalid);
    CODE(fencelock_lock_new(NULL, "a", NULL, &made, &err), invalid);
    CHECK(made == NULL);
    CODE(fencelock_lock_new(client, NULL, NULL, &made, &err), invalid);
    CODE(fencelock_lock_new(client, "a", NULL, NULL, &err), invalid);
    CODE(fencelock_acquire(NULL, -1, &lease, &err), invalid);
    CHECK(lease == NULL);
    CODE(fencelock_acquire(lock, -1, NULL, &err), invalid);
    CODE(fencelock_try_acquire(NULL, &lease, &err), invalid);
    CODE(fencelock_try_acquire(lock, NULL, &err), invalid);
    CODE(fencelock_acquire_async(NULL, -1, NULL, NULL, NULL, &err), invalid);
    CHECK_IS(fencelock_op_cancel(NULL), invalid);
    CODE(fencelock_release(NULL, &err), invalid);
    CODE(fencelock_lease_renew(NULL, &err), invalid);
    CODE(fencelock_lease_check(NULL, &err), invalid);
    CODE(fencelock_lease_wait_lost(NULL, 0, NULL, &err), invalid);
    CODE(fencelock_inspect(NULL, "a", &info, &err), invalid);
    CODE(fencelock_inspect(client, NULL, &info, &err), invalid);
    CODE(fencelock_inspect(client, "a", NULL, &err), invalid);
    CODE(fencelock_list(NULL, &list, &err), invalid);
    CODE(fencelock_list(client, NULL, &err), invalid);
    CODE(fencelock_force_release(NULL, "a", NULL, &err), invalid);
    CODE(fencelock_force_release(client, NULL, NULL, &err), invalid);
    CODE(fencelock_client_close(NULL, &err), invalid);
    CHECK_IS(fencelock_lease_lost_fd(NULL), -1);

    CHECK_IS(fencelock_lease_token(NULL), 0);
    CHECK_IS(fencelock_lease_remaining_ms(NULL), 0);
    CHECK(!fencelock_lease_is_held(NULL) && !fencelock_lease_is_lost(NULL));
    CHECK(fencelock_lease_name(NULL) == NULL && fencelock_lease_owner(NULL) == NULL);
    CHECK(fencelock_lock_name(NULL) == NULL && fencelock_client_is_closed(NULL));
    CHECK(fencelock_info_name(NULL) == NULL && fencelock_info_token(NULL) == 0);
    CHECK_IS(fencelock_info_held_ms(NULL), -1);
    CHECK_IS(fencelock_info_list_len(NULL), 0);
    CHECK(fencelock_info_list_get(NULL, 0) == NULL);
    CHECK_IS(fencelock_error_code(NULL), FENCELOCK_OK);
    CHECK_TEXT(fencelock_error_message(NULL), "");
    CHECK(fencelock_error_cause(NULL) == NULL);
    fencelock_client_options_set_prefix(NULL, "a");
    fencelock_lock_options_set_ttl_ms(NULL, 1);
    fencelock_client_options_free(NULL);
    fencelock_lock_options_free(NULL);
    fencelock_op_free(NULL);
    fencelock_lease_free(NULL);
    fencelock_lock_free(NULL);
    fencelock_client_free(NULL);
    fencelock_info_free(NULL);
    fencelock_info_list_free(NULL);
    fencelock_error_free(NULL);
    fencelock_set_log(NULL, NULL);

    /* Nobody has to take an error. */
    CHECK_IS(fencelock_lock_new(client, "", NULL, &made, NULL), invalid);
    CHECK_IS(fencelock_release(NULL, NULL), invalid);
    CHECK_IS(fencelock_test_open(), 2);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
}

static void never_called(fencelock_code code, fencelock_lease *lease, fencelock_error *err, void *data) {
    (void)code, (void)lease, (void)err, (void)data;
    FAIL("called");
}

static void freed_objects_are_errors(const void *unused) {
    (void)unused;
    const fencelock_code invalid = FENCELOCK_INVALID_ARGUMENT;
    fencelock_client *client = connected("memory:");
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease = acquired(lock), *none;
    fencelock_info *info;
    OK(fencelock_inspect(client, "a", &info, &err));
    fencelock_info_list *list;
    OK(fencelock_list(client, &list, &err));
    CHECK_IS(fencelock_info_list_len(list), 1);
    CHECK(fencelock_info_list_get(list, 1) == NULL);
    fencelock_info *listed = fencelock_info_list_get(list, 0);
    fencelock_info_list_free(list);
    CHECK_TEXT(fencelock_info_name(listed), "a");
    fencelock_info_free(listed);
    fencelock_lock_options *options = fencelock_lock_options_new();

    for (int again = 0; again < 3; again++) {
        fencelock_lease_free(lease);
        fencelock_lock_free(lock);
        fencelock_info_free(info);
        fencelock_info_list_free(list);
        fencelock_lock_options_free(options);
        CODE(fencelock_release(lease, &err), invalid);
        CODE(fencelock_lease_check(lease, &err), invalid);
        CODE(fencelock_lease_renew(lease, &err), invalid);
        CHECK(!fencelock_lease_is_held(lease) && fencelock_lease_token(lease) == 0);
        CODE(fencelock_acquire(lock, 0, &none, &err), invalid);
        CODE(fencelock_acquire_async(lock, 0, never_called, NULL, NULL, &err), invalid);
        CHECK(fencelock_info_owner(info) == NULL && fencelock_info_queue_len(info) == 0);
        fencelock_lock *next;
        CODE(fencelock_lock_new(client, "a", options, &next, &err), invalid);
    }
    /* New objects in the places of the old ones are not taken for them. */
    lock = lock_of(client, "a");
    fencelock_lease *other = acquired(lock);
    CODE(fencelock_release(lease, &err), invalid);
    fencelock_lease_free(lease);
    CHECK(fencelock_lease_is_held(other));
    OK(fencelock_release(other, &err));
    fencelock_lease_free(other);
    fencelock_lock_free(lock);

    fencelock_error *err;
    CHECK_IS(fencelock_acquire(lock, 0, &none, &err), invalid);
    CHECK(strstr(fencelock_error_message(err), "this is no lock: it was freed") != NULL);
    fencelock_error_free(err);
    fencelock_error_free(err);
    CHECK_IS(fencelock_error_code(err), invalid);
    CHECK_TEXT(fencelock_error_message(err), "");

    fencelock_client_free(client);
    fencelock_client_free(client);
    CODE(fencelock_client_close(client, &err), invalid);
}

static void objects_of_another_type_are_errors(const void *unused) {
    (void)unused;
    fencelock_client *client = connected("memory:");
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease = acquired(lock), *none;
    CODE(fencelock_release((fencelock_lease *)(void *)lock, &err), FENCELOCK_INVALID_ARGUMENT);
    CODE(fencelock_acquire((fencelock_lock *)(void *)lease, 0, &none, &err), FENCELOCK_INVALID_ARGUMENT);
    fencelock_lock_free((fencelock_lock *)(void *)lease);
    fencelock_client_free((fencelock_client *)(void *)lock);
    int here = 0;
    CODE(fencelock_release((fencelock_lease *)(void *)&here, &err), FENCELOCK_INVALID_ARGUMENT);
    CHECK(fencelock_lease_is_held(lease));
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
}

static void g10_texts_are_utf_8(const void *unused) {
    (void)unused;
    fencelock_client *client = connected("memory:"), *none;
    fencelock_lock *lock;
    fencelock_info *info;
    CODE(fencelock_lock_new(client, "a\xff", NULL, &lock, &err), FENCELOCK_INVALID_ARGUMENT);
    CODE(fencelock_inspect(client, "\xc3", &info, &err), FENCELOCK_INVALID_ARGUMENT);
    CODE(fencelock_force_release(client, "\xed\xa0\x80", NULL, &err), FENCELOCK_INVALID_ARGUMENT);
    CODE(fencelock_connect("memory:\xff", &none, &err), FENCELOCK_INVALID_ARGUMENT);
    lock = lock_of(client, "\xf0\x9f\x94\x92/\xc3\xa9");
    CHECK_TEXT(fencelock_lock_name(lock), "\xf0\x9f\x94\x92/\xc3\xa9");
    fencelock_lock_free(lock);
    fencelock_client_free(client);
}

static void g10_the_first_wrong_option_is_told(const void *unused) {
    (void)unused;
    fencelock_client_options *options = fencelock_client_options_new();
    fencelock_client_options_set_connect_timeout_ms(options, -5);
    fencelock_client_options_set_node_layout(options, "nonsense");
    fencelock_client *client;
    fencelock_error *err;
    CHECK_IS(fencelock_connect_with("memory:", options, &client, &err), FENCELOCK_INVALID_ARGUMENT);
    CHECK_TEXT(fencelock_error_message(err), "connect_timeout is -5 ms; allowed are 1 ms to 1 h");
    fencelock_error_free(err);
    fencelock_client_options_free(options);

    options = fencelock_client_options_new();
    fencelock_client_options_set_sentinel_auth(options, NULL, "secret");
    CODE(fencelock_connect_with("memory:", options, &client, &err), FENCELOCK_INVALID_ARGUMENT);
    fencelock_client_options_free(options);
    options = fencelock_client_options_new();
    fencelock_client_options_set_tls_cert(options, "/cert.pem", NULL);
    CODE(fencelock_connect_with("rediss://localhost/", options, &client, &err),
         FENCELOCK_INVALID_ARGUMENT);
    fencelock_client_options_free(options);
    options = fencelock_client_options_new();
    fencelock_client_options_set_tls_ca(options, "/ca.pem");
    fencelock_client_options_set_replicas(options, 101);
    CODE(fencelock_connect_with("redis://localhost/", options, &client, &err),
         FENCELOCK_INVALID_ARGUMENT);
    fencelock_client_options_free(options);
}

static void options_serve_several_times(const void *unused) {
    (void)unused;
    fencelock_client *client = connected("memory:");
    fencelock_lock_options *options = fencelock_lock_options_new();
    fencelock_lock_options_set_metadata(options, "first");
    fencelock_lock_options_set_max_hold_ms(options, -1);
    fencelock_lock *one, *two;
    OK(fencelock_lock_new(client, "one", options, &one, &err));
    fencelock_lock_options_set_metadata(options, "second");
    OK(fencelock_lock_new(client, "two", options, &two, &err));
    fencelock_lock_options_free(options);
    fencelock_lease *of_one = acquired(one), *of_two = acquired(two);
    fencelock_info *info;
    OK(fencelock_inspect(client, "one", &info, &err));
    CHECK_TEXT(fencelock_info_metadata(info), "first");
    fencelock_info_free(info);
    OK(fencelock_inspect(client, "two", &info, &err));
    CHECK_TEXT(fencelock_info_metadata(info), "second");
    fencelock_info_free(info);
    fencelock_lease_free(of_one), fencelock_lease_free(of_two);
    fencelock_lock_free(one), fencelock_lock_free(two);
    fencelock_client_free(client);
}

static void the_default_metadata_names_c(const void *unused) {
    (void)unused;
    fencelock_client *client = connected("memory:");
    fencelock_lock *lock = lock_of(client, "a");
    fencelock_lease *lease = acquired(lock);
    fencelock_info *info;
    OK(fencelock_inspect(client, "a", &info, &err));
    CHECK(strstr(fencelock_info_metadata(info), "lang=c") != NULL);
    CHECK_TEXT(fencelock_info_owner(info), fencelock_lease_owner(lease));
    CHECK_TEXT(fencelock_lease_name(lease), "a");
    CHECK(fencelock_info_held_ms(info) >= 0 && fencelock_info_ttl_left_ms(info) > 20000);
    CHECK(fencelock_info_waiter_owner(info, 0) == NULL);
    CHECK_IS(fencelock_info_waiter_waiting_ms(info, 0), -1);
    CHECK(fencelock_info_waiter_metadata(info, 0) == NULL);
    fencelock_info_free(info);
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
}

static void the_url_may_come_from_the_environment(const void *unused) {
    (void)unused;
    fencelock_client *client;
    unsetenv("FENCELOCK_URL");
    CODE(fencelock_connect(NULL, &client, &err), FENCELOCK_INVALID_ARGUMENT);
    setenv("FENCELOCK_URL", "memory:", 1);
    OK(fencelock_connect(NULL, &client, &err));
    fencelock_client_free(client);
}

void add_argument_tests(void) {
    test_add("arguments.every_kind_has_a_code", every_kind_has_a_code, NULL, CLEAN, NULL);
    test_add("arguments.null_is_an_error", null_is_an_error, NULL, CLEAN, NULL);
    test_add("arguments.freed_objects_are_errors", freed_objects_are_errors, NULL, CLEAN, NULL);
    test_add("arguments.objects_of_another_type_are_errors", objects_of_another_type_are_errors, NULL,
             CLEAN, NULL);
    test_add("arguments.g10_texts_are_utf_8", g10_texts_are_utf_8, NULL, CLEAN, NULL);
    test_add("arguments.g10_the_first_wrong_option_is_told", g10_the_first_wrong_option_is_told, NULL,
             CLEAN, NULL);
    test_add("arguments.options_serve_several_times", options_serve_several_times, NULL, CLEAN, NULL);
    test_add("arguments.the_default_metadata_names_c", the_default_metadata_names_c, NULL, CLEAN, NULL);
    test_add("arguments.the_url_may_come_from_the_environment", the_url_may_come_from_the_environment,
             NULL, CLEAN, NULL);
}
