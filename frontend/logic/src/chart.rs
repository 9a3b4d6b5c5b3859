//! Axes, ticks and lines of the small charts.

/// How values become positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Linear,
    /// Powers of ten at equal distances; values must be positive.
    Log,
}

/// One axis: values from `low` to `high` laid on pixels from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub kind: Kind,
    pub low: f64,
    pub high: f64,
    pub start: f64,
    pub end: f64,
}

impl Axis {
    /// A linear axis over the finite values, widened to round numbers.
    pub fn linear(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let (mut low, mut high) = extent(values).unwrap_or((0.0, 1.0));
        if high - low < 1e-12 {
            low -= 0.5_f64.min(low.abs());
            high += 0.5;
        }
        let step = round_step((high - low) / 4.0);
        Self {
            kind: Kind::Linear,
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            start,
            end,
        }
    }

    /// A linear axis over exactly this range.
    pub fn exactly(low: f64, high: f64, start: f64, end: f64) -> Self {
        Self {
            kind: Kind::Linear,
            low,
            high: if high > low { high } else { low + 1.0 },
            start,
            end,
        }
    }

    /// A logarithmic axis from 1 to the power of ten at or above the largest value.
    pub fn log(largest: f64, start: f64, end: f64) -> Self {
        let decades = largest.max(10.0).log10().ceil();
        Self {
            kind: Kind::Log,
            low: 1.0,
            high: 10f64.powf(decades),
            start,
            end,
        }
    }

    /// Where a value lies.
    pub fn position(&self, value: f64) -> f64 {
        let share = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => value.max(self.low).log10() / self.high.log10(),
        };
        self.start + share * (self.end - self.start)
    }

    /// The value at a position.
    pub fn value(&self, position: f64) -> f64 {
        let share = (position - self.start) / (self.end - self.start);
        match self.kind {
            Kind::Linear => self.low + share * (self.high - self.low),
            Kind::Log => 10f64.powf(share * self.high.log10()),
        }
    }

    /// Round values to write along the axis.
    pub fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let step = round_step((self.high - self.low) / 5.0);
                let first = (self.low / step).ceil();
                let last = (self.high / step + 1e-9).floor();
                (0..=(last - first).max(0.0) as usize)
                    .map(|index| (first + index as f64) * step)
                    .collect()
            }
            Kind::Log => {
                let decades = self.high.log10().round() as i32;
                (0..=decades).map(|power| 10f64.powi(power)).collect()
            }
        }
    }
}

/// Smallest and largest finite value.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|value| value.is_finite())
        .fold(None, |seen, value| {
            Some(seen.map_or((value, value), |(low, high): (f64, f64)| {
                (low.min(value), high.max(value))
            }))
        })
}

/// The nearest 1, 2 or 5 times a power of ten that is not smaller.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.max(1e-12).log10().floor());
    let factor = rough / power;
    power
        * if factor <= 1.0 {
            1.0
        } else if factor <= 2.0 {
            2.0
        } else if factor <= 5.0 {
            5.0
        } else {
            10.0
        }
}

/// An SVG path through the points; a value that is not a number leaves a gap.
pub fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    use std::fmt::Write as _;
    let mut path = String::new();
    let mut pen_down = false;
    for (x, y) in points {
        if x.is_finite() && y.is_finite() {
            // Writing to a string cannot fail.
            let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { 'L' } else { 'M' });
            pen_down = true;
        } else {
            pen_down = false;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let axis = Axis::linear([0.13, 0.87].into_iter(), 0.0, 100.0);
        assert_eq!((axis.low, axis.high), (0.0, 1.0));
        assert_eq!(axis.ticks().len(), 6);
        assert!((axis.position(0.5) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn a_position_leads_back_to_its_value() {
        for axis in [
            Axis::linear([3.0, 47.0].into_iter(), 10.0, 410.0),
            Axis::log(54_321.0, 300.0, 0.0),
        ] {
            for value in [3.0, 17.5, 42.0] {
                assert!(
                    (axis.value(axis.position(value)) - value).abs() < 1e-6,
                    "{axis:?}"
                );
            }
        }
    }

    #[test]
    fn one_value_or_none_still_makes_an_axis() {
        assert!(Axis::linear([5.0].into_iter(), 0.0, 1.0).high > 5.0);
        assert!(Axis::linear(std::iter::empty(), 0.0, 1.0).ticks().len() > 1);
        assert!(
            Axis::linear([f64::NAN].into_iter(), 0.0, 1.0)
                .position(0.5)
                .is_finite()
        );
    }

    #[test]
    fn a_missing_value_breaks_the_line() {
        let line = path([(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, 4.0)].into_iter());
        assert_eq!(line, "M0.0 1.0M2.0 3.0L3.0 4.0");
    }

    #[test]
    fn a_logarithmic_axis_ticks_at_powers_of_ten() {
        assert_eq!(
            Axis::log(2500.0, 0.0, 1.0).ticks(),
            [1.0, 10.0, 100.0, 1000.0, 10_000.0]
        );
    }
}
