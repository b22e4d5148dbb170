//! Runs the cases of `tests/conformance`, one named test for each case and backend. The format is
//! described in the README there.

// A test that cannot go on has failed; the lint's own exception covers only #[test] functions.
#![allow(clippy::unwrap_used)]

mod backends;
mod cases;
mod format;
mod shows;
mod values;
mod words;
mod world;

use libtest_mimic::{Arguments, Trial};

use crate::backends::Backend;
use crate::cases::Case;

/// What Rust's types can express: `Duration` has nanoseconds and no sign, `str` is UTF-8.
const CAPABILITIES: &[&str] = &["sub_ms_time", "nul_in_text", "drop_releases"];

fn main() {
    let mut arguments = Arguments::from_args();
    // They mostly wait, so more of them than processors may run at once.
    arguments.test_threads.get_or_insert(8);
    let cases = cases::read();
    let mut trials = format::trials(&cases);
    for case in cases {
        for &backend in Backend::ALL {
            if case.backends.as_ref().is_none_or(|names| names.iter().any(|n| n == backend.name()))
            {
                trials.push(trial(case.clone(), backend));
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(case: Case, backend: Backend) -> Trial {
    let name = format!("{}[{}]", case.name, backend.name());
    let lacking = lacking(&case.needs);
    if lacking.is_empty() {
        return Trial::test(name, move || run(&case, backend).map_err(Into::into));
    }
    let why = format!("needs {}", lacking.join(", "));
    Trial::test(name, || Err("this language cannot express it".into()))
        .with_kind(why)
        .with_ignored_flag(true)
}

/// What a case needs and Rust has not.
fn lacking(needs: &[String]) -> Vec<&str> {
    needs.iter().map(String::as_str).filter(|need| !CAPABILITIES.contains(need)).collect()
}

fn run(case: &Case, backend: Backend) -> Result<(), String> {
    let steps = case.steps(lacking)?;
    // The cases say which setting of the environment they need: none.
    if std::env::var_os("FENCELOCK_URL").is_some() {
        return Err("FENCELOCK_URL is set; unset it for these tests".to_owned());
    }
    let space = backend.space()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(world::run(space, &steps))
}
