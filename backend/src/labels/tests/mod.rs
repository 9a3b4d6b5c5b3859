//! What label clustering promises, on small graphs: one file a promise.

mod bad_input;
mod graph;
mod partition;
mod result;
mod sampling;

use super::generate::Shape;
use super::{ClusterOptions, DenseRows, DocumentLabels, LabelVectors};

/// A vocabulary of clear topics.
fn topics(labels: usize, topics: usize) -> Shape {
    Shape {
        labels,
        documents: labels * 3,
        labels_per_document: 4.0,
        width: 16,
        topics,
        seed: 7,
    }
}

/// Its documents and vectors.
fn material(shape: Shape) -> (DocumentLabels, LabelVectors) {
    (shape.documents().unwrap(), LabelVectors::Dense(shape.vectors()))
}

fn dense(values: &[f32], width: usize) -> DenseRows {
    DenseRows::new(values.to_vec(), width, "label vector").unwrap()
}

fn with_k(k: usize) -> ClusterOptions {
    ClusterOptions {
        k: Some(k),
        ..ClusterOptions::default()
    }
}
