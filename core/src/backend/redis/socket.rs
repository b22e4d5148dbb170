//! Sockets to the server, and how a dead one is found.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::select_ok;
use redis::ConnectionAddr;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::client::TlsStream;

use super::fault::Fault;
use super::tls::{self, Tls};

/// A silent TCP connection is probed by the kernel after this long, which costs the server no
/// command; one that died without a word is found within about ten seconds.
const PROBE_AFTER: Duration = Duration::from_secs(5);
const PROBE_EVERY: Duration = Duration::from_secs(2);
const PROBES: u32 = 3;
/// For how long sent bytes may stay without acknowledgement.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// A socket that counts what arrives, so that a server that has gone silent can be told from one
/// whose answers come too late for those who asked.
pub(super) struct Socket {
    stream: Stream,
    arrivals: Arc<AtomicU64>,
    refusal: Arc<OnceLock<Fault>>,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// `limit` is that of the TLS handshake.
    pub(super) async fn open(
        address: &ConnectionAddr,
        tls: Option<&Tls>,
        limit: Duration,
    ) -> Result<Self, Fault> {
        let stream = match address {
            ConnectionAddr::Tcp(host, port) => {
                let stream = open_tcp(host, *port).await?;
                match tls {
                    Some(tls) => Stream::Tls(tls.connect(host, stream, limit).await?),
                    None => Stream::Tcp(stream),
                }
            }
            ConnectionAddr::Unix(path) => Stream::Unix(UnixStream::connect(path).await?),
            _ => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        };
        Ok(Socket { stream, arrivals: Arc::default(), refusal: Arc::default() })
    }

    pub(super) fn is_plain_tcp(&self) -> bool {
        matches!(self.stream, Stream::Tcp(_))
    }

    /// Set when the server refuses our certificate, which it does after the handshake.
    pub(super) fn refusal(&self) -> Arc<OnceLock<Fault>> {
        self.refusal.clone()
    }

    /// Goes up with everything that arrives.
    pub(super) fn arrivals(&self) -> Arc<AtomicU64> {
        self.arrivals.clone()
    }
}

/// Tries all addresses of the host at once: the first that answers is taken, so a dead address
/// does not eat up the time limit.
async fn open_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let attempts: Vec<_> =
        lookup_host((host, port)).await?.map(|a| Box::pin(TcpStream::connect(a))).collect();
    if attempts.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"));
    }
    let (stream, _) = select_ok(attempts).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    let keepalive =
        TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(stream)
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = match &mut this.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => {
                let polled = Pin::new(stream).poll_read(cx, buffer);
                if let Poll::Ready(Err(error)) = &polled
                    && let Some(refusal) = tls::refusal(error)
                {
                    // The driver keeps only the text of an error.
                    let _ = this.refusal.set(refusal);
                }
                polled
            }
        };
        if polled.is_ready() {
            this.arrivals.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
