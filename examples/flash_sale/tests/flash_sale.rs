//! Runs the flash sale as a user does and reads what it prints.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run printed and how it ended.
struct Sale {
    succeeded: bool,
    output: String,
    figures: HashMap<String, String>,
}

impl Sale {
    /// Runs the program. The picture goes to `picture`, if there is one.
    fn run(url: &str, arguments: &[&str], picture: Option<&Path>) -> Sale {
        Self::run_on(&["--url", url], arguments, picture)
    }

    /// Without a URL: processes, and files of this machine.
    fn run_without_url(arguments: &[&str]) -> Sale {
        Self::run_on(&[], arguments, None)
    }

    fn run_on(url: &[&str], arguments: &[&str], picture: Option<&Path>) -> Sale {
        let output = Command::new(env!("CARGO_BIN_EXE_flash_sale"))
            .args(url)
            .arg("--picture")
            .arg(picture.unwrap_or(Path::new("none")))
            .args(arguments)
            .env_remove("FENCELOCK_URL")
            .output()
            .expect("the flash sale starts");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let figures = printed
            .lines()
            .filter_map(|line| line.split_once("  "))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let output_and_errors = printed + &String::from_utf8_lossy(&output.stderr);
        Sale { succeeded: output.status.success(), output: output_and_errors, figures }
    }

    /// The number that a line begins with.
    fn number(&self, name: &str) -> f64 {
        let value = self.figures.get(name).map(String::as_str).unwrap_or_default();
        let number = value.split(' ').next().unwrap_or_default();
        number.parse().unwrap_or_else(|_| panic!("no number for {name:?} in:\n{}", self.output))
    }

    #[track_caller]
    fn assert_sold_once(&self, units: f64) {
        assert!(self.succeeded, "{}", self.output);
        for (name, expected) in [
            ("total", units),
            ("sold", units),
            ("left", 0.0),
            ("oversold", 0.0),
            ("lost", 0.0),
            ("refused", 0.0),
        ] {
            assert_eq!(self.number(name), expected, "{name} in:\n{}", self.output);
        }
        assert!(self.figures["tokens"].starts_with("rise"), "{}", self.output);
        assert!(self.number("orders/s") > 0.0, "{}", self.output);
        assert!(self.number("wait p50") <= self.number("wait p99"), "{}", self.output);
    }

    #[track_caller]
    fn assert_oversold(&self) {
        assert!(self.succeeded, "{}", self.output);
        assert!(self.number("oversold") > 0.0, "{}", self.output);
        assert!(self.output.contains("WITHOUT THE LOCK: oversold"), "{}", self.output);
    }

    /// The others waited for the ttl, and at most a second more.
    #[track_caller]
    fn assert_survived_crash(&self) {
        let waited = self.waited_after_crash();
        assert!((1_900.0..3_000.0).contains(&waited), "waited {waited} ms:\n{}", self.output);
    }

    #[track_caller]
    fn waited_after_crash(&self) -> f64 {
        let crash = self.figures.get("crash").map(String::as_str).unwrap_or_default();
        let waited = crash.split_once("waited ").and_then(|(_, rest)| rest.split(' ').next());
        waited.and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("no wait:\n{}", self.output))
    }
}

/// The server under test, with keys of this test alone.
fn redis(test: &str) -> String {
    let url = std::env::var("FENCELOCK_TEST_REDIS_URL").expect(
        "FENCELOCK_TEST_REDIS_URL is not set; `make test` starts a server and sets it, as does `tests/services/run redis COMMAND`",
    );
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}fl.prefix=flash-sale-{test}-{}:", std::process::id())
}

fn picture(test: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.svg"))
}

#[test]
fn g1_flash_sale_sells_every_unit_once() {
    let picture = picture("tasks");
    let sale = Sale::run("memory:", &[], Some(&picture));
    sale.assert_sold_once(2000.0);

    let drawn = std::fs::read_to_string(&picture).expect("a picture");
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
    assert!(drawn.contains("worker 7") && drawn.contains("2000 sold"));
    assert!(drawn.len() < 1 << 20, "{} bytes", drawn.len());
}

#[test]
fn g1_flash_sale_of_processes_sells_every_unit_once() {
    let sale = Sale::run(&redis("sale"), &["--workers", "8"], None);
    sale.assert_sold_once(2000.0);
    assert!(sale.output.contains("8 processes"), "{}", sale.output);
}

#[test]
fn g1_flash_sale_without_a_url_runs_in_processes_of_this_machine() {
    let sale = Sale::run_without_url(&[]);
    sale.assert_sold_once(2000.0);
    assert!(sale.output.contains("8 processes, lock in files"), "{}", sale.output);
}

#[test]
fn g4_files_are_free_again_when_the_killed_process_is_gone() {
    let sale = Sale::run_without_url(&["--crash"]);
    sale.assert_sold_once(2000.0);
    // Not the ttl: the kernel tells, and the others look at least every two thirds of a second.
    let waited = sale.waited_after_crash();
    assert!(waited < 1_900.0, "waited {waited} ms:\n{}", sale.output);
}

#[test]
fn flash_sale_without_the_lock_oversells() {
    Sale::run("memory:", &["--no-lock"], None).assert_oversold();
}

#[test]
fn flash_sale_of_processes_without_the_lock_oversells() {
    Sale::run(&redis("no-lock"), &["--no-lock"], None).assert_oversold();
}

#[test]
fn g4_flash_sale_goes_on_when_a_worker_crashes() {
    let picture = picture("crash");
    let sale = Sale::run("memory:", &["--crash"], Some(&picture));
    sale.assert_sold_once(2000.0);
    sale.assert_survived_crash();
    let drawn = std::fs::read_to_string(&picture).expect("a picture");
    assert!(drawn.contains("killed holding token"));
}

#[test]
fn g4_flash_sale_goes_on_when_a_worker_process_is_killed() {
    let sale = Sale::run(&redis("crash"), &["--crash"], None);
    sale.assert_sold_once(2000.0);
    sale.assert_survived_crash();
}

#[test]
fn flash_sale_says_what_is_wrong_with_its_options() {
    for (arguments, hint) in [
        (&["--workers", "0"][..], "1..=1000"),
        (&["--stock", "0"], "1..=1000000"),
        (&["--crash", "--no-lock"], "cannot be used with"),
        (&["--crash", "--workers", "1"], "at least 2 workers"),
    ] {
        let sale = Sale::run("memory:", arguments, None);
        assert!(!sale.succeeded && sale.output.contains(hint), "{arguments:?}: {}", sale.output);
    }
    let sale = Sale::run("gopher://", &[], None);
    assert!(!sale.succeeded && sale.output.starts_with("flash_sale: "), "{}", sale.output);
}
