//! What a scenario found.

/// Figures, and the promises that were broken.
#[derive(Default)]
pub(crate) struct Outcome {
    figures: Vec<(String, String)>,
    violations: Vec<String>,
}

impl Outcome {
    pub(crate) fn figure(&mut self, what: impl Into<String>, value: impl Into<String>) {
        self.figures.push((what.into(), value.into()));
    }

    pub(crate) fn violations(&mut self, found: impl IntoIterator<Item = String>) {
        self.violations.extend(found);
    }

    /// A violation unless the promise holds.
    pub(crate) fn promise(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(otherwise());
        }
    }

    pub(crate) fn take_violations(self) -> Vec<String> {
        self.violations
    }

    /// Takes over what another one found.
    pub(crate) fn absorb(&mut self, other: Outcome) {
        self.figures.extend(other.figures);
        self.violations.extend(other.violations);
    }

    /// Prints it all; whether every promise was kept.
    pub(crate) fn print(&self) -> bool {
        for (what, value) in &self.figures {
            println!("  {what:<58} {value}");
        }
        // All of one kind says no more than a few of it.
        for violation in self.violations.iter().take(10) {
            println!("  BROKEN: {violation}");
        }
        if self.violations.len() > 10 {
            println!("  BROKEN: and {} more", self.violations.len() - 10);
        }
        self.violations.is_empty()
    }
}
