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

#ifndef FENCELOCK_H
#define FENCELOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The version of this header.
 */
#define FENCELOCK_VERSION "0.1.0"
#define FENCELOCK_VERSION_MAJOR 0
#define FENCELOCK_VERSION_MINOR 1
#define FENCELOCK_VERSION_PATCH 0


/**
 * Success; every other code is a failure.
 */
#define FENCELOCK_OK 0

/**
 * The wait for the lock reached its time limit.
 */
#define FENCELOCK_TIMEOUT 1

/**
 * The lease passed its deadline, or the backend says that it is not ours. Final.
 */
#define FENCELOCK_LOST 2

/**
 * The call was cancelled.
 */
#define FENCELOCK_CANCELLED 3

/**
 * The client has been closed, or the process is ending.
 */
#define FENCELOCK_CLOSED 4

/**
 * The object belongs to the process that this one was forked from.
 */
#define FENCELOCK_FORKED 5

/**
 * An argument, option, URL or object is not allowed; the message says what is.
 */
#define FENCELOCK_INVALID_ARGUMENT 6

/**
 * The server, the URL scheme or the stored layout is not one that this version can use.
 */
#define FENCELOCK_UNSUPPORTED 7

/**
 * The backend did not answer, or cannot serve locks now.
 */
#define FENCELOCK_UNAVAILABLE 8

/**
 * The backend refused the credentials, or they lack a right that the lock needs.
 */
#define FENCELOCK_AUTH_FAILED 9

/**
 * Something that is not a lock stands where the lock should be; it was left untouched.
 */
#define FENCELOCK_CONFLICT 10

/**
 * A fault of this library.
 */
#define FENCELOCK_INTERNAL 11

/**
 * Nobody holds the lock.
 */
#define FENCELOCK_STATE_FREE 0

/**
 * A lease of this library holds it, whatever the language.
 */
#define FENCELOCK_STATE_HELD 1

/**
 * A client of another kind holds it.
 */
#define FENCELOCK_STATE_FOREIGN 2

/**
 * Something that an operator may want to know: a lease that was lost, a release without answer.
 */
#define FENCELOCK_LOG_WARNING 1

/**
 * A fault of this library.
 */
#define FENCELOCK_LOG_ERROR 2

/**
 * The connections to one backend, with one watchdog for all locks. Made by fencelock_connect(),
 * freed by the caller with fencelock_client_free(). Usable from all threads at once.
 */
typedef struct fencelock_client fencelock_client;

/**
 * Options of a client; what is not set has its default, or what the URL says. Made by
 * fencelock_client_options_new(), freed by the caller with fencelock_client_options_free(); may be
 * freed as soon as the call that it is given to has returned, and used for several.
 *
 * A setter cannot fail: fencelock_connect_with() reports the first value that is not allowed.
 */
typedef struct fencelock_client_options fencelock_client_options;

/**
 * What went wrong. Made by a call that fails, freed by the caller with fencelock_error_free().
 */
typedef struct fencelock_error fencelock_error;

/**
 * What the backend knew of one lock at one instant; it never changes. For people and tools, never for
 * decisions. Freed by the caller with fencelock_info_free().
 */
typedef struct fencelock_info fencelock_info;

/**
 * What fencelock_list() found. Freed by the caller with fencelock_info_list_free().
 */
typedef struct fencelock_info_list fencelock_info_list;

/**
 * A held lock. Who has it may release it, from any thread. It comes from fencelock_acquire() and its
 * sisters, and is freed by the caller with fencelock_lease_free().
 */
typedef struct fencelock_lease fencelock_lease;

/**
 * A name plus options. It holds nothing, and may be shared by all threads: each acquire of it is a
 * place of its own. Made by fencelock_lock_new(), freed by the caller with fencelock_lock_free().
 */
typedef struct fencelock_lock fencelock_lock;

/**
 * Options of a lock; what is not set has its default. Made by fencelock_lock_options_new(), freed
 * by the caller with fencelock_lock_options_free(); may be freed as soon as the call that it is
 * given to has returned, and used for several.
 *
 * A setter cannot fail: fencelock_lock_new() reports the first value that is not allowed.
 */
typedef struct fencelock_lock_options fencelock_lock_options;

/**
 * An acquire that was started. Made by fencelock_acquire_async(), freed by the caller with
 * fencelock_op_free(), before or after its end.
 */
typedef struct fencelock_op fencelock_op;

/**
 * How a call ended: FENCELOCK_OK or one of the codes that have a constant here. Codes are only ever
 * added, so treat one that you do not know as a failure.
 */
typedef int32_t fencelock_code;

/**
 * Receives the end of fencelock_acquire_async(). It runs exactly once, on a thread of the library,
 * possibly before fencelock_acquire_async() has returned, with all signals of the host blocked. It may
 * call the library, may block (other callbacks go on meanwhile), and must neither throw nor longjmp out.
 *
 * @param code FENCELOCK_OK, or what fencelock_acquire() would have returned; FENCELOCK_CANCELLED
 * after fencelock_op_cancel().
 * @param lease The lease, from now on yours: free it with fencelock_lease_free(); NULL on failure.
 * @param err The error, from now on yours: free it with fencelock_error_free(); NULL on success.
 * @param user_data What was given to fencelock_acquire_async().
 */
typedef void (*fencelock_acquire_callback)(fencelock_code code,
                                           fencelock_lease *lease,
                                           fencelock_error *err,
                                           void *user_data);

/**
 * The state of a lock: one of FENCELOCK_STATE_FREE and its like. More may be added.
 */
typedef int32_t fencelock_state;

/**
 * Receives one line of the log. It runs on a thread of the library that does nothing else, may
 * block and may call the library, and must neither throw nor longjmp out.
 *
 * @param level FENCELOCK_LOG_WARNING or FENCELOCK_LOG_ERROR.
 * @param message One line of UTF-8 without line break, valid during the call.
 * @param user_data What was given to fencelock_set_log().
 */
typedef void (*fencelock_log_callback)(int32_t level, const char *message, void *user_data);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that is loaded; FENCELOCK_VERSION is that of the header.
 *
 * @return A constant text such as "1.2.3".
 */
const char *fencelock_version(void);

/**
 * The code of an error.
 *
 * @param err Any error, or NULL.
 * @return Its code; FENCELOCK_OK for NULL; FENCELOCK_INVALID_ARGUMENT if it was freed.
 */
fencelock_code fencelock_error_code(const fencelock_error *err);

/**
 * One line that names the lock and says what to do. Passwords never appear in it.
 *
 * @param err Any error.
 * @return UTF-8, valid until the error is freed; "" for NULL or an error that was freed.
 */
const char *fencelock_error_message(const fencelock_error *err);

/**
 * What caused the error, such as the words of the operating system or of the server.
 *
 * @param err Any error.
 * @return UTF-8, valid until the error is freed; NULL if there is nothing more to say.
 */
const char *fencelock_error_cause(const fencelock_error *err);

/**
 * The stable name of a code, the same in every language: "TIMEOUT", "LOST" and so on.
 *
 * @param code Any number.
 * @return A constant text; "OK" for FENCELOCK_OK, "UNKNOWN" for a number that is no code.
 */
const char *fencelock_code_name(fencelock_code code);

/**
 * Frees an error. NULL is fine, and so is one that was freed.
 *
 * @param err An error, or NULL.
 */
void fencelock_error_free(fencelock_error *err);

/**
 * Options with all defaults.
 *
 * @return To be freed with fencelock_client_options_free(); NULL if 16 million objects are open.
 */
fencelock_client_options *fencelock_client_options_new(void);

/**
 * Frees options. NULL is fine, and so are options that were freed.
 */
void fencelock_client_options_free(fencelock_client_options *options);

/**
 * The limit for making the first connection, and for an acquire that never gets an answer.
 *
 * @param connect_timeout_ms Milliseconds; default 5000, allowed 1 to 3600000.
 */
void fencelock_client_options_set_connect_timeout_ms(fencelock_client_options *options,
                                                     int64_t connect_timeout_ms);

/**
 * The limit for one request. A request for a lock waits a third of its ttl at most.
 *
 * @param request_timeout_ms Milliseconds; default 2000, allowed 1 to 3600000.
 */
void fencelock_client_options_set_request_timeout_ms(fencelock_client_options *options,
                                                     int64_t request_timeout_ms);

/**
 * How many replicas must have acknowledged a grant or a renewal before it counts (Redis).
 *
 * @param replicas Default 0, allowed up to 100.
 */
void fencelock_client_options_set_replicas(fencelock_client_options *options, uint32_t replicas);

/**
 * What stands before the name in the key (Redis).
 *
 * @param prefix UTF-8, copied; default "fencelock:". "" is allowed: then the key is the name.
 */
void fencelock_client_options_set_prefix(fencelock_client_options *options, const char *prefix);

/**
 * The database and collection with the locks (MongoDB).
 *
 * @param collection UTF-8, copied: "database.collection"; default "fencelock.locks".
 */
void fencelock_client_options_set_collection(fencelock_client_options *options,
                                             const char *collection);

/**
 * The node below which the locks are (ZooKeeper), itself below the chroot of the URL.
 *
 * @param root UTF-8, copied: an absolute path; default "/fencelock".
 */
void fencelock_client_options_set_root(fencelock_client_options *options, const char *root);

/**
 * How contenders name their nodes (ZooKeeper), which decides what other libraries the lock
 * excludes.
 *
 * @param node_layout "curator" (the default), "kazoo" or "plain".
 */
void fencelock_client_options_set_node_layout(fencelock_client_options *options,
                                              const char *node_layout);

/**
 * A PEM file with the authorities that may have signed the server's certificate, in place of those
 * of the system (Redis and ZooKeeper with TLS).
 *
 * @param file UTF-8, copied: the path.
 */
void fencelock_client_options_set_tls_ca(fencelock_client_options *options, const char *file);

/**
 * PEM files with the client's own certificate and its private key (Redis and ZooKeeper with TLS).
 *
 * @param cert UTF-8, copied: the path of the certificate and those between it and its authority.
 * @param key UTF-8, copied: the path of its key.
 */
void fencelock_client_options_set_tls_cert(fencelock_client_options *options,
                                           const char *cert,
                                           const char *key);

/**
 * User name and password for the sentinels (Redis). Those in the URL are for the servers that the
 * sentinels name.
 *
 * @param user UTF-8, copied; NULL if they only ask for a password.
 * @param password UTF-8, copied.
 */
void fencelock_client_options_set_sentinel_auth(fencelock_client_options *options,
                                                const char *user,
                                                const char *password);

/**
 * Options with all defaults.
 *
 * @return To be freed with fencelock_lock_options_free(); NULL if 16 million objects are open.
 */
fencelock_lock_options *fencelock_lock_options_new(void);

/**
 * Frees options. NULL is fine, and so are options that were freed.
 */
void fencelock_lock_options_free(fencelock_lock_options *options);

/**
 * How long the backend keeps a lease without renewal. After a crash of the holder, others wait
 * this long.
 *
 * @param ttl_ms Milliseconds; default 30000, allowed 100 to 86400000 (24 h).
 */
void fencelock_lock_options_set_ttl_ms(fencelock_lock_options *options, int64_t ttl_ms);

/**
 * Whether the library renews leases by itself. Without renewal a lease ends when its ttl is over,
 * unless fencelock_lease_renew() sets it to a full ttl again.
 *
 * @param renew Default true.
 */
void fencelock_lock_options_set_renew(fencelock_lock_options *options, bool renew);

/**
 * The longest time that a lease may be held, however often it is renewed: the guard against a
 * holder that hangs. When it is over, the lease is lost.
 *
 * @param max_hold_ms Milliseconds, more than the ttl; -1 = no limit, the default.
 */
void fencelock_lock_options_set_max_hold_ms(fencelock_lock_options *options, int64_t max_hold_ms);

/**
 * A short text that fencelock_inspect() shows with the holder.
 *
 * @param metadata UTF-8, copied: up to 256 bytes without control characters. Default: host, process
 * id and language.
 */
void fencelock_lock_options_set_metadata(fencelock_lock_options *options, const char *metadata);

/**
 * Connects to a backend: one handshake, which fails fast.
 *
 * @param url UTF-8: "redis://host/", "mongodb://...", "zookeeper://...", "file:///dir" (the
 * processes of one machine), "memory:" (this process only) and their variants; NULL = the URL in
 * the environment variable FENCELOCK_URL.
 * @param[out] client The new client, to be freed with fencelock_client_free(); NULL on failure.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK; FENCELOCK_INVALID_ARGUMENT, FENCELOCK_UNSUPPORTED, FENCELOCK_AUTH_FAILED;
 * FENCELOCK_UNAVAILABLE within the connect timeout; FENCELOCK_CLOSED when the process is ending.
 */
fencelock_code fencelock_connect(const char *url, fencelock_client **client, fencelock_error **err);

/**
 * fencelock_connect() with options. Those set there win over options in the URL.
 *
 * @param url As in fencelock_connect().
 * @param options NULL = the defaults. Stays the caller's.
 * @param[out] client As in fencelock_connect().
 * @param[out] err See fencelock_error.
 * @return As fencelock_connect().
 */
fencelock_code fencelock_connect_with(const char *url,
                                      const fencelock_client_options *options,
                                      fencelock_client **client,
                                      fencelock_error **err);

/**
 * Releases all leases of the client, ends all its waits with FENCELOCK_CLOSED and closes its
 * connections, within 500 ms. It stays to be freed. Closing twice is fine.
 *
 * @param client Any client, also while other threads are using it.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK, FENCELOCK_INVALID_ARGUMENT, FENCELOCK_FORKED.
 */
fencelock_code fencelock_client_close(fencelock_client *client, fencelock_error **err);

/**
 * Whether fencelock_client_close() was called.
 *
 * @return true also for NULL and for a client that was freed or is the parent's.
 */
bool fencelock_client_is_closed(const fencelock_client *client);

/**
 * Frees a client. Its locks and leases stay usable, and keep its connections until they are freed
 * too; fencelock_client_close() ends all of them. NULL is fine, and so is a client that was freed.
 *
 * @param client A client, or NULL; also while other threads are using it.
 */
void fencelock_client_free(fencelock_client *client);

/**
 * A lock of a client. No I/O.
 *
 * @param client The client; it may be freed before the lock.
 * @param name UTF-8, copied: 1 to 1024 bytes, not beginning with "~fl".
 * @param options NULL = the defaults. Stays the caller's.
 * @param[out] lock The new lock, to be freed with fencelock_lock_free(); NULL on failure.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK; FENCELOCK_INVALID_ARGUMENT, whose message says what is allowed;
 * FENCELOCK_FORKED.
 */
fencelock_code fencelock_lock_new(fencelock_client *client,
                                  const char *name,
                                  const fencelock_lock_options *options,
                                  fencelock_lock **lock,
                                  fencelock_error **err);

/**
 * The name of a lock.
 *
 * @return UTF-8, valid until the lock is freed; NULL for no lock.
 */
const char *fencelock_lock_name(const fencelock_lock *lock);

/**
 * Frees a lock. It was never held, so nothing is released: leases taken through it stay as they
 * are, and waits go on. NULL is fine, and so is a lock that was freed.
 */
void fencelock_lock_free(fencelock_lock *lock);

/**
 * Waits for the lock. Blocks the calling thread; signals are handled meanwhile and do not end the
 * wait. To end it from elsewhere use fencelock_acquire_async(), or fencelock_client_close().
 *
 * @param lock The lock.
 * @param timeout_ms Milliseconds, up to 10 years; -1 = for ever; 0 = one attempt, which can succeed
 * but neither queues nor overtakes anybody who waits. Returns by the timeout + 50 ms whatever the
 * server does; with 0 by the request timeout + 50 ms.
 * @param[out] lease The lease, to be freed with fencelock_lease_free(), which also releases it; NULL
 * on failure.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK = the lock is held. FENCELOCK_TIMEOUT = not obtained.
 * FENCELOCK_UNAVAILABLE: never an answer within the connect timeout or, once queued, for 30 s.
 * FENCELOCK_AUTH_FAILED, FENCELOCK_CONFLICT, FENCELOCK_UNSUPPORTED as the backend says.
 * FENCELOCK_CLOSED, FENCELOCK_FORKED, FENCELOCK_INVALID_ARGUMENT.
 */
fencelock_code fencelock_acquire(fencelock_lock *lock,
                                 int64_t timeout_ms,
                                 fencelock_lease **lease,
                                 fencelock_error **err);

/**
 * Takes the lock if it is free and nobody waits for it. One request; never queues. Returns by the
 * request timeout + 50 ms.
 *
 * @param lock The lock.
 * @param[out] lease As in fencelock_acquire(); NULL on failure.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK = the lock is held. FENCELOCK_TIMEOUT = not obtained: a failure, so that work
 * is never done without the lock by a caller who only looks for FENCELOCK_OK. All else as in
 * fencelock_acquire().
 */
fencelock_code fencelock_try_acquire(fencelock_lock *lock,
                                     fencelock_lease **lease,
                                     fencelock_error **err);

/**
 * Starts waiting for the lock; the end is told to a function. Never blocks.
 *
 * @param lock The lock; it may be freed before the end.
 * @param timeout_ms As in fencelock_acquire().
 * @param callback The function, see there. It runs exactly once if FENCELOCK_OK is returned here, and
 * never otherwise. If the process ends first, it may not run at all.
 * @param user_data Handed to it as it is.
 * @param[out] op The operation, to be freed with fencelock_op_free(); NULL on failure. NULL may be
 * given by a caller who will not cancel.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK = started. FENCELOCK_INVALID_ARGUMENT, FENCELOCK_FORKED; FENCELOCK_CLOSED when
 * the process is ending.
 */
fencelock_code fencelock_acquire_async(fencelock_lock *lock,
                                       int64_t timeout_ms,
                                       fencelock_acquire_callback callback,
                                       void *user_data,
                                       fencelock_op **op,
                                       fencelock_error **err);

/**
 * Ends an acquire that was started: it withdraws and leaves nothing behind. The callback still runs,
 * with FENCELOCK_CANCELLED, or with the lease if that was obtained just before, so look at the code.
 * Never blocks. Again, or after the end, it has no effect.
 *
 * @param op The operation.
 * @return FENCELOCK_OK; FENCELOCK_INVALID_ARGUMENT if it was freed; FENCELOCK_FORKED.
 */
fencelock_code fencelock_op_cancel(fencelock_op *op);

/**
 * Frees an operation, which goes on and calls its callback all the same. NULL is fine, and so is an
 * operation that was freed.
 */
void fencelock_op_free(fencelock_op *op);

/**
 * The fencing token of a lease: strictly greater than every earlier token of its lock. Hand it to
 * what the lock protects, which has to refuse tokens lower than the highest it has seen.
 *
 * @return 0 for no lease; a token is never 0.
 */
uint64_t fencelock_lease_token(const fencelock_lease *lease);

/**
 * The name of the lock.
 *
 * @return UTF-8, valid until the lease is freed; NULL for no lease.
 */
const char *fencelock_lease_name(const fencelock_lease *lease);

/**
 * The owner id, as fencelock_inspect() shows it.
 *
 * @return 32 hexadecimal digits, valid until the lease is freed; NULL for no lease.
 */
const char *fencelock_lease_owner(const fencelock_lease *lease);

/**
 * For how long the lock is certainly ours without another renewal. No I/O.
 *
 * @return Milliseconds, rounded down; 0 when it is not held.
 */
int64_t fencelock_lease_remaining_ms(const fencelock_lease *lease);

/**
 * Whether the lock is ours now. Computed from the clock, without I/O: exact also first thing after
 * the process was stopped.
 *
 * @return false also after a release, for no lease, and for one of the parent in a forked child.
 */
bool fencelock_lease_is_held(const fencelock_lease *lease);

/**
 * Whether the lease was lost. No I/O.
 *
 * @return false after a release, for no lease, and for one of the parent in a forked child.
 */
bool fencelock_lease_is_lost(const fencelock_lease *lease);

/**
 * fencelock_lease_is_held() as an error, for use between two steps of the work. No I/O.
 *
 * @param lease The lease.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK; FENCELOCK_LOST when the lease is lost or was released; FENCELOCK_FORKED;
 * FENCELOCK_INVALID_ARGUMENT.
 */
fencelock_code fencelock_lease_check(const fencelock_lease *lease, fencelock_error **err);

/**
 * Sets the lease to a full ttl from now; needed only where the lock does not renew by itself. Never
 * longer than max_hold.
 *
 * @param lease The lease.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK; FENCELOCK_LOST when it is not ours any more; FENCELOCK_UNAVAILABLE when the
 * backend does not answer within the request timeout, the lease then goes on until its deadline;
 * FENCELOCK_CLOSED, FENCELOCK_FORKED, FENCELOCK_INVALID_ARGUMENT.
 */
fencelock_code fencelock_lease_renew(fencelock_lease *lease, fencelock_error **err);

/**
 * Waits until the lease is lost or released, or the time is over. It wakes at the deadline of the
 * lease at the latest, whatever the server does. It does not keep the lease: if another thread frees
 * it meanwhile, the wait ends as with a release.
 *
 * @param lease The lease.
 * @param timeout_ms Milliseconds, up to 10 years; -1 = no limit.
 * @param[out] lost Whether it is lost. NULL if the caller does not want to know.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK, lost or not; FENCELOCK_CLOSED when the process is ending; FENCELOCK_FORKED,
 * FENCELOCK_INVALID_ARGUMENT.
 */
fencelock_code fencelock_lease_wait_lost(const fencelock_lease *lease,
                                         int64_t timeout_ms,
                                         bool *lost,
                                         fencelock_error **err);

/**
 * A file descriptor that becomes readable when the lease is lost, for poll(), epoll and event loops.
 * It never does after a release. It is the same one at each call, and borrowed: neither read, write
 * nor close it. It is valid until the lease is freed. A lost lease does not close it.
 *
 * It does not become readable when another thread closes the client: then nothing is held, nor lost.
 *
 * @param lease The lease.
 * @return The descriptor; -1 for no lease and in a forked child, when the process is ending, and when
 * no descriptors are left.
 */
int32_t fencelock_lease_lost_fd(const fencelock_lease *lease);

/**
 * Releases the lock and hands it to the next contender; fencelock_lease_is_held() is false from the
 * call on. The lease stays to be freed. May be called again: after a success it does nothing, after an
 * error it asks again and is told the truth.
 *
 * @param lease The lease.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK = the lock was ours to the end. FENCELOCK_LOST when it had ended before; at once,
 * without I/O, when that is known here. FENCELOCK_UNAVAILABLE when the backend does not answer within
 * the request timeout; the release then goes on in the background until the deadline.
 * FENCELOCK_FORKED, FENCELOCK_INVALID_ARGUMENT.
 */
fencelock_code fencelock_release(fencelock_lease *lease,
                                 fencelock_error **err);

/**
 * Frees a lease. If it is still held, it is released in the background: nobody hears whether that
 * succeeded. NULL is fine, and so is a lease that was freed. In a forked child nothing is released.
 */
void fencelock_lease_free(fencelock_lease *lease);

/**
 * What the backend knows of a name.
 *
 * @param client The client.
 * @param name UTF-8: the name of a lock.
 * @param[out] info To be freed with fencelock_info_free(); NULL on failure.
 * @param[out] err See fencelock_error.
 * @return FENCELOCK_OK; FENCELOCK_UNAVAILABLE, FENCELOCK_AUTH_FAILED, FENCELOCK_CONFLICT,
 * FENCELOCK_UNSUPPORTED, FENCELOCK_CLOSED, FENCELOCK_FORKED, FENCELOCK_INVALID_ARGUMENT.
 */
fencelock_code fencelock_inspect(fencelock_client *client,
                                 const char *name,
                                 fencelock_info **info,
                                 fencelock_error **err);

/**
 * All locks of this client's backend and prefix that are held. Walks all keys: a tool for people.
 *
 * @param client The client.
 * @param[out] list To be freed with fencelock_info_list_free(); NULL on failure.
 * @param[out] err See fencelock_error.
 * @return As fencelock_inspect().
 */
fencelock_code fencelock_list(fencelock_client *client,
                              fencelock_info_list **list,
                              fencelock_error **err);

/**
 * Ends the lease that holds a name now, whoever's it is, and hands the lock on. The former holder
 * hears of it at its next renewal at the latest, so for that long two may believe to hold the lock:
 * for emergencies only.
 *
 * @param client The client.
 * @param name UTF-8: the name of a lock.
 * @param[out] ended Whether anybody held it. NULL if the caller does not want to know.
 * @param[out] err See fencelock_error.
 * @return As fencelock_inspect().
 */
fencelock_code fencelock_force_release(fencelock_client *client,
                                       const char *name,
                                       bool *ended,
                                       fencelock_error **err);

/**
 * How many locks a list has.
 */
size_t fencelock_info_list_len(const fencelock_info_list *list);

/**
 * One of a list, as an object of its own: it outlives the list.
 *
 * @param list The list.
 * @param index From 0.
 * @return To be freed with fencelock_info_free(); NULL if there is none.
 */
fencelock_info *fencelock_info_list_get(const fencelock_info_list *list, size_t index);

/**
 * Frees a list. NULL is fine, and so is a list that was freed.
 */
void fencelock_info_list_free(fencelock_info_list *list);

/**
 * The name of the lock.
 *
 * @return UTF-8, valid until the info is freed; NULL for no info.
 */
const char *fencelock_info_name(const fencelock_info *info);

/**
 * Who holds the lock, if anybody.
 */
fencelock_state fencelock_info_state(const fencelock_info *info);

/**
 * The owner id of the holder, 32 hexadecimal digits; of a foreign holder its value.
 *
 * @return UTF-8, valid until the info is freed; NULL if nobody holds the lock.
 */
const char *fencelock_info_owner(const fencelock_info *info);

/**
 * The fencing token of the lease.
 *
 * @return 0 if there is none, as of a foreign holder.
 */
uint64_t fencelock_info_token(const fencelock_info *info);

/**
 * For how long the lock has been held.
 *
 * @return Milliseconds; -1 if nobody holds it or the backend does not know (ZooKeeper).
 */
int64_t fencelock_info_held_ms(const fencelock_info *info);

/**
 * What is left of the holder's time.
 *
 * @return Milliseconds; -1 if it has no limit, nobody holds it, or the backend does not know
 * (ZooKeeper).
 */
int64_t fencelock_info_ttl_left_ms(const fencelock_info *info);

/**
 * What the holder said of itself.
 *
 * @return UTF-8, valid until the info is freed; NULL if there is nothing.
 */
const char *fencelock_info_metadata(const fencelock_info *info);

/**
 * How many contenders wait for the lock.
 */
size_t fencelock_info_queue_len(const fencelock_info *info);

/**
 * The owner id of a contender, 32 hexadecimal digits.
 *
 * @param info The info.
 * @param index From 0, in the order of service.
 * @return Valid until the info is freed; NULL if there is no such contender.
 */
const char *fencelock_info_waiter_owner(const fencelock_info *info, size_t index);

/**
 * For how long a contender has been waiting.
 *
 * @param info The info.
 * @param index From 0, in the order of service.
 * @return Milliseconds; -1 if there is no such contender.
 */
int64_t fencelock_info_waiter_waiting_ms(const fencelock_info *info, size_t index);

/**
 * What a contender said of itself.
 *
 * @param info The info.
 * @param index From 0, in the order of service.
 * @return UTF-8, valid until the info is freed; NULL if there is nothing or no such contender.
 */
const char *fencelock_info_waiter_metadata(const fencelock_info *info, size_t index);

/**
 * Frees an info. NULL is fine, and so is an info that was freed.
 */
void fencelock_info_free(fencelock_info *info);

/**
 * Sends warnings of the library to a function of yours: lost leases, releases without an answer,
 * faults. Without one they are dropped. It is the same function for all clients of the process; a
 * later call replaces it, and the earlier function may still be running when that call returns.
 *
 * @param callback The function; NULL = none.
 * @param user_data Handed to it as it is; has to stay valid until the process ends.
 */
void fencelock_set_log(fencelock_log_callback callback, void *user_data);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FENCELOCK_H */
