//! Which documents carry which labels: the sparse binary matrix Y, by rows and by columns.

use super::LabelError;

/// The labels of every document, ascending and without repetition: 4 bytes a label, whatever the text.
///
/// Documents stream in one after the other; only their label numbers stay.
///
/// ```
/// use gnnxml_backend::labels::DocumentLabels;
/// let mut documents = DocumentLabels::new(3);
/// documents.push(&[2, 0, 2])?;
/// assert_eq!(documents.of(0), [0, 2]);
/// assert!(documents.push(&[3]).is_err());
/// # Ok::<(), gnnxml_backend::labels::LabelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentLabels {
    labels: usize,
    starts: Vec<usize>,
    entries: Vec<u32>,
}

impl DocumentLabels {
    /// No documents yet, over `labels` labels.
    pub fn new(labels: usize) -> Self {
        Self {
            labels,
            starts: vec![0],
            entries: Vec::new(),
        }
    }

    /// From label lists in document order.
    pub fn collect<D: AsRef<[u32]>>(
        documents: impl IntoIterator<Item = D>,
        labels: usize,
    ) -> Result<Self, LabelError> {
        let mut all = Self::new(labels);
        for document in documents {
            all.push(document.as_ref())?;
        }
        Ok(all)
    }

    /// Adds the next document.
    pub fn push(&mut self, labels: &[u32]) -> Result<(), LabelError> {
        if let Some(&label) = labels.iter().find(|&&label| label as usize >= self.labels) {
            return Err(LabelError::UnknownLabel {
                document: self.documents(),
                label,
                labels: self.labels,
            });
        }
        let start = self.entries.len();
        self.entries.extend_from_slice(labels);
        self.entries[start..].sort_unstable();
        let mut kept = start;
        for at in start..self.entries.len() {
            if at == start || self.entries[at] != self.entries[kept - 1] {
                self.entries[kept] = self.entries[at];
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.starts.push(kept);
        Ok(())
    }

    pub fn documents(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn labels(&self) -> usize {
        self.labels
    }

    /// How many (document, label) pairs there are.
    pub fn nonzeros(&self) -> usize {
        self.entries.len()
    }

    /// The labels of one document, ascending.
    pub fn of(&self, document: usize) -> &[u32] {
        &self.entries[self.starts[document]..self.starts[document + 1]]
    }

    /// The same matrix by columns: the documents of every label.
    pub fn by_label(&self) -> LabelDocuments {
        let mut starts = vec![0usize; self.labels + 1];
        for &label in &self.entries {
            starts[label as usize + 1] += 1;
        }
        for label in 0..self.labels {
            starts[label + 1] += starts[label];
        }
        let mut next = starts.clone();
        let mut entries = vec![0u32; self.entries.len()];
        for document in 0..self.documents() {
            for &label in self.of(document) {
                entries[next[label as usize]] = document as u32;
                next[label as usize] += 1;
            }
        }
        LabelDocuments { starts, entries }
    }
}

/// The documents of every label, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelDocuments {
    starts: Vec<usize>,
    entries: Vec<u32>,
}

impl LabelDocuments {
    pub fn labels(&self) -> usize {
        self.starts.len() - 1
    }

    /// The documents of one label.
    pub fn of(&self, label: usize) -> &[u32] {
        &self.entries[self.starts[label]..self.starts[label + 1]]
    }

    /// N_i, how many documents carry label i.
    pub fn counts(&self) -> Vec<u32> {
        self.starts
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as u32)
            .collect()
    }
}
