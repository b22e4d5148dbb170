//! Runs the program as a user does and reads what it prints.

use std::collections::BTreeSet;
use std::process::Command;

/// What a run printed and how it ended.
struct Run {
    succeeded: bool,
    output: String,
    codes: Vec<String>,
}

impl Run {
    fn new(arguments: &[&str]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_order_code"))
            .args(arguments)
            .env_remove("FENCELOCK_URL")
            .output()
            .expect("the program starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        let codes = printed
            .lines()
            .filter_map(|line| line.split(' ').next())
            .filter(|word| word.starts_with("20") && word.contains('-'))
            .map(str::to_owned)
            .collect();
        let output_and_errors = format!("{printed}{}", String::from_utf8_lossy(&output.stderr));
        Run { succeeded: output.status.success(), output: output_and_errors, codes }
    }

    fn different(&self) -> usize {
        self.codes.iter().collect::<BTreeSet<_>>().len()
    }

    #[track_caller]
    fn assert_codes_differ_and_rise(&self, threads: usize) {
        assert!(self.succeeded, "{}", self.output);
        assert_eq!(self.codes.len(), threads, "{}", self.output);
        // Lines stand in the order of the grants.
        assert!(self.codes.is_sorted_by(|a, b| a < b), "{}", self.output);
        assert!(self.output.trim_end().ends_with("OK: every order has a code of its own"));
    }
}

/// A server of the tests.
fn server(backend: &str) -> String {
    let variable = format!("FENCELOCK_TEST_{backend}_URL");
    std::env::var(&variable).unwrap_or_else(|_| {
        panic!("{variable} is not set; `make test` starts a server and sets it, as does `tests/services/run all COMMAND`")
    })
}

#[test]
fn g1_order_codes_differ_in_files_of_this_machine() {
    let run = Run::new(&[]);
    run.assert_codes_differ_and_rise(20);
    assert!(run.output.contains("20 threads, lock in files"), "{}", run.output);
}

#[test]
fn g1_order_codes_differ_in_memory() {
    Run::new(&["--url", "memory:", "--threads", "200"]).assert_codes_differ_and_rise(200);
}

#[test]
fn g1_order_codes_differ_in_redis() {
    Run::new(&["--url", &server("REDIS")]).assert_codes_differ_and_rise(20);
}

#[test]
fn g1_order_codes_differ_in_mongodb() {
    Run::new(&["--url", &server("MONGODB")]).assert_codes_differ_and_rise(20);
}

#[test]
fn g1_order_codes_differ_in_zookeeper() {
    Run::new(&["--url", &server("ZOOKEEPER")]).assert_codes_differ_and_rise(20);
}

#[test]
fn without_the_lock_orders_get_the_same_code() {
    let run = Run::new(&["--url", "memory:", "--no-lock"]);
    assert!(run.succeeded, "{}", run.output);
    assert_eq!(run.codes.len(), 20, "{}", run.output);
    assert!(run.different() < 20, "{}", run.output);
    assert!(run.output.contains("of 20 orders got a code that was taken"), "{}", run.output);
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let run = Run::new(&["--threads", "0"]);
    assert!(!run.succeeded && run.output.contains("1..=1000"), "{}", run.output);
    let run = Run::new(&["--url", "gopher://"]);
    assert!(!run.succeeded && run.output.starts_with("order_code: "), "{}", run.output);
}
