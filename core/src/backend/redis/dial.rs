//! How a connection is made, and to which server of a deployment.

use std::sync::Arc;
use std::time::Duration;

use redis::{ConnectionAddr, RedisConnectionInfo};

use super::cluster::Cluster;
use super::fault::Fault;
use super::sentinel::Sentinels;
use super::socket::Socket;
use super::tls::Tls;

/// How to come in at any server of a deployment. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Dialer {
    shared: Arc<Shared>,
}

struct Shared {
    settings: RedisConnectionInfo,
    tls: Option<Tls>,
    limit: Duration,
}

impl Dialer {
    /// `limit`: for one connection, its handshakes included.
    pub(super) fn new(settings: RedisConnectionInfo, tls: Option<Tls>, limit: Duration) -> Self {
        Dialer { shared: Arc::new(Shared { settings, tls, limit }) }
    }

    /// The same, with no more than this time for one connection.
    pub(super) fn within(&self, limit: Duration) -> Self {
        let Shared { settings, tls, .. } = &*self.shared;
        Dialer::new(settings.clone(), tls.clone(), limit.min(self.shared.limit))
    }

    pub(super) fn settings(&self) -> &RedisConnectionInfo {
        &self.shared.settings
    }

    pub(super) fn limit(&self) -> Duration {
        self.shared.limit
    }

    pub(super) async fn open(&self, address: &ConnectionAddr) -> Result<Socket, Fault> {
        // Less than the whole, so that its error comes before that of the whole.
        let handshake = self.shared.limit * 4 / 5;
        Socket::open(address, self.shared.tls.as_ref(), handshake).await
    }
}

/// Which server: found anew for each connection.
#[derive(Clone)]
pub(super) enum Whereabouts {
    Fixed(ConnectionAddr),
    /// The primary, as the sentinels know it.
    Primary(Arc<Sentinels>),
    /// Any node of the cluster, another one each time: what is published at one is heard at all.
    AnyNode(Arc<Cluster>),
}

impl Whereabouts {
    pub(super) async fn open(&self, dialer: &Dialer) -> Result<Socket, Fault> {
        match self {
            Whereabouts::Fixed(address) => dialer.open(address).await,
            Whereabouts::Primary(sentinels) => dialer.open(&sentinels.primary().await?).await,
            Whereabouts::AnyNode(cluster) => dialer.open(&cluster.next_node()).await,
        }
    }

    /// Whether the server may turn out not to be the primary (any more).
    pub(super) fn may_be_a_replica(&self) -> bool {
        matches!(self, Whereabouts::Primary(_))
    }
}
