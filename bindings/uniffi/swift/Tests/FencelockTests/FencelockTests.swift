import XCTest

@testable import Fencelock

final class FencelockTests: XCTestCase {
    // README: Usage of Swift.
    func testUsage() async throws {
        let client = try await connect("memory:usage")
        let lock = try client.lock("orders/42", ttl: .seconds(10))
        try await lock.withLock(within: .seconds(5)) { lease in
            XCTAssertTrue(lease.isHeld())
            XCTAssertGreaterThan(lease.token(), 0)
        }
        try await client.close()
    }

    func testG1FiftyTasksLoseNoIncrement() async throws {
        let client = try await connect("memory:")
        let lock = try client.lock("a")
        let counter = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    for _ in 0..<20 {
                        try await lock.withLock { _ in counter.value += 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        XCTAssertEqual(counter.value, 1000)
        try await client.close()
    }

    func testG7ACancelledTaskLeavesNothingBehind() async throws {
        let client = try await connect("memory:")
        let lock = try client.lock("a")
        let held = try await lock.acquire()
        let waiting = Task { try await lock.acquire() }
        while try await client.inspect(name: "a").queue.isEmpty {}
        waiting.cancel()
        do {
            _ = try await waiting.value
            XCTFail("it succeeded")
        } catch is CancellationError {}
        while try await !client.inspect(name: "a").queue.isEmpty {}
        try await held.release()
        try await client.close()
    }

    func testErrorsHaveTheirCases() async throws {
        let client = try await connect("memory:")
        XCTAssertThrowsError(try client.lock("")) { error in
            guard case FencelockError.InvalidArgument = error else { return XCTFail("\(error)") }
        }
        try await client.close()
    }
}

/// Not guarded but by the lock.
final class Counter: @unchecked Sendable {
    var value = 0
}
