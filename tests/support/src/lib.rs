//! What the chaos and bench programs share: servers, faults, child processes, clocks.

pub mod agent;
pub mod clock;
pub mod monitor;
pub mod process;
pub mod racer;
pub mod records;
pub mod redis_server;
pub mod samples;
pub mod toxiproxy;
