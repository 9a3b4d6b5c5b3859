//! Many short lists of numbers in two arrays.

/// Row r is `items[offsets[r]..offsets[r + 1]]`: the clusters of a document, the documents of a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    offsets: Vec<usize>,
    items: Vec<u32>,
}

impl Lists {
    /// No row yet.
    pub fn new() -> Self {
        Self {
            offsets: vec![0],
            items: Vec::new(),
        }
    }

    /// One list a row.
    pub fn from_rows<R: AsRef<[u32]>>(rows: &[R]) -> Self {
        let mut lists = Self::new();
        for row in rows {
            lists.push(row.as_ref().iter().copied());
        }
        lists
    }

    /// Adds a row at the end.
    pub fn push(&mut self, row: impl IntoIterator<Item = u32>) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.items.extend(row);
        self.offsets.push(self.items.len());
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.items[self.offsets[row]..self.offsets[row + 1]]
    }

    /// Every row in order.
    pub fn rows(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|row| self.row(row))
    }

    /// All items, row after row.
    pub fn items(&self) -> &[u32] {
        &self.items
    }

    /// For every item below `columns`, the rows that hold it, ascending.
    pub fn transposed(&self, columns: usize) -> Self {
        let mut offsets = vec![0; columns + 1];
        for &item in &self.items {
            offsets[item as usize + 1] += 1;
        }
        for c in 0..columns {
            offsets[c + 1] += offsets[c];
        }
        let mut next = offsets.clone();
        let mut items = vec![0; self.items.len()];
        for (row, list) in self.rows().enumerate() {
            for &item in list {
                items[next[item as usize]] = row as u32;
                next[item as usize] += 1;
            }
        }
        Self { offsets, items }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_twice_gives_the_same_lists() {
        let lists = Lists::from_rows(&[vec![0, 2], vec![], vec![1, 2]]);
        let turned = lists.transposed(3);
        assert_eq!(turned.rows().collect::<Vec<_>>(), [&[0][..], &[2], &[0, 2]]);
        assert_eq!(turned.transposed(3), lists);
    }
}
