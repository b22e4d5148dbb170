//! TCP_NODELAY for the sockets of the client crate, which never sets it.
//!
//! It writes requests one by one, also those that were sent together. Without the option the kernel
//! keeps the second one back until the server has acknowledged the first (Nagle's algorithm), so
//! that an acquire takes two round trips. The crate does not hand out its sockets; so they are found
//! among the descriptors of this process, by the server they lead to, and set through a duplicate.
//!
//! Only time depends on it. Where it cannot be done (another system than Linux, a kernel before 5.6,
//! a container whose seccomp profile forbids `pidfd_getfd`) an acquire takes a round trip more.

/// Sets it for all connections of this process to these hosts. Returns before it is done.
#[cfg(target_os = "linux")]
pub(super) fn set(hosts: &[String]) {
    let hosts = hosts.to_owned();
    // It may ask a name server.
    tokio::task::spawn_blocking(move || match linux::set(&hosts) {
        Ok(count) => tracing::trace!(count, "TCP_NODELAY set on connections to ZooKeeper"),
        Err(error) => tracing::debug!(
            %error,
            "TCP_NODELAY cannot be set on connections to ZooKeeper: an acquire takes two round trips"
        ),
    });
}

/// Not done on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn set(_: &[String]) {}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::io;
    use std::net::{SocketAddr, ToSocketAddrs};
    use std::os::fd::{OwnedFd, RawFd};

    use rustix::net::sockopt::{set_tcp_nodelay, tcp_nodelay};
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

    const USUAL_PORT: u16 = 2181;

    /// For how many connections it was set.
    pub(super) fn set(hosts: &[String]) -> io::Result<usize> {
        let servers = addresses(hosts);
        let mut count = 0;
        for socket in sockets()? {
            let socket = socket?;
            if peer(&socket).is_some_and(|peer| servers.contains(&peer)) && !tcp_nodelay(&socket)? {
                set_tcp_nodelay(&socket, true)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Duplicates of the sockets of this process.
    pub(super) fn sockets() -> io::Result<impl Iterator<Item = io::Result<OwnedFd>>> {
        let process = pidfd_open(getpid(), PidfdFlags::empty())?;
        let descriptors: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let link = std::fs::read_link(entry.path()).ok()?;
                let is_socket = link.to_str()?.starts_with("socket:");
                is_socket.then(|| entry.file_name().to_str()?.parse().ok()).flatten()
            })
            .collect();
        Ok(descriptors.into_iter().filter_map(move |descriptor| {
            match pidfd_getfd(&process, descriptor, PidfdGetfdFlags::empty()) {
                Ok(socket) => Some(Ok(socket)),
                // Closed meanwhile.
                Err(rustix::io::Errno::BADF) => None,
                Err(error) => Some(Err(error.into())),
            }
        }))
    }

    pub(super) fn peer(socket: &OwnedFd) -> Option<SocketAddr> {
        let peer = rustix::net::getpeername(socket).ok()??;
        Some(canonical(SocketAddr::try_from(peer).ok()?))
    }

    fn addresses(hosts: &[String]) -> HashSet<SocketAddr> {
        let resolve = |host: &String| {
            let has_port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
            let found = if has_port {
                host.to_socket_addrs()
            } else {
                format!("{host}:{USUAL_PORT}").to_socket_addrs()
            };
            found.into_iter().flatten().map(canonical)
        };
        hosts.iter().flat_map(resolve).collect()
    }

    fn canonical(address: SocketAddr) -> SocketAddr {
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn hosts_with_and_without_ports_are_resolved() {
            let hosts = ["127.0.0.1", "127.0.0.1:7", "[::1]", "[::1]:7"].map(str::to_owned);
            let expected = ["127.0.0.1:2181", "127.0.0.1:7", "[::1]:2181", "[::1]:7"];
            let expected: HashSet<_> =
                expected.iter().map(|address| address.parse().unwrap()).collect();
            assert_eq!(addresses(&hosts), expected);
        }
    }
}

/// Whether each connection of this process to this address has the option; none if there is no
/// connection.
#[cfg(all(test, target_os = "linux"))]
pub(super) fn is_set(server: std::net::SocketAddr) -> std::io::Result<Option<bool>> {
    let mut all = None;
    for socket in linux::sockets()? {
        let socket = socket?;
        if linux::peer(&socket) == Some(server) {
            let is_set = rustix::net::sockopt::tcp_nodelay(&socket)?;
            all = Some(all.unwrap_or(true) && is_set);
        }
    }
    Ok(all)
}
