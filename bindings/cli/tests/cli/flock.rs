//! Case by case beside flock(1) of util-linux: the same words, the same exit code.

use std::process::Command;

use rustix::process::Signal;

use crate::site::{Ended, Running, Site};

/// `flock` on a file of its own, as `Site` is for fencelock.
fn flock(site: &Site, words: &[&str]) -> Command {
    let mut command = Command::new("flock");
    command.args(words).current_dir(site.folder.path());
    command
}

/// Both with the same options and command, on a lock that is free or held.
fn both(site: &Site, options: &[&str], is_held: bool, command: &[&str], input: &str) -> [Ended; 2] {
    let name = site.name().replace('/', "-");
    let theirs = [options, &[&name], command].concat();
    let ours = [&["run"], &*theirs].concat();
    let mut holders = Vec::new();
    if is_held {
        let mut holder = Running::start(flock(site, &[&name, "sh", "-c", "echo held; cat"]));
        assert_eq!(holder.line(), "held");
        holders = vec![holder, site.hold(&name, &[])];
    }
    let ended = [site.fencelock(&ours), flock(site, &theirs)].map(|command| {
        let mut running = Running::start(command);
        if !input.is_empty() {
            running.type_in(input);
        }
        running.end()
    });
    holders.into_iter().for_each(|holder| drop(holder.end()));
    ended
}

#[test]
fn exit_codes_are_those_of_flock() {
    let site = Site::file();
    let (free, held) = (false, true);
    let sh = |script| vec!["sh", "-c", script];
    let truth = || vec!["true"];
    for (options, is_held, command, code) in [
        // What the command says.
        (vec![], free, truth(), 0),
        (vec![], free, vec!["false"], 1),
        (vec![], free, sh("exit 7"), 7),
        (vec![], free, sh("exit 255"), 255),
        (vec![], free, sh("kill -TERM $$"), 143),
        (vec![], free, sh("kill -KILL $$"), 137),
        (vec![], free, sh("kill -INT $$"), 130),
        (vec![], free, sh("kill -USR1 $$"), 138),
        // -n
        (vec!["-n"], free, truth(), 0),
        (vec!["-n"], free, sh("exit 7"), 7),
        (vec!["-n"], held, truth(), 1),
        (vec!["--nonblock"], held, truth(), 1),
        (vec!["--nb"], held, truth(), 1),
        // -w
        (vec!["-w", "5"], free, truth(), 0),
        (vec!["-w", "0"], free, truth(), 0),
        (vec!["-w", "0"], held, truth(), 1),
        (vec!["-w", "0.2"], held, truth(), 1),
        (vec!["-w", ".007"], held, truth(), 1),
        (vec!["-w", "1e-1"], held, truth(), 1),
        (vec!["-w0.1"], held, truth(), 1),
        (vec!["--wait", "0.1"], held, truth(), 1),
        (vec!["--wait=0.1"], held, truth(), 1),
        (vec!["--timeout", "0.1"], held, truth(), 1),
        (vec!["-n", "-w", "600"], held, truth(), 1),
        (vec!["-w", "600", "-n"], held, truth(), 1),
        // -E
        (vec!["-E", "42", "-n"], held, truth(), 42),
        (vec!["-n", "-E", "0"], held, truth(), 0),
        (vec!["-nE255"], held, truth(), 255),
        (vec!["-E", "42", "-w", "0.1"], held, truth(), 42),
        (vec!["--conflict-exit-code", "9", "-n"], held, truth(), 9),
        (vec!["-E", "42", "-n"], free, truth(), 0),
        (vec!["-E", "42"], free, sh("exit 1"), 1),
        // What is not allowed: EX_USAGE.
        (vec!["-E", "256", "-n"], free, truth(), 64),
        (vec!["-E", "-1", "-n"], free, truth(), 64),
        (vec!["-E", "x", "-n"], free, truth(), 64),
        (vec!["-w", "abc"], free, truth(), 64),
        (vec!["--nosuch"], free, truth(), 64),
        (vec![], free, vec![], 64),
    ] {
        let [ours, theirs] = both(&site, &options, is_held, &command, "");
        assert_eq!(theirs.code(), code, "flock {options:?} {command:?}: {theirs:?}");
        assert_eq!(ours.code(), code, "run {options:?} {command:?}: {ours:?}");
        assert_eq!(ours.output, theirs.output);
        // Without a word where flock has none: cron sends a mail for each.
        assert_eq!(ours.errors.is_empty(), theirs.errors.is_empty(), "{ours:?} {theirs:?}");
    }
}

#[test]
fn what_differs_from_flock_on_purpose() {
    let site = Site::file();
    let [ours, theirs] = both(&site, &[], false, &["/nosuch/program"], "");
    assert_eq!((ours.code(), theirs.code()), (127, 69), "as env, nohup, timeout and shells say it");
    ours.assert_failed(127, "failed to execute /nosuch/program: No such file");
    let [ours, theirs] = both(&site, &[], false, &["/"], "");
    assert_eq!((ours.code(), theirs.code()), (126, 69));
    ours.assert_failed(126, "failed to execute /: Permission denied");
    for wait in ["-1", "inf"] {
        let [ours, theirs] = both(&site, &["-w", wait], false, &["true"], "");
        assert_eq!(
            (ours.code(), theirs.code()),
            (64, 71),
            "its timer refuses what ours does not get"
        );
    }
    // `--` before the command, options after the name.
    assert_eq!(site.ended(&["run", &site.name(), "-n", "--", "sh", "-c", "exit 3"]).code(), 3);
}

#[test]
fn a_command_that_cannot_be_executed_leaves_the_lock_free() {
    let site = Site::file();
    let name = site.name();
    site.ended(&["run", &name, "--", "/nosuch/program"]).assert_failed(127, "/nosuch/program");
    site.ended(&["run", "-n", &name, "true"]).assert_silent(0);
}

#[test]
fn standard_input_and_output_are_the_commands_as_with_flock() {
    let site = Site::file();
    let script = "cat; echo end; echo oops >&2";
    for ended in both(&site, &[], false, &["sh", "-c", script], "one\ntwo\n") {
        assert_eq!(ended.code(), 0);
        assert_eq!((&*ended.output, &*ended.errors), ("one\ntwo\nend\n", "oops\n"));
    }
}

#[test]
fn arguments_reach_the_command_as_they_are() {
    let site = Site::file();
    let words = ["printf", "%s|", "-n", "--", "a b", "$HOME", "*", "", "--ttl", "é\n"];
    for ended in both(&site, &[], false, &words, "") {
        assert_eq!(ended.output, "-n|--|a b|$HOME|*||--ttl|é\n|\n");
    }
}

#[test]
fn who_waits_gets_the_lock_when_it_is_free_as_with_flock() {
    let site = Site::file();
    let name = "free-later".to_owned();
    let mut theirs = Running::start(flock(&site, &[&name, "sh", "-c", "echo held; cat"]));
    assert_eq!(theirs.line(), "held");
    let ours = site.hold(&name, &[]);
    let command = ["-w", "60", &name, "sh", "-c", "exit 5"];
    let waiting =
        [Running::start(flock(&site, &command)), site.start(&[&["run"], &command[..]].concat())];
    site.wait_for_queue(&name, 1);
    assert_eq!((theirs.end().code(), ours.end().code()), (0, 0));
    assert_eq!(waiting.map(|waiting| waiting.end().code()), [5, 5]);
}

#[test]
fn a_signal_ends_who_waits_as_it_ends_flock() {
    let site = Site::file();
    let name = "waiting".to_owned();
    let mut theirs = Running::start(flock(&site, &[&name, "sh", "-c", "echo held; cat"]));
    assert_eq!(theirs.line(), "held");
    let ours = site.hold(&name, &[]);
    for which in [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1] {
        let waiting =
            [site.start(&["run", &name, "true"]), Running::start(flock(&site, &[&name, "true"]))];
        site.wait_for_queue(&name, 1);
        // Nothing tells when flock has begun to wait; what it does is the same before.
        let codes = waiting.map(|waiting| {
            waiting.signal(which);
            waiting.wait().status
        });
        assert_eq!(codes[0], codes[1], "{which:?}");
    }
    assert_eq!((theirs.end().code(), ours.end().code()), (0, 0));
}
