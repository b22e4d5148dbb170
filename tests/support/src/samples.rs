//! Medians and other quantiles of measured values.

/// Measured values of one thing.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    values: Vec<f64>,
    sorted: bool,
}

impl Samples {
    /// One more value.
    pub fn add(&mut self, value: f64) {
        self.values.push(value);
        self.sorted = false;
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value that a share of all values does not exceed; NaN when there is none.
    pub fn quantile(&mut self, share: f64) -> f64 {
        if !self.sorted {
            self.values.sort_by(f64::total_cmp);
            self.sorted = true;
        }
        let last = self.values.len().saturating_sub(1);
        self.values.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    /// The middle value.
    pub fn median(&mut self) -> f64 {
        self.quantile(0.5)
    }

    /// The smallest value.
    pub fn min(&mut self) -> f64 {
        self.quantile(0.0)
    }

    /// The largest value.
    pub fn max(&mut self) -> f64 {
        self.quantile(1.0)
    }

    /// All values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Samples { values: values.into_iter().collect(), sorted: false }
    }
}
