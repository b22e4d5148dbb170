/* A user's program: C11 and C++17, against what is installed. */
#include <fencelock.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
static_assert(FENCELOCK_OK == 0, "0 is success");
#else
_Static_assert(FENCELOCK_OK == 0, "0 is success");
#endif

static void done(fencelock_code code, fencelock_lease *lease, fencelock_error *err, void *user_data) {
    (void)code;
    (void)user_data;
    fencelock_error_free(err);
    fencelock_lease_free(lease);
}

int main(void) {
    fencelock_client *client = NULL;
    fencelock_lock *lock = NULL;
    fencelock_lease *lease = NULL;
    fencelock_error *err = NULL;

    if (fencelock_connect("memory:", &client, &err) == FENCELOCK_OK &&
        fencelock_lock_new(client, "orders/42", NULL, &lock, &err) == FENCELOCK_OK &&
        fencelock_acquire(lock, 5000, &lease, &err) == FENCELOCK_OK &&
        fencelock_acquire_async(lock, 5000, done, NULL, NULL, &err) == FENCELOCK_OK) {
        if (fencelock_lease_token(lease) == 0)
            return 1;
        fencelock_release(lease, &err);
    }
    int failed = err != NULL || strcmp(fencelock_version(), FENCELOCK_VERSION) != 0;
    if (err != NULL)
        fprintf(stderr, "%s\n", fencelock_error_message(err));
    fencelock_error_free(err);
    fencelock_lease_free(lease);
    fencelock_lock_free(lock);
    fencelock_client_free(client);
    return failed;
}
