//! What replicas have.

use redis::Connection;

/// Returns when that many replicas have all that was written to the server so far. Writes the key
/// itself, because WAIT is about the writes of its own connection.
pub(crate) fn wait_for_replicas(connection: &mut Connection, key: &str, replicas: usize) {
    let mut commands = redis::pipe();
    commands.cmd("SET").arg(key).arg("in step").ignore();
    commands.cmd("WAIT").arg(replicas).arg(10_000);
    let (have,): (usize,) = commands.query(connection).unwrap();
    assert_eq!(have, replicas);
}
