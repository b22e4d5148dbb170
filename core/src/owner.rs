//! Owner ids and client ids: random, never derived from a thread, process or host.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Who has a place in the queue or a lease: 128 random bits, new for every place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "file", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "file", serde(into = "String", try_from = "String"))]
pub(crate) struct OwnerId(u128);

impl OwnerId {
    pub(crate) fn random() -> Self {
        OwnerId(u128::from_ne_bytes(random_bytes()))
    }

    /// A part of the span that is different for each owner id: jitter for which the system need
    /// not be asked for random bytes once more.
    pub(crate) fn share_of(self, span: Duration) -> Duration {
        span.mul_f64(f64::from(self.0 as u32) / f64::from(u32::MAX))
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for OwnerId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(());
        }
        u128::from_str_radix(text, 16).map(OwnerId).map_err(|_| ())
    }
}

#[cfg(feature = "file")]
impl From<OwnerId> for String {
    fn from(id: OwnerId) -> String {
        id.to_string()
    }
}

#[cfg(feature = "file")]
impl TryFrom<String> for OwnerId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map_err(|()| "an owner id has 32 hexadecimal digits")
    }
}

/// Which client to wake: 64 random bits, one per client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "file", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ClientId(u64);

impl ClientId {
    pub(crate) fn random() -> Self {
        ClientId(u64::from_ne_bytes(random_bytes()))
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(feature = "file")]
impl FromStr for ClientId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text.len() != 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(());
        }
        u64::from_str_radix(text, 16).map(ClientId).map_err(|_| ())
    }
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without entropy two owners could get the same id, and no lock is safe then.
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g6_owner_ids_are_32_hex_digits_and_come_back_from_them() {
        let id = OwnerId::random();
        assert_eq!(id.to_string().len(), 32);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(id, OwnerId::random());
        let shares: Vec<_> =
            (0..100).map(|_| OwnerId::random().share_of(Duration::from_secs(1))).collect();
        assert!(shares.iter().all(|share| *share <= Duration::from_secs(1)));
        assert!(shares.iter().max() > shares.iter().min());
        for bad in ["", "1", &"g".repeat(32), &"1".repeat(33)] {
            assert_eq!(bad.parse::<OwnerId>(), Err(()), "{bad}");
        }
    }
}
