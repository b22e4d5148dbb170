//! What a process uses, and signals to it.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Sends a signal to a process that we started.
pub fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(pid as i32).context("no process")?;
    Ok(kill_process(pid, signal)?)
}

/// SIGSTOP to a child, until it has effect: on a busy machine, it could go on for a while.
pub fn freeze(pid: u32) -> Result<()> {
    signal(pid, Signal::STOP)?;
    // Exited, so that one that dies is not waited for; it is left to be reaped.
    let change = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let pid = Pid::from_raw(pid as i32).context("no process")?;
    waitid(WaitId::Pid(pid), change)?;
    Ok(())
}

/// Resident memory of this process, in bytes.
pub fn resident_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

/// Processor time that a process has used, in seconds.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The command name (field 2) is in parentheses and may contain anything.
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| -> Result<f64> { Ok(fields.get(i).context("short stat")?.parse()?) };
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Ok((ticks(11)? + ticks(12)?) / per_second)
}

/// How often this thread gave up the processor to wait.
pub fn voluntary_switches() -> Result<u64> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(line.context("no voluntary_ctxt_switches")?.trim().parse()?)
}
