//! The lock is lost while the command runs: TERM, then KILL, and an exit code of its own.

use std::fs;
use std::time::{Duration, Instant};

use fencelock_test_support::toxiproxy::Proxy;
use rustix::process::Signal;

use crate::site::{Running, Site, is_alive, on_each_backend, state, until};

const LOST: i32 = 75;
const LOST_AT_THE_END: i32 = 76;

/// Says when it got TERM, and ends then. A shell has a word for each child that dies of a signal.
const OBEDIENT: &str =
    "exec 2>/dev/null; trap 'echo TERM; exit 9' TERM; echo $$; while :; do sleep 0.05; done";
/// It, and what it starts, know no TERM.
const STUBBORN: &str =
    "trap '' TERM; (while :; do sleep 0.1; done) & echo $! $$; while :; do sleep 0.1; done";

fn start(site: &Site, options: &[&str], script: &str) -> (String, Running) {
    let name = site.name();
    let words = [&["run"], options, &[&name, "--", "sh", "-c", script]].concat();
    let run = site.start(&words);
    (name, run)
}

on_each_backend! {
    fn g2_a_command_whose_lock_was_broken_gets_term(site) {
        let (name, mut run) = start(site, &["--ttl", "2s", "--grace", "50s"], OBEDIENT);
        let command = run.line().parse().unwrap();
        site.ended(&["break", "--yes", &name]).assert_silent(0);
        assert_eq!(run.line(), "TERM");
        let ended = run.wait();
        ended.assert_failed(LOST, "is lost; stopping the command");
        assert!(!is_alive(command));
        // The name is somebody else's now, and works.
        site.ended(&["run", "-w", "60", &name, "true"]).assert_silent(0);
    }

    fn g2_what_knows_no_term_gets_kill_after_the_grace(site) {
        let options = ["--ttl", "2s", "--grace", "700ms"];
        let (name, mut run) = start(site, &options, STUBBORN);
        let pids = run.line();
        let pids: Vec<i32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        site.ended(&["break", "--yes", &name]).assert_silent(0);
        run.wait().assert_failed(LOST, "is lost");
        assert!(pids.iter().all(|pid| !is_alive(*pid)), "{pids:?}");
    }

    fn g2_a_fencelock_that_stood_still_for_longer_than_its_ttl_stops_the_command(site) {
        let (name, mut run) = start(site, &["--ttl", "1s"], OBEDIENT);
        let command = run.line().parse().unwrap();
        run.signal(Signal::STOP);
        until(|| state(run.pid()) == Some('T'));
        // The next one gets in while the first stands still.
        site.ended(&["run", "-w", "50", &name, "true"]).assert_silent(0);
        assert!(is_alive(command));
        run.signal(Signal::CONT);
        assert_eq!(run.line(), "TERM");
        run.wait().assert_failed(LOST, "is lost");
    }

    fn g2_a_loss_that_shows_only_at_the_end_has_a_code_of_its_own(site) {
        for (code, expected) in [(0, LOST_AT_THE_END), (4, 4)] {
            let go = site.path("go");
            let script = format!("echo $$; until [ -e {go} ]; do sleep 0.02; done; exit {code}");
            let (name, mut run) = start(site, &[], &script);
            let command = run.line().parse().unwrap();
            run.signal(Signal::STOP);
            until(|| state(run.pid()) == Some('T'));
            site.ended(&["break", "--yes", &name]).assert_silent(0);
            fs::write(&go, "").unwrap();
            until(|| state(command) == Some('Z'));
            run.signal(Signal::CONT);
            run.wait().assert_failed(expected, "the lease is lost");
            fs::remove_file(&go).unwrap();
        }
    }

    fn g2_max_hold_stops_a_command_that_hangs(site) {
        let options = ["--ttl", "1s", "--max-hold", "1500ms"];
        let started = Instant::now();
        let (name, mut run) = start(site, &options, OBEDIENT);
        let _ = run.line();
        assert_eq!(run.line(), "TERM");
        assert!(started.elapsed() > Duration::from_millis(1400));
        run.wait().assert_failed(LOST, "is lost");
        site.ended(&["run", "-w", "50", &name, "true"]).assert_silent(0);
    }
}

#[test]
fn g2_a_server_that_is_cut_off_for_longer_than_the_ttl_stops_the_command() {
    let mut site = Site::server("REDIS");
    let port = site.url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let proxy = Proxy::to(port).unwrap();
    site.url = proxy.redis_url();
    let (_, mut run) = start(&site, &["--ttl", "1s"], OBEDIENT);
    let _ = run.line();
    proxy.cut().unwrap();
    let cut = Instant::now();
    assert_eq!(run.line(), "TERM");
    // By the deadline, whatever the server does; the rest is for a slow machine.
    assert!(cut.elapsed() < Duration::from_secs(10), "{:?}", cut.elapsed());
    let ended = run.wait();
    assert_eq!(ended.code(), LOST, "{ended:?}");
}

#[test]
fn a_server_that_does_not_answer_the_release_is_no_failure_of_the_command() {
    let mut site = Site::server("REDIS");
    let port = site.url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let proxy = Proxy::to(port).unwrap();
    site.url = proxy.redis_url();
    let (_, mut run) = start(&site, &[], "echo ready; cat; exit 5");
    assert_eq!(run.line(), "ready");
    proxy.cut().unwrap();
    // It was held to the end, and ends with its ttl.
    let ended = run.end();
    assert_eq!(ended.code(), 5, "{ended:?}");
    assert!(ended.errors.starts_with("fencelock: "), "{ended:?}");
}

#[test]
fn a_stopped_command_is_continued_to_see_its_term() {
    let site = Site::file();
    let (name, mut run) = start(&site, &["--grace", "50s"], OBEDIENT);
    let command = run.line().parse().unwrap();
    crate::site::signal(command, Signal::STOP);
    until(|| state(command) == Some('T'));
    site.ended(&["break", "--yes", &name]).assert_silent(0);
    assert_eq!(run.line(), "TERM");
    run.wait().assert_failed(LOST, "is lost");
}

#[test]
fn what_the_command_started_has_the_whole_grace_even_if_the_command_has_not() {
    let site = Site::file();
    // The shell dies of TERM; its child takes a while to clean up.
    let script = "exec 2>/dev/null; sh -c 'trap \"sleep 0.5; echo clean; exit\" TERM; echo $$; while :; do sleep 0.05; done'; :";
    let (name, mut run) = start(&site, &["--grace", "50s"], script);
    let child = run.line().parse().unwrap();
    site.ended(&["break", "--yes", &name]).assert_silent(0);
    assert_eq!(run.line(), "clean");
    run.wait().assert_failed(LOST, "is lost");
    assert!(!is_alive(child));
}

#[test]
fn g2_a_loss_stops_the_command_although_nobody_reads_what_we_say() {
    let site = Site::file();
    let name = site.name();
    let (reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    let script = "exec 2>/dev/null; echo $$; exec sleep 600";
    let words = ["run", "--ttl", "1s", &name, "--", "sh", "-c", script];
    let mut run = Running::start_with_errors(site.fencelock(&words), writer.into());
    let command = run.line().parse().unwrap();
    site.ended(&["break", "--yes", &name]).assert_silent(0);
    assert_eq!(run.wait().code(), LOST);
    assert!(!is_alive(command));
    drop(reader);
}

/// Until nothing more goes into it.
fn fill(pipe: &std::io::PipeWriter) {
    use std::io::Write;

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    let flags = fcntl_getfl(pipe).unwrap();
    fcntl_setfl(pipe, flags | OFlags::NONBLOCK).unwrap();
    let mut pipe = pipe;
    while pipe.write(&[b'.'; 512]).is_ok() {}
    fcntl_setfl(pipe, flags).unwrap();
}

/// Knows no TERM, and starts something when it could have had one.
const LATE: &str = "trap '' TERM; echo ready; read go; sh -c 'echo $$; exec sleep 600'";

#[test]
fn g2_what_is_started_after_term_gets_kill_too() {
    let site = Site::file();
    for script in [LATE.to_owned(), format!("sh -c \"{}\"; :", LATE.replace("$$", "\\$\\$"))] {
        let (name, mut run) = start(&site, &["--grace", "1500ms"], &script);
        assert_eq!(run.line(), "ready");
        site.ended(&["break", "--yes", &name]).assert_silent(0);
        until(|| site.inspect(&name)["state"] == "free");
        std::thread::sleep(Duration::from_millis(300));
        run.type_in("go\n");
        let late = run.line().parse().unwrap();
        assert_eq!(run.wait().code(), LOST);
        assert!(!is_alive(late));
    }
}

#[test]
fn who_was_there_before_us_is_left_alone() {
    let site = Site::file();
    let name = site.name();
    let bin = env!("CARGO_BIN_EXE_fencelock");
    let script = format!(
        "sleep 600 >/dev/null 2>&1 & echo $!; exec {bin} run --ttl 1s {name} -- sh -c '{OBEDIENT}'",
        OBEDIENT = OBEDIENT.replace('\'', "'\\''")
    );
    let mut command = std::process::Command::new("setsid");
    command.args(["sh", "-c", &script]).env("FENCELOCK_URL", &site.url);
    let mut run = Running::start(command);
    let helper = run.line().parse().unwrap();
    run.line();
    site.ended(&["break", "--yes", &name]).assert_silent(0);
    assert_eq!(run.line(), "TERM");
    run.wait().assert_failed(LOST, "is lost");
    assert!(is_alive(helper));
    crate::site::signal(helper, Signal::KILL);
}
