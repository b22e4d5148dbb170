//! One request and its answer on one connection, with all that must not be torn apart: a script
//! that the server has forgotten, an ASKING before the call, a WAIT behind it.

use redis::{Cmd, Pipeline, Value};

use super::fault::Fault;
use super::link::Link;
use super::replies::unsigned;
use super::scripts::Script;

/// The replicas that must have a write before it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgement {
    pub(super) replicas: u32,
    pub(super) within_ms: u64,
}

impl Acknowledgement {
    /// Answers with the number of replicas that have all that this connection wrote before, and
    /// with that all that anybody wrote on the server before that.
    fn command(self) -> Cmd {
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.replicas).arg(self.within_ms);
        wait
    }

    fn judge(self, reply: Option<Result<Value, Fault>>) -> Result<(), Fault> {
        let have = reply.and_then(Result::ok).and_then(|reply| unsigned(&reply)).unwrap_or(0);
        if have >= u64::from(self.replicas) {
            return Ok(());
        }
        Err(Fault::Unacknowledged { replicas: self.replicas, within_ms: self.within_ms })
    }
}

/// An answer, and whether the replicas have what was written, if that was asked.
pub(super) type Answer = (Value, Result<(), Fault>);

/// How one call is made.
#[derive(Clone, Copy)]
pub(super) struct Exchange<'a> {
    pub(super) script: &'a Script,
    pub(super) acknowledgement: Option<Acknowledgement>,
}

impl Exchange<'_> {
    /// Runs one call: by the script's hash, or with its source if the server does not know it.
    pub(super) async fn run(&self, link: &Link, call: &Cmd, asking: bool) -> Result<Answer, Fault> {
        match self.once(link, call, asking).await {
            Err(fault) if fault.is_unknown_script() => {
                self.once(link, &self.script.with_source(call), asking).await
            }
            answer => answer,
        }
    }

    async fn once(&self, link: &Link, call: &Cmd, asking: bool) -> Result<Answer, Fault> {
        if !asking && self.acknowledgement.is_none() {
            return Ok((link.send(call).await?, Ok(())));
        }
        let waiting = self.acknowledgement.map(|_| link.waiting());
        let link = waiting.as_ref().unwrap_or(link);
        let mut commands = Pipeline::with_capacity(3);
        if asking {
            commands.cmd("ASKING");
        }
        commands.add_command(call.clone());
        if let Some(acknowledgement) = self.acknowledgement {
            commands.add_command(acknowledgement.command());
        }
        let mut replies = link.send_all(&commands).await?.into_iter();
        if asking {
            replies.next();
        }
        let value = replies.next().ok_or(Fault::NoNode)??;
        let acknowledged = match self.acknowledgement {
            Some(acknowledgement) => acknowledgement.judge(replies.next()),
            None => Ok(()),
        };
        Ok((value, acknowledged))
    }

    /// Runs many calls of the script in one go, each with a result of its own.
    pub(super) async fn run_all(&self, link: &Link, calls: &Pipeline) -> Vec<Result<Value, Fault>> {
        let mut results = self.once_all(link, calls).await;
        let unknown: Vec<usize> = (0..results.len())
            .filter(|&i| matches!(&results[i], Err(fault) if fault.is_unknown_script()))
            .collect();
        if unknown.is_empty() {
            return results;
        }
        // The first brings the script along, the others then find it.
        let mut again = Pipeline::with_capacity(unknown.len() + 1);
        for call in calls.cmd_iter().enumerate().filter(|(i, _)| unknown.binary_search(i).is_ok()) {
            let first = again.is_empty();
            again.add_command(if first { self.script.with_source(call.1) } else { call.1.clone() });
        }
        for (i, result) in unknown.into_iter().zip(self.once_all(link, &again).await) {
            results[i] = result;
        }
        results
    }

    async fn once_all(&self, link: &Link, calls: &Pipeline) -> Vec<Result<Value, Fault>> {
        let count = calls.len();
        let Some(acknowledgement) = self.acknowledgement else {
            return link.send_all(calls).await.unwrap_or_else(|fault| vec![Err(fault); count]);
        };
        let mut commands = calls.clone();
        commands.add_command(acknowledgement.command());
        let mut results = match link.waiting().send_all(&commands).await {
            Ok(results) => results,
            Err(fault) => return vec![Err(fault); count],
        };
        if let Err(fault) = acknowledgement.judge(results.pop()) {
            for result in results.iter_mut().filter(|result| result.is_ok()) {
                *result = Err(fault.clone());
            }
        }
        results
    }
}
