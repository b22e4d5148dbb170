//! Nothing stays behind.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::site::{LIMIT, Site, is_alive, on_each_backend, signal, until};

on_each_backend! {
    fn g7_who_is_ended_while_waiting_leaves_the_queue(site) {
        let name = site.name();
        let holder = site.hold(&name, &[]);
        for which in [Signal::TERM, Signal::INT, Signal::HUP] {
            let waiting = site.start(&["run", &name, "true"]);
            site.wait_for_queue(&name, 1);
            waiting.signal(which);
            waiting.wait().assert_silent(128 + which.as_raw());
            // At once, not when it is found dead.
            assert_eq!(site.inspect(&name)["queue"].as_array().unwrap().len(), 0, "{which:?}");
        }
        assert_eq!(holder.end().code(), 0);
        site.ended(&["run", "-n", &name, "true"]).assert_silent(0);
    }

    fn g7_a_wait_that_is_over_leaves_the_queue(site) {
        let name = site.name();
        let holder = site.hold(&name, &[]);
        site.ended(&["run", "-w", "0.3", &name, "true"]).assert_silent(1);
        assert_eq!(site.inspect(&name)["queue"].as_array().unwrap().len(), 0);
        assert_eq!(holder.end().code(), 0);
    }

    fn g4_a_holder_that_is_killed_blocks_others_for_its_ttl_only(site) {
        let name = site.name();
        let holder = site.hold(&name, &["--ttl", "2s"]);
        let next = site.start(&["run", &name, "true"]);
        site.wait_for_queue(&name, 1);
        holder.signal(Signal::KILL);
        let killed = Instant::now();
        next.end().assert_silent(0);
        // ttl + 1 s, ZooKeeper 2 x session + 1 s; the rest is for a slow machine.
        assert!(killed.elapsed() < Duration::from_secs(12), "{:?}", killed.elapsed());
    }

    fn g4_what_the_command_leaves_in_the_background_does_not_keep_the_lock(site) {
        let name = site.name();
        let script = "sleep 600 >/dev/null 2>&1 </dev/null & echo $!";
        let ended = site.ended(&["run", "--ttl", "2s", &name, "--", "sh", "-c", script]);
        assert_eq!(ended.code(), 0, "{ended:?}");
        let background = ended.output.trim().parse().unwrap();
        site.ended(&["run", "-n", &name, "true"]).assert_silent(0);
        assert!(is_alive(background));
        signal(background, Signal::KILL);
    }

    fn g4_a_long_command_keeps_the_lock_far_beyond_the_ttl(site) {
        let name = site.name();
        let holder = site.hold(&name, &["--ttl", "1s"]);
        // What is tested is that time passes.
        thread::sleep(Duration::from_millis(3500));
        site.ended(&["run", "-n", &name, "true"]).assert_silent(1);
        assert_eq!(holder.end().code(), 0);
    }
}

#[test]
fn g4_in_files_a_holder_that_is_killed_blocks_nobody() {
    let site = Site::file();
    let name = site.name();
    let holder = site.hold(&name, &["--ttl", "1h"]);
    let next = site.start(&["run", &name, "true"]);
    site.wait_for_queue(&name, 1);
    holder.signal(Signal::KILL);
    let killed = Instant::now();
    next.end().assert_silent(0);
    assert!(killed.elapsed() < LIMIT);
}

#[test]
fn g4_a_command_dies_with_a_fencelock_that_is_killed() {
    let site = Site::file();
    let name = site.name();
    let script = "trap '' TERM INT HUP; echo $$; while :; do sleep 0.1; done";
    let mut holder = site.start(&["run", &name, "--", "sh", "-c", script]);
    let command = holder.line().parse().unwrap();
    holder.signal(Signal::KILL);
    until(|| !is_alive(command));
}
