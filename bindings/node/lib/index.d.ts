/// <reference lib="esnext.disposable" />

/** The version of this package. */
export const version: string

/** Where the locks are, and how long the server may take. Times in milliseconds. */
export interface ClientOptions {
  /** The limit for making the first connection: 1 ms to 1 h, default 5000. */
  connectTimeout?: number
  /** The limit for one request: 1 ms to 1 h, default 2000. */
  requestTimeout?: number
  /** What stands before the name in the key (Redis), default `fencelock:`. */
  prefix?: string
  /** The collection with the locks (MongoDB), default `fencelock.locks`. */
  collection?: string
  /** The node below which the locks are (ZooKeeper), default `/fencelock`. */
  root?: string
  /** The library whose locks ours must exclude (ZooKeeper), default `curator`. */
  nodeLayout?: 'curator' | 'kazoo' | 'plain'
}

/** Times in milliseconds. */
export interface LockOptions {
  /** How long the backend keeps a lease without renewal: 100 ms to 24 h, default 30 000. */
  ttl?: number
  /** `false` = a fixed lease that ends at ttl unless {@link Lease.renew} is called. */
  renew?: boolean
  /** The longest time that a lease may be held, for holders that may hang. Longer than ttl. */
  maxHold?: number
  /** A short text that `inspect` shows; default: host, process id, language. */
  metadata?: string
}

/** How long a call waits. */
export interface WaitOptions {
  /** Milliseconds; none = for ever, 0 = one attempt, which can succeed. At most 10 years. */
  timeout?: number
}

/** How long a call waits, and what else ends the wait. */
export interface AcquireOptions extends WaitOptions {
  /** Aborted, it ends the wait, which then rejects with the signal's reason. */
  signal?: AbortSignal
}

/**
 * Connects to a backend: `redis://…`, `redis+unix://…`, `redis-cluster://…`, `redis-sentinel://…`,
 * the same with TLS as `rediss…`, `mongodb://…`, `mongodb+srv://…`, `zookeeper://…`, `file:///dir`
 * for the processes of one machine, `memory:` or `memory:NAME` for this process and its workers.
 *
 * Without a URL it reads the environment variable FENCELOCK_URL. Makes one handshake and fails fast.
 * Options that are given win over those in the URL (`fl.prefix=…` and so on).
 *
 * Rejects with InvalidArgument, Unsupported, AuthFailed, or Unavailable within the connect timeout.
 */
export function connect(url?: string | null, options?: ClientOptions): Promise<Client>

/** {@link connect} for scripts: blocks this thread. */
export function connectSync(url?: string | null, options?: ClientOptions): Client

/**
 * The connections to one backend, with one watchdog for all locks. Made by {@link connect}.
 *
 * An open client does not keep the process alive; its normal end closes all clients.
 */
export class Client implements AsyncDisposable, Disposable {
  private constructor()

  /** A lock. No I/O. Throws InvalidArgument. */
  lock(name: string, options?: LockOptions): Lock

  /** What the backend knows of a name. Rejects with Unavailable and what `acquire` rejects with. */
  inspect(name: string): Promise<LockInfo>

  /** All names of this backend and prefix that are held. Walks all keys: a tool for people. */
  list(): Promise<LockInfo[]>

  /**
   * Ends the lease that holds the name, whoever's it is; `false` if nobody held it. The former
   * holder is told later, so for that long two may believe to hold the lock: for emergencies only.
   */
  forceRelease(name: string): Promise<boolean>

  /**
   * Releases all leases, ends all waits with Closed, closes the connections, within 500 ms.
   * Closing twice is fine.
   */
  close(): Promise<void>

  /** {@link close} for scripts: blocks this thread. */
  closeSync(): void

  /** Whether it was closed. */
  readonly closed: boolean;

  /** As {@link close}: `await using client = await connect(url)`. */
  [Symbol.asyncDispose](): Promise<void>

  /** As {@link closeSync}. */
  [Symbol.dispose](): void
}

/** A name plus options. Holds nothing: each acquire has a lease of its own. Made by `client.lock`. */
export class Lock {
  private constructor()

  /** The name. */
  readonly name: string

  /**
   * Waits for the lock. While it does, the process stays alive.
   *
   * Rejects with LockTimeout, Unavailable, AuthFailed, Conflict, Unsupported, Closed,
   * InvalidArgument, or the signal's reason. Then nothing is left behind.
   */
  acquire(options?: AcquireOptions): Promise<Lease>

  /** Takes the lock if it is free and nobody waits for it, else gives null. Never queues. */
  tryAcquire(): Promise<Lease | null>

  /**
   * Runs `body` with the lock held, and releases it then. Gives what `body` gives.
   *
   * If the lease was lost it rejects with LockLost, unless `body` threw: that error goes on, with
   * the loss as the last `cause`. It never rejects with Unavailable for the release, which goes on
   * in the background until the deadline, with a warning.
   */
  using<T>(body: (lease: Lease) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>

  /**
   * {@link acquire} for scripts: blocks this thread, so a lock that this very thread holds is not
   * released meanwhile. Renewals go on.
   */
  acquireSync(options?: WaitOptions): Lease

  /** {@link tryAcquire} for scripts. */
  tryAcquireSync(): Lease | null
}

/**
 * A held lock. The lease is the ownership: whoever has it may release it.
 *
 * One that is collected as garbage is not released, because the work may still run: a warning names
 * it, and it ends with `maxHold` or with the client. It does not keep the process alive.
 */
export class Lease implements AsyncDisposable, Disposable {
  private constructor()

  /** The name of the lock. */
  readonly name: string

  /** The owner id, 32 hexadecimal digits, as `inspect` shows it. */
  readonly owner: string

  /** The fencing token: strictly greater than every earlier token of this name. */
  readonly token: bigint

  /** Whether the lock is ours now. Computed from the clock, without I/O. False once released. */
  readonly held: boolean

  /** Whether the lease was lost. Computed from the clock, without I/O. Final once true. */
  readonly lost: boolean

  /** Milliseconds for which the lock is certainly ours without another renewal. */
  readonly remaining: number

  /**
   * Aborted with a LockLost when the lease is lost: at its deadline at the latest, whatever the
   * server does, as soon as the event loop is free. Never after a release.
   */
  readonly signal: AbortSignal

  /** `held` as an exception, for use between two steps of the work. No I/O. Throws LockLost. */
  check(): void

  /**
   * Sets the lease to a full ttl from now; needed only with `renew: false`.
   *
   * Rejects with LockLost when it is not ours any more; Unavailable when the backend does not answer
   * (the lease then goes on until its deadline); Closed.
   */
  renew(): Promise<void>

  /**
   * Releases the lock and hands it to the next contender. `held` is false from the call on. It may
   * be called again: after a success it does nothing, after an error it asks again.
   *
   * Rejects with LockLost when the lease had ended before; Unavailable when the backend does not
   * answer (the release then goes on in the background until the deadline).
   */
  release(): Promise<void>

  /** {@link release} for scripts: blocks this thread. */
  releaseSync(): void

  /**
   * Leaves a block, `await using lease = await lock.acquire()`: releases as {@link Lock.using} does.
   * What the block threw and a loss arrive together, as a SuppressedError.
   */
  [Symbol.asyncDispose](): Promise<void>

  /** Leaves a block, `using lease = lock.acquireSync()`. */
  [Symbol.dispose](): void
}

/** What the backend knew of one name at one instant: for people and tools, never for decisions. */
export interface LockInfo {
  /** The name of the lock, without prefix or root. */
  name: string
  /** `held` by a lease of this library, `foreign`: by another client. */
  state: 'free' | 'held' | 'foreign'
  /** The owner id of the holder; of a foreign holder its value. */
  owner: string | null
  /** The fencing token of the lease; null for a foreign holder. */
  token: bigint | null
  /** For how long it has been held; null if that is not known. */
  heldMs: number | null
  /** What is left of the holder's time; null if it has no limit. */
  ttlLeftMs: number | null
  /** What the holder said of itself. */
  metadata: string | null
  /** Who waits, in the order of service. */
  queue: WaiterInfo[]
}

/** One contender of a queue. */
export interface WaiterInfo {
  /** The owner id of this place in the queue. */
  owner: string
  /** For how many milliseconds it has been waiting. */
  waitingMs: number
  /** The text that its lock was made with. */
  metadata: string | null
}

/** The stable codes of errors, the same in every language. */
export type ErrorCode =
  | 'TIMEOUT'
  | 'LOST'
  | 'CANCELLED'
  | 'CLOSED'
  | 'FORKED'
  | 'INVALID_ARGUMENT'
  | 'UNSUPPORTED'
  | 'UNAVAILABLE'
  | 'AUTH_FAILED'
  | 'CONFLICT'
  | 'INTERNAL'

/**
 * The base of all errors of this package. The message is one line that names the lock and says what
 * to do; passwords never appear in it.
 */
export class FencelockError extends Error {
  /** What went wrong, for programs. */
  readonly code: ErrorCode
}

/** The wait for the lock reached its time limit. Nothing is left behind. */
export class LockTimeout extends FencelockError {
  /** `TIMEOUT`, always. */
  readonly code: 'TIMEOUT'
}

/** The lease passed its deadline, or the backend says that it is not ours. Final. */
export class LockLost extends FencelockError {
  /** `LOST`, always. */
  readonly code: 'LOST'
}

/** The call was cancelled. An aborted acquire rejects with the signal's reason instead. */
export class Cancelled extends FencelockError {
  /** `CANCELLED`, always. */
  readonly code: 'CANCELLED'
}

/** The client has been closed, or the process is ending. */
export class Closed extends FencelockError {
  /** `CLOSED`, always. */
  readonly code: 'CLOSED'
}

/** Not in Node, which does not fork in this sense. */
export class Forked extends FencelockError {
  /** `FORKED`, always. */
  readonly code: 'FORKED'
}

/** A name, option, timeout or URL is not allowed; the message says what is. */
export class InvalidArgument extends FencelockError {
  /** `INVALID_ARGUMENT`, always. */
  readonly code: 'INVALID_ARGUMENT'
}

/** The server, the URL scheme or the stored layout is not one that this version can use. */
export class Unsupported extends FencelockError {
  /** `UNSUPPORTED`, always. */
  readonly code: 'UNSUPPORTED'
}

/** The backend did not answer, or cannot serve locks now. */
export class Unavailable extends FencelockError {
  /** `UNAVAILABLE`, always. */
  readonly code: 'UNAVAILABLE'
}

/** The backend refused the credentials, or they lack a right that the lock needs. */
export class AuthFailed extends FencelockError {
  /** `AUTH_FAILED`, always. */
  readonly code: 'AUTH_FAILED'
}

/** Something that is not a lock stands where the lock should be; it was left untouched. */
export class Conflict extends FencelockError {
  /** `CONFLICT`, always. */
  readonly code: 'CONFLICT'
}

/** A fault of this library. */
export class Internal extends FencelockError {
  /** `INTERNAL`, always. */
  readonly code: 'INTERNAL'
}
