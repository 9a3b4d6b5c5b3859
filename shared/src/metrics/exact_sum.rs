//! A sum that comes out the same in any order.

/// Sums reals in fixed point (2⁻⁶⁰), so that partial sums of threads merge to the same bits in any order.
///
/// Each addend is rounded once by less than 10⁻¹⁸; addends must stay below 10⁹ and there may be 10¹⁰ of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExactSum(i128);

const ONE: f64 = (1_u64 << 60) as f64;

impl ExactSum {
    pub(super) fn add(&mut self, addend: f64) {
        self.0 += (addend * ONE).round() as i128;
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }

    pub(super) fn value(self) -> f64 {
        self.0 as f64 / ONE
    }
}
