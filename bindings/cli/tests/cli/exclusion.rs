//! One at a time.

use std::fs;
use std::sync::{Mutex, PoisonError};

use crate::site::{Running, Site, on_each_backend};

/// A hundred processes are load enough for one machine.
static ALONE: Mutex<()> = Mutex::new(());

on_each_backend! {
    fn g1_a_hundred_runs_at_once_raise_an_unguarded_counter_one_by_one(site) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, counter, tokens) = (site.name(), site.path("counter"), site.path("tokens"));
        fs::write(&counter, "0").unwrap();
        let script = format!(
            "n=$(cat {counter}); echo $FENCELOCK_TOKEN >>{tokens}; echo $((n + 1)) >{counter}"
        );
        let runs: Vec<Running> =
            (0..100).map(|_| site.start(&["run", &name, "--", "sh", "-c", &script])).collect();
        for run in runs {
            run.end().assert_silent(0);
        }
        assert_eq!(fs::read_to_string(counter).unwrap().trim(), "100");
        let tokens = fs::read_to_string(tokens).unwrap();
        let tokens: Vec<u64> = tokens.lines().map(|line| line.parse().unwrap()).collect();
        assert!(tokens.len() == 100 && tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
        assert_eq!(site.inspect(&name)["state"], "free");
    }

    fn g1_the_command_has_the_name_and_the_token_that_inspect_shows(site) {
        let name = site.name();
        let script = "echo $FENCELOCK_NAME; echo $FENCELOCK_TOKEN; cat";
        let mut run = site.start(&["run", &name, "--", "sh", "-c", script]);
        assert_eq!(run.line(), name);
        let token = run.line();
        assert_eq!(site.inspect(&name)["token"].to_string(), token);
        assert_eq!(run.end().code(), 0);
    }

    fn g5_runs_are_served_in_the_order_in_which_they_came(site) {
        let (name, order) = (site.name(), site.path("order"));
        let holder = site.hold(&name, &[]);
        let mut waiting = Vec::new();
        for place in 1..=5 {
            let script = format!("echo {place} >>{order}");
            waiting.push(site.start(&["run", &name, "--", "sh", "-c", &script]));
            site.wait_for_queue(&name, place);
        }
        assert_eq!(holder.end().code(), 0);
        waiting.into_iter().for_each(|run| run.end().assert_silent(0));
        assert_eq!(fs::read_to_string(order).unwrap(), "1\n2\n3\n4\n5\n");
    }
}

#[test]
fn g1_a_shell_and_its_children_see_the_same_files() {
    let site = Site::file();
    let (name, bin) = (site.name(), env!("CARGO_BIN_EXE_fencelock"));
    let inner = format!("{bin} run -n {name} true; echo $?; {bin} run -n {name}-2 true; echo $?");
    let ended = site.ended(&["run", &name, "--", "sh", "-c", &inner]);
    assert_eq!(ended.output, "1\n0\n", "{ended:?}");
}
