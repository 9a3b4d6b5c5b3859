//! Names that never overlap: a bitmap of the screen in which each name takes its cells.

/// Cell size in pixels: wide enough to be quick, low enough that two lines of text can touch.
const CELL: [f32; 2] = [6.0, 4.0];
/// Free room around a name, in pixels.
const MARGIN: [f32; 2] = [6.0, 3.0];

/// Which parts of the screen are taken.
#[derive(Clone, Debug, Default)]
pub struct NamePlacer {
    /// One bit a cell, rows of whole words.
    taken: Vec<u64>,
    columns: usize,
    rows: usize,
}

impl NamePlacer {
    /// Starts again with an empty screen.
    pub fn clear(&mut self, size: [f32; 2]) {
        self.columns = ((size[0] / CELL[0]).ceil().max(1.0)) as usize;
        self.rows = ((size[1] / CELL[1]).ceil().max(1.0)) as usize;
        self.taken.clear();
        self.taken.resize(self.columns.div_ceil(64) * self.rows, 0);
    }

    /// Takes the rectangle around `middle` and says whether it was free. With `must` it is taken in any case.
    pub fn take(&mut self, middle: [f32; 2], half: [f32; 2], must: bool) -> bool {
        let cells = |low: f32, high: f32, cell: f32, count: usize| {
            let first = (low / cell).floor().max(0.0) as usize;
            let last = ((high / cell).floor().max(0.0) as usize).min(count - 1);
            (first.min(count - 1), last)
        };
        let wide = half[0] + MARGIN[0];
        let tall = half[1] + MARGIN[1];
        let (left, right) = cells(middle[0] - wide, middle[0] + wide, CELL[0], self.columns);
        let (top, bottom) = cells(middle[1] - tall, middle[1] + tall, CELL[1], self.rows);
        let words = self.columns.div_ceil(64);
        let mask_of = |word: usize| {
            let first = left.saturating_sub(word * 64).min(63);
            let last = (right - word * 64).min(63);
            (u64::MAX << first) & (u64::MAX >> (63 - last))
        };
        let span = left / 64..=right / 64;
        if !must {
            for row in top..=bottom {
                for word in span.clone() {
                    if self.taken[row * words + word] & mask_of(word) != 0 {
                        return false;
                    }
                }
            }
        }
        for row in top..=bottom {
            for word in span.clone() {
                self.taken[row * words + word] |= mask_of(word);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_name_in_the_same_place_is_refused() {
        let mut placer = NamePlacer::default();
        placer.clear([1200.0, 300.0]);
        assert!(placer.take([600.0, 100.0], [300.0, 8.0], false));
        assert!(!placer.take([880.0, 104.0], [40.0, 8.0], false));
        assert!(placer.take([600.0, 140.0], [300.0, 8.0], false));
        assert!(placer.take([100.0, 100.0], [80.0, 8.0], false));
    }

    #[test]
    fn a_name_beyond_the_border_does_not_panic() {
        let mut placer = NamePlacer::default();
        placer.clear([100.0, 50.0]);
        assert!(placer.take([-500.0, -500.0], [10.0, 5.0], true));
        assert!(placer.take([900.0, 900.0], [10.0, 5.0], true));
    }
}
