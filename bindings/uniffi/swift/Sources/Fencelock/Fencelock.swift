// What Swift has and uniffi does not know of: Duration, cancellation of tasks, and a body under a lock.
// The classes are generated, and so is FencelockError, with one case for each kind of error.

import Foundation

/// Where warnings go, such as that of a lost lease.
private final class StandardError: Logger {
    func log(severity: Severity, message: String) {
        // One that is closed is no reason to end the process.
        try? FileHandle.standardError.write(contentsOf: Data("fencelock: \(message)\n".utf8))
    }
}

/// Once: warnings have a place, and the end of the process releases leases.
private let prepared: Void = prepare(logger: StandardError())

extension Duration {
    fileprivate var asSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}

/// Connects to a backend: `memory:`, `file:///dir`, `redis://…`, `mongodb://…`, `zookeeper://…`; without
/// a URL, to what the environment variable `FENCELOCK_URL` says.
public func connect(_ url: String? = nil, prefix: String? = nil) async throws -> Client {
    _ = prepared
    let options = ClientOptions(
        connectTimeout: nil, requestTimeout: nil, prefix: prefix, collection: nil, root: nil,
        nodeLayout: nil)
    let connecting = try connect(url: url, options: options, language: .swift)
    try await connecting.connected()
    return connecting.claim()!
}

extension Client {
    /// A lock: a name plus options, which holds nothing.
    public func lock(
        _ name: String, ttl: Duration? = nil, renew: Bool = true, maxHold: Duration? = nil,
        metadata: String? = nil
    ) throws -> Lock {
        let options = LockOptions(
            ttl: ttl?.asSeconds, renew: renew, maxHold: maxHold?.asSeconds, metadata: metadata)
        return try lock(name: name, options: options)
    }

    /// Releases all leases and ends all waits.
    public func close() async throws { try await end() }
}

extension Lock {
    /// Waits for the lock. A task that is cancelled leaves nothing behind and gets `CancellationError`.
    public func acquire(within timeout: Duration? = nil) async throws -> Lease {
        try await claim(acquire(timeout: timeout?.asSeconds))!
    }

    /// Takes the lock if it is free and nobody waits for it; nil if not.
    public func acquireIfFree() async throws -> Lease? {
        try await claim(tryAcquire())
    }

    /// Runs the body while holding the lock, and releases it. A body during which the lease was lost
    /// ends with `FencelockError.Lost`, unless it failed itself.
    public func withLock<T>(
        within timeout: Duration? = nil, _ body: (Lease) async throws -> T
    ) async throws -> T {
        let lease = try await acquire(within: timeout)
        let result: T
        do {
            result = try await body(lease)
        } catch {
            try? await lease.release()
            throw error
        }
        do {
            try await lease.release()
        } catch FencelockError.Closed, FencelockError.Unavailable {
            // Released with the client; or it goes on in the background until the deadline.
        }
        return result
    }

    // uniffi does not end a call when its task is cancelled.
    private func claim(_ attempt: Attempt) async throws -> Lease? {
        let granted = try await withTaskCancellationHandler {
            do {
                return try await attempt.granted()
            } catch FencelockError.Cancelled {
                throw CancellationError()
            }
        } onCancel: {
            attempt.cancel()
        }
        if !granted { return nil }
        guard let lease = attempt.claim() else { throw CancellationError() }
        return lease
    }
}
