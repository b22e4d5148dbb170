/*
 * fencelock: a distributed lock with fencing tokens, in C.
 *
 * Generated from bindings/c/src by `make c-header`. Do not edit.
 *
 *     fencelock_client *client = NULL;
 *     fencelock_lock *lock = NULL;
 *     fencelock_lease *lease = NULL;
 *     fencelock_error *err = NULL;
 *
 *     if (fencelock_connect("redis://127.0.0.1/", &client, &err) == FENCELOCK_OK &&
 *         fencelock_lock_new(client, "orders/42", NULL, &lock, &err) == FENCELOCK_OK &&
 *         fencelock_acquire(lock, 5000, &lease, &err) == FENCELOCK_OK) {
 *         update(fencelock_lease_token(lease));
 *         fencelock_release(lease, &err);
 *     }
 *     if (err != NULL)
 *         fprintf(stderr, "%s\n", fencelock_error_message(err));
 *     fencelock_error_free(err);
 *     fencelock_lease_free(lease);
 *     fencelock_lock_free(lock);
 *     fencelock_client_free(client);
 *
 * What holds for every function:
 *
 * Objects. All types are opaque. Each object is freed by the caller, with the function of its type.
 * Free functions take NULL, and objects may be freed in any order, from any thread and while other
 * threads are using them: a call under way runs to its end. An object that was freed, or one of
 * another type, is no crash: the call fails with FENCELOCK_INVALID_ARGUMENT, or returns what it
 * returns for "none". Pointers to objects are not addresses; never follow them.
 *
 * Threads. Every function may be called from any thread at any time, also from the callbacks of
 * this library, but not from a signal handler. No function keeps a lock of the host's.
 *
 * Texts. UTF-8, ending with NUL. Given ones are copied. Returned ones belong to the object that they
 * came from, and are gone when that is freed.
 *
 * Times. Milliseconds, in names that end in _ms.
 *
 * Errors. A function that can fail returns a fencelock_code. If it is not FENCELOCK_OK, and `err` is
 * not NULL, then *err is a new error that the caller frees; else *err is NULL, whatever it was
 * before. Places for results are set to NULL, false or 0 on failure. No panic of the library crosses:
 * it becomes FENCELOCK_INTERNAL.
 *
 * Fork. In a forked child all objects of the parent are foreign: nothing is held, freeing them touches
 * nothing, everything else fails with FENCELOCK_FORKED. Connect a new client there (ZooKeeper: not
 * possible in a child of a process that has had a ZooKeeper client).
 *
 * Exit. When the process ends normally, exit() releases all leases and ends all waits within 500 ms.
 * The library starts its threads with the first client, and is never unloaded.
 */
