//! The charts: ratios with their targets, and how far the samples spread.

use svg::Document;
use svg::node::element::{Group, Line, Rectangle, Text};

use crate::report::{Section, number};

const WIDTH: f64 = 1060.0;
const LEFT: f64 = 440.0;
const PLOT: f64 = 420.0;
const RIGHT: f64 = LEFT + PLOT;
const TOP: f64 = 72.0;
const ROW: f64 = 32.0;

const INK: &str = "#1e293b";
const FAINT: &str = "#64748b";
const GRID: &str = "#e2e8f0";
const NOW: &str = "#2563eb";
const BEFORE: &str = "#94a3b8";
const MISSED: &str = "#dc2626";
const BAND: &str = "#93c5fd";

/// A bar for each row from zero on; the target as an upright line.
pub(crate) fn ratios(section: &Section) -> String {
    let values = section
        .rows
        .iter()
        .flat_map(|row| [Some(row.measured), row.before, row.target.limit()].into_iter().flatten());
    let most = values.fold(0.0, f64::max) * 1.08;
    let x = |value: f64| LEFT + PLOT * (value / most).clamp(0.0, 1.0);
    let step = tick_step(most);
    let count = (most / step) as usize;
    let ticks: Vec<_> = (0..=count).map(|i| i as f64 * step).map(|t| (x(t), short(t))).collect();

    let mut rows = Group::new();
    for (i, row) in section.rows.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        let colour = if row.met() { NOW } else { MISSED };
        rows = rows.add(label(&row.what, y));
        let mut figures = number(row.measured);
        if let Some(before) = row.before {
            rows = rows.add(bar(LEFT, y + 5.0, x(before) - LEFT, 5.0, BEFORE));
            figures = format!("{} → {figures}", number(before));
        }
        rows = rows.add(bar(LEFT, y + 11.0, x(row.measured) - LEFT, 14.0, colour));
        if let Some(limit) = row.target.limit() {
            let mark = line(x(limit), y + 2.0, x(limit), y + 28.0);
            rows = rows.add(mark.set("stroke", INK).set("stroke-width", 2));
        }
        let colour = if row.met() { INK } else { MISSED };
        rows = rows
            .add(text(RIGHT + 12.0, y + 22.0, &figures).set("fill", colour))
            .add(text(RIGHT + 118.0, y + 22.0, &row.target.words()).set("fill", FAINT));
    }
    let mut legend = vec![(NOW, "now")];
    let mut explain =
        |colour, words, needed: bool| legend.extend(needed.then_some((colour, words)));
    explain(BEFORE, "before", section.rows.iter().any(|row| row.before.is_some()));
    explain(MISSED, "target missed", section.rows.iter().any(|row| !row.met()));
    explain(INK, "target", true);
    frame(&section.title, "", section.rows.len(), &legend, &ticks).add(rows).to_string()
}

/// For each series: from p10 to p90 a band, p50 and p99 as marks, on a logarithmic axis.
pub(crate) fn spread(title: &str, unit: &str, series: &[(&str, [f64; 4])]) -> String {
    let all = || series.iter().flat_map(|(_, quantiles)| *quantiles).filter(|v| *v > 0.0);
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let ticks = log_ticks(least, most);
    let (from, until) = match &ticks[..] {
        [first, .., last] => (first.ln(), last.ln()),
        _ => (0.0, 1.0),
    };
    let x = |value: f64| LEFT + PLOT * ((value.ln() - from) / (until - from)).clamp(0.0, 1.0);
    // Three labels in each decade fit beside each other only where there are few decades.
    let few = ticks.len() <= 10;
    let ticks: Vec<_> = ticks
        .iter()
        .map(|&t| {
            let whole = (t.log10() - t.log10().round()).abs() < 1e-9;
            (x(t), if few || whole { short(t) } else { String::new() })
        })
        .collect();

    let mut rows = Group::new();
    for (i, (what, quantiles)) in series.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        let [p10, p50, p90, p99] = quantiles.map(x);
        rows = rows
            .add(label(what, y))
            .add(line(p90, y + 16.0, p99, y + 16.0).set("stroke", BEFORE))
            .add(bar(p10, y + 8.0, (p90 - p10).max(1.0), 16.0, BAND))
            .add(bar(p50 - 1.5, y + 5.0, 3.0, 22.0, NOW))
            .add(bar(p99 - 1.0, y + 11.0, 2.0, 10.0, BEFORE))
            .add(text(RIGHT + 12.0, y + 20.0, &format!("{:.0}", quantiles[1])));
    }
    let legend: &[_] = &[(NOW, "p50"), (BAND, "p10 to p90"), (BEFORE, "p99")];
    frame(title, unit, series.len(), legend, &ticks).add(rows).to_string()
}

fn frame(
    title: &str,
    unit: &str,
    rows: usize,
    legend: &[(&str, &str)],
    ticks: &[(f64, String)],
) -> Document {
    let bottom = TOP + ROW * rows as f64;
    let height = bottom + if unit.is_empty() { 34.0 } else { 52.0 };
    let mut grid = Group::new();
    for (x, words) in ticks {
        grid = grid
            .add(line(*x, TOP, *x, bottom).set("stroke", GRID))
            .add(text(*x, bottom + 18.0, words).set("text-anchor", "middle").set("fill", FAINT));
    }
    let middle = LEFT + PLOT / 2.0;
    grid = grid
        .add(line(LEFT, TOP, LEFT, bottom).set("stroke", INK))
        .add(text(middle, bottom + 38.0, unit).set("text-anchor", "middle").set("fill", FAINT));
    for (i, (colour, words)) in legend.iter().enumerate() {
        let x = LEFT + 105.0 * i as f64;
        grid = grid
            .add(bar(x, 47.0, 10.0, 10.0, colour))
            .add(text(x + 15.0, 56.0, words).set("fill", FAINT));
    }
    Document::new()
        .set("viewBox", format!("0 0 {WIDTH} {height}"))
        .set("width", WIDTH)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .set("fill", INK)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "#ffffff"))
        .add(text(16.0, 28.0, title).set("font-size", 17).set("font-weight", "bold"))
        .add(grid)
}

/// 1, 2 or 5 times a power of ten, for at most eight ticks.
fn tick_step(most: f64) -> f64 {
    let power = 10_f64.powf((most / 8.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| most / step <= 8.0).unwrap_or(most)
}

/// 1, 2 and 5 times the powers of ten, from the last below all values to the first above.
fn log_ticks(least: f64, most: f64) -> Vec<f64> {
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let ticks: Vec<f64> = decades
        .flat_map(|decade| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(decade)))
        .collect();
    let first = ticks.iter().rposition(|t| *t <= least).unwrap_or(0);
    let last = ticks.iter().position(|t| *t >= most).unwrap_or(ticks.len() - 1);
    ticks[first..=last.max(first + 1).min(ticks.len() - 1)].to_vec()
}

/// For an axis: without digits that do not count.
fn short(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => format!("{:.0}k", v / 1e3),
        v if v >= 100.0 => format!("{v:.0}"),
        v => format!("{}", (v * 100.0).round() / 100.0),
    }
}

fn label(content: &str, y: f64) -> Text {
    text(LEFT - 10.0, y + 20.0, content).set("text-anchor", "end")
}

fn text(x: f64, y: f64, content: &str) -> Text {
    Text::new(content).set("x", rounded(x)).set("y", rounded(y))
}

fn bar(x: f64, y: f64, width: f64, height: f64, colour: &str) -> Rectangle {
    Rectangle::new()
        .set("x", rounded(x))
        .set("y", rounded(y))
        .set("width", rounded(width.max(0.0)))
        .set("height", rounded(height))
        .set("fill", colour)
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    Line::new()
        .set("x1", rounded(x1))
        .set("y1", rounded(y1))
        .set("x2", rounded(x2))
        .set("y2", rounded(y2))
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_has_a_few_round_ticks() {
        for (most, step) in [(1.5, 0.2), (3.2, 0.5), (1.0, 0.2), (0.55, 0.1)] {
            assert!((tick_step(most) - step).abs() < 1e-9, "{most}: {}", tick_step(most));
        }
    }

    #[test]
    fn a_logarithmic_axis_holds_all_values() {
        assert_eq!(log_ticks(130.0, 1_900.0), [100.0, 200.0, 500.0, 1000.0, 2000.0]);
        assert_eq!(log_ticks(100.0, 100.0), [100.0, 200.0]);
    }
}
