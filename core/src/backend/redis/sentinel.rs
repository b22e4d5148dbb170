//! Redis Sentinel: where the primary of a service is.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ConnectionAddr, from_redis_value};
use tokio::time::timeout;

use super::dial::Dialer;
use super::fault::Fault;

/// For how long one sentinel may keep us waiting.
const ANSWER: Duration = Duration::from_millis(500);

/// The sentinels of one service. Asked at every (re)connect and not in between: a connection
/// lives as long as its server is the primary, because Sentinel cuts the clients of one that it
/// demotes, and a primary that died cuts them itself.
pub(super) struct Sentinels {
    service: String,
    addresses: Vec<ConnectionAddr>,
    dialer: Dialer,
}

impl Sentinels {
    pub(super) fn new(service: String, addresses: Vec<ConnectionAddr>, dialer: Dialer) -> Self {
        Sentinels { service, addresses, dialer }
    }

    /// The address that more than half of the sentinels name; failing that, the one named most
    /// often by those that answer in time. One that was cut off from the others must not lead us
    /// to a primary that they have deposed.
    pub(super) async fn primary(&self) -> Result<ConnectionAddr, Fault> {
        let limit = ANSWER.min(self.dialer.limit() / 2);
        let mut answers: FuturesUnordered<_> =
            self.addresses.iter().map(|sentinel| timeout(limit, self.ask(sentinel))).collect();
        let mut votes: Vec<(ConnectionAddr, usize)> = Vec::new();
        let mut trouble = None;
        while let Some(answer) = answers.next().await {
            let address = match answer {
                Ok(Ok(address)) => address,
                Ok(Err(fault)) => {
                    trouble = Some(fault);
                    continue;
                }
                Err(_) => continue,
            };
            let place = votes.iter().position(|(known, _)| *known == address);
            let place = place.unwrap_or_else(|| {
                votes.push((address, 0));
                votes.len() - 1
            });
            votes[place].1 += 1;
            if votes[place].1 * 2 > self.addresses.len() {
                break;
            }
        }
        match votes.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best }) {
            Some((address, _)) => Ok(address),
            None => Err(match trouble {
                Some(fault @ (Fault::Certificate(_) | Fault::Sentinel { .. })) => fault,
                Some(fault) => no_answer(&format!("none can be reached ({})", fault.text())),
                None => no_answer(&format!("none answered within {} ms", limit.as_millis())),
            }),
        }
    }

    async fn ask(&self, sentinel: &ConnectionAddr) -> Result<ConnectionAddr, Fault> {
        let socket = self.dialer.open(sentinel).await?;
        let settings = self.dialer.settings();
        let config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let question = async {
            let (mut connection, driver) =
                MultiplexedConnection::new_with_config(settings, socket, config).await?;
            let mut question = redis::cmd("SENTINEL");
            question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.service);
            let answer = question.query_async(&mut connection);
            // The driver runs only for as long as we ask.
            tokio::pin!(driver, answer);
            tokio::select! {
                answer = &mut answer => answer,
                () = &mut driver => answer.await,
            }
        };
        let answer = question.await.map_err(|error| Fault::Redis(error).of_sentinel())?;
        let address: Option<(String, u16)> =
            from_redis_value(answer).map_err(|_| no_answer("one gave an unexpected answer"))?;
        match address {
            Some((host, port)) => Ok(ConnectionAddr::Tcp(host, port)),
            None => Err(Fault::Sentinel {
                refused: false,
                text: format!("the sentinels know no service {:?}", self.service).into(),
            }),
        }
    }
}

fn no_answer(why: &str) -> Fault {
    Fault::Sentinel {
        refused: false,
        text: Arc::from(format!("no sentinel says where the primary is: {why}")),
    }
}
