//! A way to the server that can be cut without either end noticing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(super) struct Proxy {
    address: SocketAddr,
    /// Connections up to this number are black holes.
    swallowed: watch::Sender<usize>,
    accepted: Arc<AtomicUsize>,
}

impl Proxy {
    pub(super) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (swallowed, watch) = watch::channel(0);
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let mut watch = watch.clone();
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    loop {
                        let cut = async {
                            let _ = watch.wait_for(|&swallowed| number <= swallowed).await;
                        };
                        tokio::select! {
                            // First, so that nothing that is sent after the cut passes.
                            biased;
                            () = cut => {}
                            _ = copy_bidirectional(&mut client, &mut server) => return,
                        }
                        // Both sockets stay open, and nothing passes until it is let go.
                        if watch.wait_for(|&swallowed| number > swallowed).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Proxy { address, swallowed, accepted }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// How many connections there were.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Everything on the connections that exist now vanishes; new ones work.
    pub(super) fn black_hole(&self) {
        self.swallowed.send_replace(self.accepted());
    }

    /// What vanished arrives after all.
    pub(super) fn deliver_late(&self) {
        self.swallowed.send_replace(0);
    }
}
