//! On a terminal, which script(1) makes.

use std::process::Command;

use crate::site::{Running, Site, is_alive, state, until};

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

/// The words as a shell's command, on a terminal.
fn on_terminal(site: &Site, words: &str) -> Running {
    let mut command = Command::new("script");
    command
        .args(["-qec", words, "/dev/null"])
        .env("FENCELOCK_URL", &site.url)
        .env("SHELL", "/bin/sh")
        .env("fencelock", env!("CARGO_BIN_EXE_fencelock"));
    Running::start(command)
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let site = Site::file();
    // perl, because a shell may have one word for two signals that come close together.
    let script = "$| = 1; $SIG{$_} = sub { print shift, qq(\\n) } for qw(INT USR1); \
        $SIG{TERM} = sub { exit 4 }; print getppid, qq(\\n); sleep 1 while 1";
    let mut run =
        on_terminal(&site, &format!("exec $fencelock run {} -- perl -e '{script}'", site.name()));
    let fencelock: i32 = run.line().parse().unwrap();
    run.type_in(CTRL_C);
    let line = run.line();
    assert_eq!(line.trim_start_matches("^C"), "INT");
    // A second INT would come before these.
    crate::site::signal(fencelock, rustix::process::Signal::USR1);
    assert_eq!(run.line(), "USR1");
    crate::site::signal(fencelock, rustix::process::Signal::TERM);
    assert_eq!(run.wait().code(), 4);
}

#[test]
fn ctrl_c_ends_the_script_that_the_run_is_part_of() {
    let site = Site::file();
    let name = site.name();
    let words = format!(
        "for i in 1 2 3; do $fencelock run {name} -- sh -c 'echo turn; exec sleep 600'; done; echo after"
    );
    let mut run = on_terminal(&site, &words);
    assert_eq!(run.line(), "turn");
    run.type_in(CTRL_C);
    let ended = run.wait();
    assert!(!ended.output.contains("turn") && !ended.output.contains("after"), "{ended:?}");
    assert_eq!(site.inspect(&name)["state"], "free");
}

#[test]
fn ctrl_c_while_waiting_leaves_the_queue() {
    let site = Site::file();
    let name = site.name();
    let holder = site.hold(&name, &[]);
    let mut run = on_terminal(&site, &format!("$fencelock run {name} true"));
    site.wait_for_queue(&name, 1);
    run.type_in(CTRL_C);
    assert_eq!(run.wait().code(), 130);
    assert_eq!(site.inspect(&name)["queue"].as_array().unwrap().len(), 0);
    assert_eq!(holder.end().code(), 0);
}

#[test]
fn ctrl_z_and_fg_of_a_shell_work_as_with_any_job() {
    let site = Site::file();
    let mut shell = on_terminal(&site, "exec bash --norc -i");
    // One that starts nothing: a shell whose child is stopped before its exec is itself in state D.
    let script = "echo pids=$$=$PPID=; exec cat";
    shell.type_in(&format!("$fencelock run {} -- sh -c '{script}'\n", site.name()));
    let pids: Vec<i32> = loop {
        // What is typed is shown too, with the names in place of the numbers.
        let line = shell.line();
        let numbers = line.split('=').filter_map(|word| word.parse().ok());
        let numbers: Vec<i32> = numbers.collect();
        if numbers.len() == 2 {
            break numbers;
        }
    };
    shell.type_in(CTRL_Z);
    until(|| pids.iter().all(|pid| state(*pid) == Some('T')));
    shell.type_in("fg\n");
    until(|| pids.iter().all(|pid| state(*pid) != Some('T')));
    shell.type_in(CTRL_C);
    until(|| pids.iter().all(|pid| !is_alive(*pid)));
    shell.type_in("echo code-$?\n");
    while !shell.line().ends_with("code-130") {}
    shell.type_in("exit\n");
    assert_eq!(shell.wait().code(), 0);
}

#[test]
fn g1_ctrl_z_without_a_shell_that_could_say_fg_stops_nothing() {
    let site = Site::file();
    let name = site.name();
    let script = "echo $PPID; exec cat";
    let mut run =
        on_terminal(&site, &format!("exec $fencelock run --ttl 1s {name} -- sh -c '{script}'"));
    let fencelock = run.line().parse().unwrap();
    run.type_in(CTRL_Z);
    // For much longer than its ttl.
    site.ended(&["run", "-w", "2", &name, "true"]).assert_silent(1);
    assert_ne!(state(fencelock), Some('T'));
    run.type_in(CTRL_C);
    assert_eq!(run.wait().code(), 130);
}

#[test]
fn g1_ctrl_z_leaves_alone_who_keeps_a_command_that_does_not_stop() {
    let site = Site::file();
    let name = site.name();
    let mut shell = on_terminal(&site, "exec bash --norc -i");
    let script = "trap \"\" TSTP; echo pid=$PPID=; exec cat";
    shell.type_in(&format!("$fencelock run --ttl 1s {name} -- sh -c '{script}'\n"));
    let fencelock = loop {
        let line = shell.line();
        if let Some(pid) = line.split('=').find_map(|word| word.parse().ok()) {
            break pid;
        }
    };
    shell.type_in(CTRL_Z);
    site.ended(&["run", "-w", "2", &name, "true"]).assert_silent(1);
    assert_ne!(state(fencelock), Some('T'));
    shell.type_in(CTRL_C);
    until(|| !is_alive(fencelock));
    shell.type_in("exit\n");
    drop(shell.wait());
}

#[test]
fn a_terminal_that_goes_away_ends_the_command() {
    let site = Site::file();
    let name = site.name();
    let mut run = on_terminal(
        &site,
        &format!("exec $fencelock run {name} -- sh -c 'echo $$; exec sleep 600'"),
    );
    let command = run.line().parse().unwrap();
    run.signal(rustix::process::Signal::KILL);
    until(|| !is_alive(command) && site.inspect(&name)["state"] == "free");
}

#[test]
fn ctrl_c_is_heard_at_every_moment() {
    let site = Site::file();
    let name = site.name();
    for moment in 0..60 {
        let mut run =
            on_terminal(&site, &format!("echo ready; exec $fencelock run {name} -- sleep 600"));
        assert_eq!(run.line(), "ready");
        std::thread::sleep(std::time::Duration::from_micros(moment * 300));
        run.type_in(CTRL_C);
        assert_eq!(run.wait().code(), 130, "{moment}");
    }
    assert_eq!(site.inspect(&name)["state"], "free");
}

#[test]
fn term_ends_a_script_and_not_only_its_present_step() {
    let site = Site::file();
    for _ in 0..20 {
        let file = site.path("next");
        let script = format!("echo $PPID; sleep 600; echo >{file}");
        let mut run =
            on_terminal(&site, &format!("exec $fencelock run {} -- sh -c '{script}'", site.name()));
        crate::site::signal(run.line().parse().unwrap(), rustix::process::Signal::TERM);
        assert_eq!(run.wait().code(), 143);
        assert!(!std::path::Path::new(&file).exists());
    }
}

#[test]
fn the_command_reads_from_the_terminal() {
    let site = Site::file();
    let script = "test -t 0 && echo ready && read line && echo got $line";
    let mut run =
        on_terminal(&site, &format!("$fencelock run {} -- sh -c '{script}'", site.name()));
    assert_eq!(run.line(), "ready");
    run.type_in("hello\n");
    assert_eq!(run.line(), "hello");
    assert_eq!(run.line(), "got hello");
    assert_eq!(run.wait().code(), 0);
}

#[test]
fn a_loss_stops_what_the_command_started_and_nothing_else() {
    let site = Site::file();
    let name = site.name();
    let inner = "exec 2>/dev/null; sh -c \"echo \\$\\$; exec sleep 600\"; :";
    let words = format!(
        "sleep 600 & echo $!; $fencelock run {name} -- sh -c '{inner}'; echo code $?; kill -0 $! && echo alive; read go; kill $!"
    );
    let mut run = on_terminal(&site, &words);
    run.line();
    let grandchild = run.line().parse().unwrap();
    site.ended(&["break", "--yes", &name]).assert_silent(0);
    assert!(run.line().contains("is lost; stopping the command"));
    assert_eq!(run.line(), "code 75");
    assert_eq!(run.line(), "alive");
    // Before the terminal goes, which would end it too.
    assert!(!is_alive(grandchild));
    run.type_in("\n");
    assert_eq!(run.wait().code(), 0);
}

#[test]
fn break_asks() {
    let site = Site::file();
    let name = site.name();
    for (answer, code, state) in [("n\n", 1, "held"), ("\n", 1, "held"), ("y\n", 0, "free")] {
        let holder = site.hold(&name, &["--ttl", "1h"]);
        let mut run = on_terminal(&site, &format!("$fencelock break {name}"));
        run.type_in(answer);
        let ended = run.wait();
        assert!(ended.output.contains("is held by host="), "{ended:?}");
        assert!(ended.output.contains("Break it? [y/N]"), "{ended:?}");
        assert_eq!(ended.code(), code, "{ended:?}");
        assert_eq!(site.inspect(&name)["state"], state);
        drop(holder.end());
    }
}
