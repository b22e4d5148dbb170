//! How often one crosses the link: how much longer it takes when the link is slower. What server
//! and client need for themselves is the same on both links and does not count. Of many turns the
//! quickest counts: a delay is a least time, and all that a busy machine adds comes on top.

use std::time::Instant;

use anyhow::Result;
use fencelock::Client;
use fencelock_test_support::samples::Samples;
use fencelock_test_support::toxiproxy::Proxy;

/// Milliseconds each way.
const NEAR: u64 = 5;
const FAR: u64 = 25;
const CYCLES: u32 = 15;

/// Two links to one server.
pub(crate) struct Links {
    near: Proxy,
    far: Proxy,
}

impl Links {
    pub(crate) fn to(port: u16) -> Result<Self> {
        let (near, far) = (Proxy::to(port)?, Proxy::to(port)?);
        near.delay(NEAR)?;
        far.delay(FAR)?;
        Ok(Links { near, far })
    }

    /// The near one first.
    pub(crate) fn urls(&self, of_port: impl Fn(u16) -> String) -> Result<[String; 2]> {
        Ok([of_port(self.near.port()?), of_port(self.far.port()?)])
    }
}

pub(crate) struct RoundTrips {
    near: f64,
    far: f64,
    pub(crate) trips: f64,
}

impl RoundTrips {
    /// From microseconds through both links.
    pub(crate) fn of(mut near: Samples, mut far: Samples) -> Self {
        let (near, far) = (near.min() / 1e3, far.min() / 1e3);
        RoundTrips { near, far, trips: (far - near) / (2 * (FAR - NEAR)) as f64 }
    }

    pub(crate) fn figures(&self) -> String {
        let RoundTrips { near, far, .. } = self;
        format!("{near:.1} ms through {NEAR} ms each way, {far:.1} through {FAR}")
    }
}

/// Of acquire and of release.
pub(crate) async fn of_lock(urls: &[String; 2]) -> Result<[RoundTrips; 2]> {
    let [near, far] = [of_link(&urls[0]).await?, of_link(&urls[1]).await?];
    Ok([RoundTrips::of(near.0, far.0), RoundTrips::of(near.1, far.1)])
}

async fn of_link(url: &str) -> Result<(Samples, Samples)> {
    let client = Client::connect(url).await?;
    let lock = client.lock("bench/far")?;
    lock.acquire().await?.release().await?;
    let (mut acquire, mut release) = (Samples::default(), Samples::default());
    for _ in 0..CYCLES {
        let start = Instant::now();
        let lease = lock.acquire().await?;
        acquire.add(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        lease.release().await?;
        release.add(start.elapsed().as_secs_f64() * 1e6);
    }
    client.close().await;
    Ok((acquire, release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_links_need_alike_is_no_round_trip() {
        let (near, far) = (2.0 * 2.0 * 5e3 + 700.0, 2.0 * 2.0 * 25e3 + 700.0);
        let of = RoundTrips::of([near].into_iter().collect(), [far].into_iter().collect());
        assert!((of.trips - 2.0).abs() < 1e-9, "{}", of.trips);
    }
}
