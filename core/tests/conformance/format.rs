//! Tests of the cases themselves: the README, the files and this runner say the same.

use std::collections::BTreeSet;

use fencelock::ErrorKind;
use libtest_mimic::{Failed, Trial};

use crate::CAPABILITIES;
use crate::backends::Backend;
use crate::cases::{Case, folder};
use crate::words::WORDS;

type Names = BTreeSet<String>;

pub(crate) fn trials(cases: &[Case]) -> Vec<Trial> {
    let test = |name: &str, check: fn(&[Case]) -> Result<(), Failed>| {
        let cases = cases.to_vec();
        Trial::test(format!("format.{name}"), move || check(&cases))
    };
    vec![
        test("words", words),
        test("capabilities", capabilities),
        test("backends", backends),
        test("kinds", kinds),
        test("names", names),
    ]
}

/// The README describes the words that cases use and this runner knows: no more, no less.
fn words(cases: &[Case]) -> Result<(), Failed> {
    let described = table("Steps")?;
    same("words that the cases use", &of_steps(cases, "do")?, &described)?;
    let known: Names = WORDS.iter().map(|(word, _)| (*word).to_owned()).collect();
    same("words that the runner knows", &known, &described)
}

fn capabilities(cases: &[Case]) -> Result<(), Failed> {
    let described = table("Capabilities")?;
    let needed: Names = cases.iter().flat_map(|case| case.needs.clone()).collect();
    same("capabilities that cases need", &needed, &described)?;
    let declared: Names = CAPABILITIES.iter().map(|name| (*name).to_owned()).collect();
    inside("capabilities of the runner", &declared, &described)
}

fn backends(cases: &[Case]) -> Result<(), Failed> {
    let described = table("Backends")?;
    let named: Names = cases.iter().flat_map(|case| case.backends.clone()).flatten().collect();
    inside("backends that cases name", &named, &described)?;
    let ours: Names = Backend::ALL.iter().map(|backend| backend.name().to_owned()).collect();
    inside("backends of the runner", &ours, &described)
}

/// Every kind of error is provoked by a case, or the README says why not.
fn kinds(cases: &[Case]) -> Result<(), Failed> {
    let provoked = of_steps(cases, "error")?;
    let excused = table("Errors that no case provokes")?;
    if let Some(kind) = provoked.intersection(&excused).next() {
        return Err(format!("{kind} is provoked, though the README says that none does").into());
    }
    let all: Names = ErrorKind::ALL.iter().map(|kind| kind.code().to_owned()).collect();
    same("kinds", &provoked.union(&excused).cloned().collect(), &all)
}

fn names(cases: &[Case]) -> Result<(), Failed> {
    let mut seen = Names::new();
    for case in cases {
        if !seen.insert(case.name.clone()) {
            return Err(format!("two cases have the name {}", case.name).into());
        }
    }
    Ok(())
}

/// All values of a key in all steps, whether this runner can execute them or not.
fn of_steps(cases: &[Case], key: &str) -> Result<Names, Failed> {
    let mut found = Names::new();
    for case in cases {
        for step in case.steps(|_| Vec::new())? {
            found.extend(step.get(key).and_then(|value| value.as_str()).map(str::to_owned));
        }
    }
    Ok(found)
}

/// The first column of the first table below a heading of the README.
fn table(heading: &str) -> Result<Names, Failed> {
    let readme = std::fs::read_to_string(folder().join("README.md"))?;
    let names: Names = readme
        .lines()
        .skip_while(|line| *line != format!("## {heading}"))
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
        .collect();
    if names.is_empty() { Err(format!("no table below {heading:?}").into()) } else { Ok(names) }
}

fn same(what: &str, found: &Names, wanted: &Names) -> Result<(), Failed> {
    let difference: Vec<_> = found.symmetric_difference(wanted).collect();
    if difference.is_empty() {
        return Ok(());
    }
    Err(format!("{what} differ from those of the README by {difference:?}").into())
}

fn inside(what: &str, found: &Names, wanted: &Names) -> Result<(), Failed> {
    let difference: Vec<_> = found.difference(wanted).collect();
    if difference.is_empty() {
        return Ok(());
    }
    Err(format!("{what} are not in the README: {difference:?}").into())
}
