//! What each thread does: it draws one code under the lock. This file is the example.

use std::time::{Duration, Instant};

use fencelock::Token;
use fencelock::blocking::Lock;

use crate::Failure;
use crate::sequence::{Code, Sequence};

/// What everybody has to lock who draws an order code.
pub(crate) const LOCK: &str = "order-code";

/// A code that an order got.
pub(crate) struct Draw {
    pub(crate) code: Code,
    /// The fencing token of the lease under which it was drawn; none without a lock.
    pub(crate) token: Option<Token>,
    /// How long the thread waited for the lock.
    pub(crate) waited: Duration,
}

/// Draws the next code.
pub(crate) fn draw(lock: Option<&Lock>, sequence: &Sequence) -> Result<Draw, Failure> {
    let Some(lock) = lock else {
        let code = sequence.draw(|| Ok(()))?;
        return Ok(Draw { code, token: None, waited: Duration::ZERO });
    };

    let asked = Instant::now();
    let lease = lock.acquire()?; // an error from here on drops the lease, which releases it
    let waited = asked.elapsed();
    let token = lease.token();
    // If the lease was lost after the last code was read, somebody else may be drawing the next
    // one already: this ends the draw before it writes.
    let code = sequence.draw(|| Ok(lease.check()?))?;
    // The code counts only now. An error says that the lease was lost while we wrote, and that
    // somebody else may have drawn the same code: nobody must use ours.
    lease.release()?;
    Ok(Draw { code, token: Some(token), waited })
}
