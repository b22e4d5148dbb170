//! The documented behaviour of `consul lock` and `etcdctl lock`, case by case: the same, or better
//! on purpose. The table of it is in the README; each line names its test.

use std::time::Instant;

use rustix::process::Signal;

use crate::site::{Running, Site, is_alive, until};

/// consul: the child is invoked only when the lock is held, with CONSUL_LOCK_HELD in its
/// environment. etcdctl: with ETCD_LOCK_KEY and ETCD_LOCK_REV. Here: the name and the token.
#[test]
fn the_command_knows_its_lock() {
    let site = Site::file();
    let name = site.name();
    let ended = site.ended(&[
        "run",
        &name,
        "--",
        "sh",
        "-c",
        "echo $FENCELOCK_NAME; test $FENCELOCK_TOKEN -gt 0",
    ]);
    assert_eq!((ended.code(), ended.output.trim()), (0, &*name));
}

/// consul: "-child-exit-code: exit 2 if the child process exited with an error", else 0. etcdctl:
/// the exit code of the command, 255 if a signal ended it. Here: always that of the command.
#[test]
fn the_exit_code_is_that_of_the_command() {
    let site = Site::file();
    for (script, code) in [("exit 3", 3), ("kill -9 $$", 137), ("exit 0", 0)] {
        site.ended(&["run", &site.name(), "--", "sh", "-c", script]).assert_silent(code);
    }
}

/// consul: "-timeout: attempt to acquire the lock up to the given timeout", else exit code 1, also
/// for all other errors. etcdctl waits for ever. Here: 1 for this alone.
#[test]
fn a_timeout_has_an_exit_code_of_its_own() {
    let site = Site::file();
    let name = site.name();
    let holder = site.hold(&name, &[]);
    site.ended(&["run", "-w", "0.2", &name, "true"]).assert_silent(1);
    assert_eq!(holder.end().code(), 0);
    let mut nowhere = Site::file();
    nowhere.url = "redis://127.0.0.1:1/".to_owned();
    assert_eq!(nowhere.ended(&["run", "-w", "0.2", &name, "true"]).code(), 69);
}

/// consul: "if the lock is lost, communication is disrupted, or the parent process interrupted, the
/// child process will receive a SIGTERM. After a grace period of 5 seconds, a SIGKILL". etcdctl
/// does not stop the command. Here the same for a loss, with the grace as an option.
#[test]
fn a_loss_stops_the_command() {
    let site = Site::file();
    let name = site.name();
    let script = "trap '' TERM; echo $$; while :; do sleep 0.1; done";
    let mut run = site.start(&["run", &name, "--", "sh", "-c", script]);
    let command = run.line().parse().unwrap();
    site.ended(&["break", "-y", &name]).assert_silent(0);
    let broken = Instant::now();
    run.wait().assert_failed(75, "is lost");
    // It had the five seconds.
    assert!(broken.elapsed().as_secs() >= 4 && !is_alive(command));
}

/// consul: an interrupted parent sends TERM, and KILL after five seconds. etcdctl: TERM and INT do
/// nothing while a command runs. Here the command gets the signal and decides.
#[test]
fn an_interrupted_parent_leaves_the_end_to_the_command() {
    let site = Site::file();
    let script =
        "trap 'echo cleaning; sleep 0.3; exit 4' INT; echo ready; while :; do sleep 0.02; done";
    let mut run = site.start(&["run", &site.name(), "--", "sh", "-c", script]);
    assert_eq!(run.line(), "ready");
    run.signal(Signal::INT);
    assert_eq!(run.line(), "cleaning");
    run.wait().assert_silent(4);
}

/// consul: "-pass-stdin: pass stdin to child process", not otherwise. etcdctl does not. Here
/// always, as flock(1).
#[test]
fn standard_input_is_the_commands() {
    let site = Site::file();
    let mut run = site.start(&["run", &site.name(), "cat"]);
    run.type_in("hello\n");
    assert_eq!(run.line(), "hello");
    assert_eq!(run.end().code(), 0);
}

/// consul: "launches its children in a shell", which may not pass TERM on, so that the work goes on
/// without the lock. Here no shell; and what a shell starts gets TERM with it.
#[test]
fn there_is_no_shell_and_one_that_the_command_is_hides_nothing() {
    let site = Site::file();
    let ended = site.ended(&["run", &site.name(), "echo", "a; b $HOME"]);
    assert_eq!(ended.output, "a; b $HOME\n");
    let name = site.name();
    let script = "sh -c 'echo $$; exec sleep 600'; :";
    let mut run = site.start(&["run", &name, "--", "sh", "-c", script]);
    let work = run.line().parse().unwrap();
    site.ended(&["break", "-y", &name]).assert_silent(0);
    run.wait().assert_failed(75, "is lost");
    until(|| !is_alive(work));
}

/// etcdctl: without a command the lock is held until a signal comes. Here a command is needed:
/// `sleep infinity` is one.
#[test]
fn a_command_is_needed() {
    let site = Site::file();
    site.ended(&["run", &site.name()]).assert_failed(64, "<CMD>");
    let name = site.name();
    let run = site.start(&["run", &name, "sleep", "infinity"]);
    until(|| site.inspect(&name)["state"] == "held");
    run.signal(Signal::TERM);
    assert_eq!(run.wait().code(), 143);
    site.ended(&["run", "-n", &name, "true"]).assert_silent(0);
}

/// etcdctl: "--ttl: time out in seconds of lock session".
#[test]
fn a_ttl_without_a_unit_is_seconds() {
    let site = Site::file();
    let name = site.name();
    let holder: Running = site.hold(&name, &["--ttl", "10"]);
    let left = site.inspect(&name)["ttl_left_ms"].as_u64().unwrap();
    assert!((5_000..=10_000).contains(&left), "{left}");
    assert_eq!(holder.end().code(), 0);
}
