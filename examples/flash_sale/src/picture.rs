//! The picture: who held the lock when, one row per worker, one bar per hold.

use std::ops::Range;

use svg::Document;
use svg::node::element::{Group, Line, Path, Rectangle, Text, Title};

use crate::report::Report;
use crate::turn::{Outcome, Turn};

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 30.0;
const PLOT: f64 = WIDTH - LEFT - RIGHT;
/// Turns shown in the closer look.
const CLOSE: usize = 60;
/// More bars are joined, so that a sale of any size makes a picture that a browser likes.
const MAX_BARS: usize = 10_000;

const HOLDS: &str = "#2563eb";
const WAITS: &str = "#cbd5e1";
const DIED: &str = "#dc2626";
const LOST: &str = "#f59e0b";
const INK: &str = "#1e293b";

/// Draws turns that are sorted by time.
pub(crate) fn draw(report: &Report, turns: &[Turn]) -> String {
    let held: Vec<&Turn> = turns.iter().filter(|t| t.outcome != Outcome::SoldOut).collect();
    let whole = Panel::new("The whole sale", report.workers, 92.0, &held);
    let from = held.len().saturating_sub(CLOSE) / 2;
    let closer = &held[from..(from + CLOSE).min(held.len())];
    let close = Panel::new("A closer look at its middle", report.workers, whole.bottom(), closer);
    let height = close.bottom();

    Document::new()
        .set("viewBox", format!("0 0 {WIDTH} {height:.0}"))
        .set("width", WIDTH)
        .set("height", format!("{height:.0}"))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .set("fill", INK)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "#ffffff"))
        .add(text(LEFT, 28.0, &report.title).set("font-size", 18).set("font-weight", "bold"))
        .add(text(LEFT, 48.0, &report.summary()).set("font-size", 13))
        .add(legend(report.locked))
        .add(whole.frame())
        .add(whole.joined_bars(&held))
        .add(whole.accidents(turns))
        .add(close.frame())
        .add(close.single_bars(closer))
        .to_string()
}

fn legend(locked: bool) -> Group {
    let entries: &[(&str, &str)] = if locked {
        &[
            (HOLDS, "holds the lock"),
            (WAITS, "waits for it (closer look)"),
            (DIED, "was killed"),
            (LOST, "lost its lease"),
        ]
    } else {
        &[(HOLDS, "reads the stock, then writes it (without the lock)")]
    };
    let mut group = Group::new();
    for (number, (colour, meaning)) in entries.iter().enumerate() {
        let x = LEFT + 190.0 * number as f64;
        group = group.add(bar(x, 59.0, 12.0, 12.0, colour)).add(text(x + 18.0, 69.0, meaning));
    }
    group
}

/// A part of the picture: a title, a row per worker, an axis in milliseconds.
struct Panel {
    title: &'static str,
    workers: usize,
    top: f64,
    row: f64,
    /// Microseconds.
    time: Range<f64>,
}

impl Panel {
    fn new(title: &'static str, workers: usize, top: f64, turns: &[&Turn]) -> Self {
        let from = turns.iter().map(|turn| turn.from).min().unwrap_or(0) as f64;
        let until = turns.iter().map(|turn| turn.until).max().unwrap_or(0) as f64;
        let row = (400.0 / workers as f64).clamp(4.0, 24.0);
        Panel { title, workers, top, row, time: from..until.max(from + 1.0) }
    }

    fn rows_top(&self) -> f64 {
        self.top + 22.0
    }

    fn rows_bottom(&self) -> f64 {
        self.rows_top() + self.row * self.workers as f64
    }

    fn bottom(&self) -> f64 {
        self.rows_bottom() + 56.0
    }

    fn x(&self, time: u64) -> f64 {
        let share = (time as f64 - self.time.start) / (self.time.end - self.time.start);
        LEFT + PLOT * share.clamp(0.0, 1.0)
    }

    fn y(&self, worker: usize) -> f64 {
        self.rows_top() + self.row * worker as f64 + self.row * 0.1
    }

    fn bar_height(&self) -> f64 {
        self.row * 0.8
    }

    fn frame(&self) -> Group {
        let mut group =
            Group::new().add(text(LEFT, self.top + 12.0, self.title).set("font-weight", "bold"));
        let every = (12.0 / self.row).ceil() as usize;
        for worker in (0..self.workers).step_by(every) {
            let y = self.y(worker) + self.bar_height() * 0.5 + 4.0;
            let label = text(LEFT - 8.0, y, &format!("worker {worker}"));
            group = group.add(label.set("text-anchor", "end"));
        }
        let step = tick_step(self.time.end - self.time.start);
        let mut tick = (self.time.start / step).ceil() * step;
        while tick <= self.time.end {
            let x = self.x(tick as u64);
            let (top, bottom) = (self.rows_top(), self.rows_bottom());
            let label = text(x, bottom + 16.0, &format!("{} ms", tick / 1e3));
            group = group
                .add(line(x, top, x, bottom).set("stroke", "#e2e8f0"))
                .add(label.set("text-anchor", "middle"));
            tick += step;
        }
        let bottom = self.rows_bottom();
        group.add(line(LEFT, bottom, LEFT + PLOT, bottom).set("stroke", INK))
    }

    /// One path per worker; where there are too many bars, neighbours become one.
    fn joined_bars(&self, turns: &[&Turn]) -> Group {
        let mut rows: Vec<Vec<(f64, f64)>> = vec![Vec::new(); self.workers];
        for turn in turns.iter().filter(|turn| turn.outcome == Outcome::Sold) {
            rows[turn.worker].push((self.x(turn.from), self.x(turn.until)));
        }
        let mut gap = 0.02;
        while rows.iter().map(Vec::len).sum::<usize>() > MAX_BARS {
            for row in &mut rows {
                join(row, gap);
            }
            gap *= 2.0;
        }
        let mut group = Group::new().set("fill", HOLDS);
        for (worker, row) in rows.iter().enumerate() {
            let (y, height) = (self.y(worker), self.bar_height());
            let bar = |(from, until): &(f64, f64)| {
                let width = (until - from).max(0.6);
                format!("M{from:.2} {y:.1}h{width:.2}v{height:.1}h-{width:.2}z")
            };
            group = group.add(Path::new().set("d", row.iter().map(bar).collect::<String>()));
        }
        group
    }

    /// Leases that were lost, and the killed worker until somebody else got the lock.
    fn accidents(&self, turns: &[Turn]) -> Group {
        let mut group = Group::new();
        for (number, turn) in turns.iter().enumerate() {
            let (until, note) = match turn.outcome {
                Outcome::Sold | Outcome::SoldOut => continue,
                Outcome::Lost | Outcome::Refused => (turn.until, String::new()),
                Outcome::Crashed => (
                    turns.get(number + 1).map_or(turn.until, |next| next.from),
                    format!("killed holding token {}", turn.token),
                ),
            };
            let (x, y) = (self.x(turn.from), self.y(turn.worker));
            let width = (self.x(until) - x).max(1.0);
            group = group
                .add(bar(x, y, width, self.bar_height(), colour(turn)).set("opacity", 0.6))
                .add(text(x + 6.0, y + self.bar_height() * 0.5 + 4.0, &note));
        }
        group
    }

    /// One rectangle per hold, with the wait before it and its figures to point at.
    fn single_bars(&self, turns: &[&Turn]) -> Group {
        let (mut waits, mut holds) = (Group::new(), Group::new());
        for turn in turns {
            let (asked, from, until) = (self.x(turn.asked), self.x(turn.from), self.x(turn.until));
            let (y, height) = (self.y(turn.worker), self.bar_height());
            let middle = y + height * 0.35;
            waits = waits.add(bar(asked, middle, from - asked, height * 0.3, WAITS));
            let figures = format!(
                "worker {}, token {}: waited {:.2} ms, held {:.2} ms",
                turn.worker,
                turn.token,
                turn.waited() as f64 / 1e3,
                turn.until.saturating_sub(turn.from) as f64 / 1e3
            );
            let hold = bar(from, y, (until - from).max(0.5), height, colour(turn));
            holds = holds.add(hold.add(Title::new(figures)));
        }
        Group::new().add(waits).add(holds)
    }
}

fn colour(turn: &Turn) -> &'static str {
    match turn.outcome {
        Outcome::Sold | Outcome::SoldOut => HOLDS,
        Outcome::Crashed => DIED,
        Outcome::Lost | Outcome::Refused => LOST,
    }
}

/// Joins bars that are nearer to each other than `gap`.
fn join(row: &mut Vec<(f64, f64)>, gap: f64) {
    row.dedup_by(|next, bar| {
        let near = next.0 - bar.1 <= gap;
        if near {
            bar.1 = bar.1.max(next.1);
        }
        near
    });
}

/// 1, 2 or 5 times a power of ten, for about ten ticks.
fn tick_step(span: f64) -> f64 {
    let power = 10_f64.powf((span / 10.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| span / step <= 12.0).unwrap_or(span)
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
    fn bars_join_across_small_gaps_only() {
        let mut row = vec![(0.0, 1.0), (1.1, 2.0), (1.5, 1.8), (3.0, 4.0)];
        join(&mut row, 0.2);
        assert_eq!(row, [(0.0, 2.0), (3.0, 4.0)]);
    }

    #[test]
    fn axes_have_a_few_round_ticks() {
        for (span, step) in [(10_000.0, 1_000.0), (1_300_000.0, 200_000.0), (45.0, 5.0)] {
            assert_eq!(tick_step(span), step);
        }
    }
}
