//! The table of targets and figures, and the raw samples behind it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use fencelock_test_support::samples::Samples;
use serde_json::{Map, Value, json};

pub(crate) struct Report {
    out: PathBuf,
    table: Table,
}

/// What a figure has to be.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Of interest, without a target.
    None,
}

impl Report {
    pub(crate) fn new(out: &Path) -> Result<Self> {
        fs::create_dir_all(out)?;
        let mut table = Table::new();
        table.load_preset(UTF8_FULL_CONDENSED);
        table.set_header(["what", "figures", "target", "measured", ""]);
        Ok(Report { out: out.to_owned(), table })
    }

    /// One line: the figures in words, and the one number that has a target.
    pub(crate) fn row(&mut self, what: &str, figures: String, target: Target, measured: f64) {
        let (words, met) = match target {
            Target::AtMost(limit) => (format!("≤ {limit}"), measured <= limit),
            Target::AtLeast(limit) => (format!("≥ {limit}"), measured >= limit),
            Target::None => (String::new(), true),
        };
        let verdict = match target {
            Target::None => "",
            _ if met => "met",
            _ => "MISSED",
        };
        println!("{what}: {figures}; {measured:.2} {words} {verdict}");
        self.table.add_row([
            what,
            figures.as_str(),
            words.as_str(),
            format!("{measured:.2}").as_str(),
            verdict,
        ]);
    }

    /// Keeps the raw samples.
    pub(crate) fn keep(&self, name: &str, samples: &[(String, &Samples)]) -> Result<()> {
        let all: Map<String, Value> =
            samples.iter().map(|(what, s)| (what.clone(), json!(s.values()))).collect();
        fs::write(self.out.join(format!("{name}.json")), serde_json::to_vec(&all)?)?;
        Ok(())
    }

    pub(crate) fn print(&mut self) {
        if let Some(column) = self.table.column_mut(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        println!("\n{}", self.table);
        println!("raw samples: {}", self.out.display());
    }
}

/// Two things measured in turns.
#[derive(Default)]
pub(crate) struct Pair {
    pub(crate) ours: Samples,
    pub(crate) other: Samples,
    ratios: Samples,
}

impl Pair {
    /// One turn of each.
    pub(crate) fn turn(&mut self, mut ours: Samples, mut other: Samples) {
        self.ratios.add(ours.median() / other.median());
        ours.values().iter().for_each(|v| self.ours.add(*v));
        other.values().iter().for_each(|v| self.other.add(*v));
    }

    /// The median over the turns of ours / other.
    pub(crate) fn ratio(&mut self) -> f64 {
        self.ratios.median()
    }

    /// "120 against 100 µs (p50)".
    pub(crate) fn words(&mut self, unit: &str) -> String {
        format!("{:.0} against {:.0} {unit}", self.ours.median(), self.other.median())
    }
}
