//! Targets and figures: a table printed and as Markdown, charts, and the raw samples behind them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use fencelock_test_support::samples::Samples;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::chart;

pub(crate) struct Report {
    out: PathBuf,
    sections: Vec<Section>,
    /// What was measured before the first tuning, by the name of the row.
    before: HashMap<String, f64>,
}

/// Rows that share a chart.
#[derive(Serialize, Deserialize)]
pub(crate) struct Section {
    name: String,
    pub(crate) title: String,
    /// What it was measured on, and how long it took.
    about: String,
    pub(crate) rows: Vec<Row>,
    /// More than rows can show, as Markdown.
    text: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    figures: String,
    pub(crate) target: Target,
    pub(crate) before: Option<f64>,
    pub(crate) measured: f64,
}

/// What a figure has to be.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Of interest, without a target.
    None,
}

impl Target {
    pub(crate) fn limit(self) -> Option<f64> {
        match self {
            Target::AtMost(limit) | Target::AtLeast(limit) => Some(limit),
            Target::None => None,
        }
    }

    pub(crate) fn words(self) -> String {
        match self {
            Target::AtMost(limit) => format!("≤ {limit}"),
            Target::AtLeast(limit) => format!("≥ {limit}"),
            Target::None => String::new(),
        }
    }
}

impl Row {
    pub(crate) fn met(&self) -> bool {
        match self.target {
            Target::AtMost(limit) => self.measured <= limit,
            Target::AtLeast(limit) => self.measured >= limit,
            Target::None => true,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.target {
            Target::None => "",
            _ if self.met() => "met",
            _ => "MISSED",
        }
    }

    fn cells(&self) -> [String; 6] {
        [
            self.what.clone(),
            self.before.map_or_else(String::new, number),
            number(self.measured),
            self.target.words(),
            self.verdict().to_owned(),
            self.figures.clone(),
        ]
    }
}

const HEADER: [&str; 6] = ["what", "before", "now", "target", "", "figures (p50)"];

fn rows_file(out: &Path, section: &str) -> PathBuf {
    out.join(format!("{section}.rows.json"))
}

/// Two digits that count: a peer may be a thousand times slower.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 0.095 { format!("{value:.4}") } else { format!("{value:.2}") }
}

impl Report {
    pub(crate) fn new(out: &Path) -> Result<Self> {
        fs::create_dir_all(out)?;
        let before = serde_json::from_str(include_str!("../before.json"))?;
        Ok(Report { out: out.to_owned(), sections: Vec::new(), before })
    }

    /// What other processes have written of these sections.
    pub(crate) fn read(out: &Path, names: &[&str]) -> Result<Self> {
        let mut report = Report::new(out)?;
        for name in names {
            let file = rows_file(out, name);
            let text = fs::read(&file).with_context(|| file.display().to_string())?;
            report.sections.push(serde_json::from_slice(&text)?);
        }
        Ok(report)
    }

    /// For [`Report::read`].
    pub(crate) fn write(&mut self, about: &str) -> Result<()> {
        for section in &mut self.sections {
            about.clone_into(&mut section.about);
            fs::write(rows_file(&self.out, &section.name), serde_json::to_vec(section)?)?;
        }
        Ok(())
    }

    /// The rows and samples that follow belong to it.
    pub(crate) fn section(&mut self, name: &str, title: &str) {
        println!("\n{title}");
        // Of an earlier run.
        let _ = fs::remove_file(self.out.join(format!("{name}-spread.svg")));
        let (name, title) = (name.to_owned(), title.to_owned());
        let (about, rows, text) = Default::default();
        self.sections.push(Section { name, title, about, rows, text });
    }

    /// Markdown before the rows of the section.
    pub(crate) fn text(&mut self, text: String) {
        println!("\n{text}");
        self.sections.last_mut().expect("a text has a section").text = text;
    }

    /// One line: the figures in words, and the one number that has a target.
    pub(crate) fn row(&mut self, what: &str, figures: String, target: Target, measured: f64) {
        let before = self.before.get(what).copied();
        let row = Row { what: what.to_owned(), figures, target, before, measured };
        let [_, _, measured, target, verdict, figures] = row.cells();
        println!("{what}: {figures}; {measured} {target} {verdict}");
        self.sections.last_mut().expect("a row has a section").rows.push(row);
    }

    /// Keeps the raw samples of the section, and draws how they spread.
    pub(crate) fn keep(&self, unit: &str, samples: &[(String, &Samples)]) -> Result<()> {
        let section = self.sections.last().context("samples have a section")?;
        let all: Map<String, Value> =
            samples.iter().map(|(what, s)| (what.clone(), json!(s.values()))).collect();
        let file = |ending| self.out.join(format!("{}{ending}", section.name));
        fs::write(file(".json"), serde_json::to_vec(&json!({ "unit": unit, "samples": all }))?)?;
        let quantiles: Vec<_> = samples
            .iter()
            .map(|(what, s)| {
                let mut sorted = Samples::clone(s);
                (what.as_str(), [0.1, 0.5, 0.9, 0.99].map(|share| sorted.quantile(share)))
            })
            .collect();
        Ok(fs::write(file("-spread.svg"), chart::spread(&section.title, unit, &quantiles))?)
    }

    /// Writes `report.md` and the charts, and prints the table.
    pub(crate) fn finish(&self, about: &str) -> Result<()> {
        let mut table = Table::new();
        table.load_preset(UTF8_FULL_CONDENSED);
        table.set_header(HEADER);
        let mut page = format!(
            "# Measurements\n\n{about}\n\nEvery ratio is the median over turns that alternate \
             with turns of what it is compared with. \"before\" is from before the first tuning \
             (`tests/bench/before.json`): another run, and the Python rows in turns five times \
             as long, beside redis-py alone. In the charts of ratios, the \
             upright line is the target and the thin bar what was before.\n"
        );
        for section in &self.sections {
            let Section { title, about, text, .. } = section;
            write!(page, "\n## {title}\n\n{about}\n")?;
            if !text.is_empty() {
                write!(page, "\n{text}")?;
            }
            write!(page, "\n| {} |\n", HEADER.join(" | "))?;
            page.push_str("|---|--:|--:|---|---|---|\n");
            for row in &section.rows {
                writeln!(page, "| {} |", row.cells().join(" | "))?;
                table.add_row(row.cells());
            }
            let mut picture =
                |file: String, what: &str| writeln!(page, "\n![{title}: {what}]({file})");
            let file = format!("{}.svg", section.name);
            fs::write(self.out.join(&file), chart::ratios(section))?;
            picture(file, "ratios")?;
            let file = format!("{}-spread.svg", section.name);
            if self.out.join(&file).exists() {
                picture(file, "spread")?;
            }
        }
        for column in [1, 2] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        fs::write(self.out.join("report.md"), page)?;
        println!("\n{table}\n{about}");
        println!("report.md, charts and raw samples: {}", self.out.display());
        Ok(())
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

    /// "120 against 100 µs".
    pub(crate) fn words(&mut self, unit: &str) -> String {
        format!("{:.0} against {:.0} {unit}", self.ours.median(), self.other.median())
    }
}
