//! What is sent to fencelock reaches the command.

use rustix::process::Signal;

use crate::site::{Running, Site, is_alive, signal, state, until};

/// Prints each signal by its name.
fn printer(site: &Site) -> Running {
    let traps: String =
        ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "ALRM", "WINCH", "CONT", "TSTP"]
            .map(|name| format!("trap 'echo {name}' {name}; "))
            .concat();
    let script = format!("exec 2>/dev/null; {traps} echo $$; while :; do sleep 0.02; done");
    site.start(&["run", &site.name(), "--", "sh", "-c", &script])
}

#[test]
fn each_signal_reaches_the_command_once() {
    let site = Site::file();
    let mut run = printer(&site);
    let command = run.line().parse().unwrap();
    for (which, name) in [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::HUP, "HUP"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::ALARM, "ALRM"),
        (Signal::WINCH, "WINCH"),
        (Signal::CONT, "CONT"),
    ] {
        run.signal(which);
        assert_eq!(run.line(), name);
        // A second one would come before this.
        run.signal(Signal::USR1);
        assert_eq!(run.line(), "USR1");
    }
    signal(command, Signal::KILL);
    run.wait().assert_silent(137);
}

#[test]
fn the_exit_code_is_the_commands_also_after_a_signal() {
    let site = Site::file();
    for (script, which, code) in [
        (
            "exec 2>/dev/null; trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done",
            Signal::TERM,
            3,
        ),
        ("echo ready; exec sleep 600", Signal::TERM, 143),
        ("echo ready; exec sleep 600", Signal::INT, 130),
        ("echo ready; exec sleep 600", Signal::HUP, 129),
        ("echo ready; exec sleep 600", Signal::USR2, 140),
    ] {
        let mut run = site.start(&["run", &site.name(), "--", "sh", "-c", script]);
        assert_eq!(run.line(), "ready");
        run.signal(which);
        run.wait().assert_silent(code);
    }
}

#[test]
fn a_script_sees_that_a_command_was_interrupted() {
    use std::os::unix::process::ExitStatusExt;

    let site = Site::file();
    let ended = site.ended(&["run", &site.name(), "--", "sh", "-c", "kill -INT $$"]);
    assert_eq!(ended.status.signal(), Some(2));
    let ended = site.ended(&["run", &site.name(), "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(ended.status.code(), Some(143));
}

#[test]
fn term_reaches_what_the_command_started_and_usr1_does_not() {
    let site = Site::file();
    let script = "trap 'echo USR1' USR1; trap 'echo TERM; exit 8' TERM; \
        sh -c 'echo $$; exec sleep 600' & while :; do wait; done";
    let mut run = site.start(&["run", &site.name(), "--", "sh", "-c", script]);
    let grandchild = run.line().parse().unwrap();
    run.signal(Signal::USR1);
    assert_eq!(run.line(), "USR1");
    assert!(is_alive(grandchild));
    run.signal(Signal::TERM);
    let ended = run.wait();
    assert!(ended.code() == 8 && ended.output.ends_with("TERM\n"), "{ended:?}");
    until(|| !is_alive(grandchild));
}

#[test]
fn what_is_ignored_stays_ignored() {
    let site = Site::file();
    let name = site.name();
    let bin = env!("CARGO_BIN_EXE_fencelock");
    let mut nohup = std::process::Command::new("sh");
    let script = format!(
        "trap '' HUP USR1; exec {bin} run {name} sh -c 'grep SigIgn /proc/self/status; cat'"
    );
    nohup.args(["-c", &script]).env("FENCELOCK_URL", &site.url);
    let mut run = Running::start(nohup);
    let line = run.line();
    let mask = u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap();
    // Bits of HUP (1) and USR1 (10), as the shell was told; none that we would have added to those
    // that have names (up to 31).
    assert_eq!(mask & 0x7fff_ffff, 1 | 1 << 9);
    run.signal(Signal::HUP);
    run.signal(Signal::USR1);
    run.end().assert_silent(0);
}

#[test]
fn a_stop_stops_the_command_and_the_lock_stays_held() {
    let site = Site::file();
    let name = site.name();
    let script = "sh -c 'echo $$; exec sleep 600' & echo $!; cat";
    let mut run = site.start(&["run", "--ttl", "1s", &name, "--", "sh", "-c", script]);
    let grandchild = run.line().parse().unwrap();
    assert_eq!(run.line(), format!("{grandchild}"));
    run.signal(Signal::TSTP);
    until(|| state(grandchild) == Some('T'));
    // For much longer than its ttl.
    site.ended(&["run", "-w", "2", &name, "true"]).assert_silent(1);
    run.signal(Signal::CONT);
    until(|| state(grandchild) == Some('S'));
    run.type_in("on\n");
    assert_eq!(run.line(), "on");
    signal(grandchild, Signal::KILL);
    run.end().assert_silent(0);
}

#[test]
fn term_reaches_those_in_other_groups_and_those_without_a_parent() {
    let site = Site::file();
    let script = "(setsid sh -c 'echo $$; exec sleep 600' &); timeout 600 sh -c 'echo $$; exec sleep 600'; :";
    let mut run = site.start(&["run", &site.name(), "--", "sh", "-c", script]);
    let started: Vec<i32> = (0..2).map(|_| run.line().parse().unwrap()).collect();
    run.signal(Signal::TERM);
    assert_eq!(run.wait().code(), 143);
    until(|| started.iter().all(|pid| !is_alive(*pid)));
}

#[test]
fn term_from_the_command_itself_ends_what_it_started() {
    let site = Site::file();
    let script = "kill -TERM $PPID; exec sleep 600";
    site.ended(&["run", &site.name(), "--", "sh", "-c", script]).assert_silent(143);
}

#[test]
fn who_blocks_the_news_of_ended_children_is_told_the_exit_code_all_the_same() {
    let site = Site::file();
    let bin = env!("CARGO_BIN_EXE_fencelock");
    let blocked = "use POSIX; sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGCHLD)); exec @ARGV";
    let mut command = std::process::Command::new("perl");
    command
        .args(["-e", blocked, bin, "run", &site.name(), "sh", "-c", "exit 6"])
        .env("FENCELOCK_URL", &site.url);
    Running::start(command).end().assert_silent(6);
}

#[test]
fn children_that_nobody_may_wait_for_have_an_exit_code_all_the_same() {
    let site = Site::file();
    let bin = env!("CARGO_BIN_EXE_fencelock");
    // perl, because shells do not let CHLD be ignored for what they start.
    let mut command = std::process::Command::new("perl");
    command
        .args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV", bin, "run"])
        .args([&site.name(), "sh", "-c", "exit 6"])
        .env("FENCELOCK_URL", &site.url);
    Running::start(command).end().assert_silent(6);
}
