//! Ports that no other test gets, also while their servers are dead.

use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those from which the system takes the near ends of connections.
const RANGE: Range<u16> = 12_000..32_000;

/// A port on loopback, reserved until this is dropped.
pub(crate) struct Port {
    number: u16,
    /// The servers use TCP only. So the UDP port of the same number can be the reservation, which
    /// the system ends with this process, however that ends.
    _reservation: UdpSocket,
}

impl Port {
    pub(crate) fn reserve() -> Self {
        static TRIED: AtomicU16 = AtomicU16::new(0);
        // Test programs that run side by side begin at different places.
        let start = std::process::id().wrapping_mul(97);
        for _ in RANGE {
            let tried = u32::from(TRIED.fetch_add(1, Ordering::Relaxed));
            let place = start.wrapping_add(tried) % RANGE.len() as u32;
            let number = RANGE.start + place as u16;
            if let Ok(reservation) = UdpSocket::bind(("127.0.0.1", number))
                && TcpListener::bind(("127.0.0.1", number)).is_ok()
            {
                return Port { number, _reservation: reservation };
            }
        }
        panic!("no port is free in {RANGE:?}");
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// HOST:PORT.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}
