//! Every odd input has a defined answer.

use super::*;
use crate::labels::{LabelError, Partition, cluster_labels, label_vectors_dense, label_vectors_sparse};
use gnnxml_shared::features::SparseVector;

fn vectors(rows: usize) -> LabelVectors {
    let values: Vec<f32> = (0..rows * 2).map(|i| 0.1 + (i as f32).sin().abs()).collect();
    LabelVectors::Dense(dense(&values, 2))
}

#[test]
fn no_labels_is_an_error_that_says_what_to_give() {
    let documents = DocumentLabels::new(0);
    let none = LabelVectors::Dense(DenseRows::new(Vec::new(), 2, "label vector").unwrap());
    let error = cluster_labels(&documents, none, &ClusterOptions::default()).unwrap_err();
    assert!(matches!(error, LabelError::NoLabels), "{error}");
}

#[test]
fn one_label_is_one_cluster() {
    let documents = DocumentLabels::collect([vec![0]], 1).unwrap();
    let clusters = cluster_labels(&documents, vectors(1), &ClusterOptions::default()).unwrap();
    assert_eq!((clusters.len(), clusters.assignment()), (1, &[0u32][..]));
}

#[test]
fn identical_labels_are_dealt_out_evenly_and_none_of_the_clusters_is_empty() {
    let documents = DocumentLabels::collect((0..40).map(|i| vec![i]), 40).unwrap();
    let alike = LabelVectors::Dense(dense(&[1.0, 0.0].repeat(40), 2));
    let clusters = cluster_labels(&documents, alike, &with_k(4)).unwrap();
    assert!((0..4).all(|cluster| clusters.members(cluster).len() >= 5));
}

#[test]
fn a_label_on_every_document_does_not_swallow_the_others() {
    let shape = topics(300, 6);
    let mut documents = DocumentLabels::new(301);
    let plain = shape.documents().unwrap();
    for document in 0..plain.documents() {
        let mut labels = plain.of(document).to_vec();
        labels.push(300);
        documents.push(&labels).unwrap();
    }
    let mut values = shape.vectors().values().to_vec();
    values.extend(vec![0.25f32; 16]);
    let clusters = cluster_labels(&documents, LabelVectors::Dense(dense(&values, 16)), &with_k(6)).unwrap();
    let truth: Vec<u32> = (0..300).map(|label| shape.topic_of(label) as u32).collect();
    let told = crate::labels::normalised_mutual_information(&clusters.assignment()[..300], &truth);
    assert!(told > 0.8, "{told}");
    assert_eq!(clusters.parts().counts[300] as usize, documents.documents());
}

#[test]
fn labels_without_documents_get_their_name_s_vector_or_zero() {
    let documents = DocumentLabels::collect([vec![0], vec![0, 1]], 4).unwrap();
    let of_name = |label: u32| (label == 2).then(|| vec![0.0, 5.0]);
    let rows = label_vectors_dense(&[2.0, 0.0, 0.0, 2.0], 2, &documents, Some(&of_name)).unwrap();
    let half = 0.5f32.sqrt();
    assert!((rows.row(0)[0] - half).abs() < 1e-6 && (rows.row(0)[1] - half).abs() < 1e-6);
    assert_eq!(rows.row(1), [0.0, 1.0]);
    assert_eq!(rows.row(2), [0.0, 1.0], "the name's vector, normalised");
    assert_eq!(rows.row(3), [0.0, 0.0], "no name vector: zero");
    let clusters = cluster_labels(&documents, LabelVectors::Dense(rows), &with_k(2)).unwrap();
    assert_eq!(clusters.labels(), 4);
}

#[test]
fn sparse_label_vectors_sum_and_normalise_like_dense_ones() {
    let documents = DocumentLabels::collect([vec![0, 1], vec![0]], 2).unwrap();
    let rows = [
        SparseVector {
            indices: vec![0, 2],
            values: vec![1.0, 2.0],
        },
        SparseVector {
            indices: vec![1],
            values: vec![2.0],
        },
    ];
    let sparse = label_vectors_sparse(&rows, 3, &documents, None).unwrap();
    let dense = label_vectors_dense(&[1.0, 0.0, 2.0, 0.0, 2.0, 0.0], 3, &documents, None).unwrap();
    for label in 0..2 {
        for term in 0..3 {
            let got = sparse.get(label, term).copied().unwrap_or(0.0);
            assert!((got - dense.row(label)[term]).abs() < 1e-6);
        }
    }
}

#[test]
fn sparse_label_vectors_are_projected_and_clustered() {
    let documents = DocumentLabels::collect((0..30).map(|i| vec![i, (i + 3) % 30]), 30).unwrap();
    let rows: Vec<SparseVector> = (0..30u32)
        .map(|i| SparseVector {
            indices: vec![i % 3 * 4, i % 3 * 4 + 1 + i / 10],
            values: vec![2.0, 1.0],
        })
        .collect();
    let sparse = label_vectors_sparse(&rows, 12, &documents, None).unwrap();
    let clusters = cluster_labels(&documents, LabelVectors::Sparse(sparse), &with_k(3)).unwrap();
    let truth: Vec<u32> = (0..30).map(|i| i % 3).collect();
    let told = crate::labels::normalised_mutual_information(clusters.assignment(), &truth);
    assert!(told > 0.99, "{told}");
}

#[test]
fn more_clusters_than_labels_is_an_error_with_both_numbers() {
    let documents = DocumentLabels::collect([vec![0, 1, 2]], 3).unwrap();
    let error = cluster_labels(&documents, vectors(3), &with_k(4))
        .unwrap_err()
        .to_string();
    assert!(error.contains('4') && error.contains("at most 3"), "{error}");
}

#[test]
fn as_many_clusters_as_labels_is_allowed() {
    let documents = DocumentLabels::collect([vec![0, 1, 2]], 3).unwrap();
    let clusters = cluster_labels(&documents, vectors(3), &with_k(3)).unwrap();
    assert_eq!(clusters.len(), 3);
}

#[test]
fn options_out_of_range_are_named() {
    let documents = DocumentLabels::collect([vec![0, 1]], 2).unwrap();
    let wrong: [(&str, ClusterOptions); 6] = [
        (
            "rho",
            ClusterOptions {
                rho: 1.5,
                ..ClusterOptions::default()
            },
        ),
        (
            "rho",
            ClusterOptions {
                rho: f32::NAN,
                ..ClusterOptions::default()
            },
        ),
        (
            "tau",
            ClusterOptions {
                tau: -0.1,
                ..ClusterOptions::default()
            },
        ),
        (
            "rarity",
            ClusterOptions {
                rarity: f32::NAN,
                ..ClusterOptions::default()
            },
        ),
        (
            "batch",
            ClusterOptions {
                batch: 0,
                ..ClusterOptions::default()
            },
        ),
        (
            "k",
            ClusterOptions {
                k: Some(0),
                ..ClusterOptions::default()
            },
        ),
    ];
    for (name, options) in wrong {
        let error = cluster_labels(&documents, vectors(2), &options)
            .unwrap_err()
            .to_string();
        assert!(error.contains(&format!("option {name} ")), "{error}");
    }
}

#[test]
fn a_nan_is_an_error_that_says_where() {
    let error = DenseRows::new(vec![0.0, 1.0, 2.0, f32::NAN], 2, "label vector")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("label vector 1") && error.contains("column 1"),
        "{error}"
    );
    let documents = DocumentLabels::collect([vec![0], vec![0]], 1).unwrap();
    let error = label_vectors_dense(&[1.0, f32::INFINITY], 1, &documents, None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("document vector 1"), "{error}");
}

#[test]
fn zero_vectors_are_clustered_like_any_other() {
    let documents = DocumentLabels::collect([vec![0, 1], vec![2, 3]], 4).unwrap();
    for method in [Partition::Graph, Partition::KMeans, Partition::Random] {
        let zero = LabelVectors::Dense(dense(&[0.0; 8], 2));
        let options = ClusterOptions { method, ..with_k(2) };
        let clusters = cluster_labels(&documents, zero, &options).unwrap();
        assert_eq!(clusters.len(), 2);
    }
}

#[test]
fn an_unknown_label_and_a_wrong_shape_are_errors() {
    let error = DocumentLabels::collect([vec![0], vec![9]], 3)
        .unwrap_err()
        .to_string();
    assert!(error.contains("document 1") && error.contains('9'), "{error}");
    let documents = DocumentLabels::collect([vec![0]], 3).unwrap();
    assert!(cluster_labels(&documents, vectors(2), &ClusterOptions::default()).is_err());
    assert!(label_vectors_dense(&[1.0; 3], 2, &documents, None).is_err());
    assert!(DenseRows::new(vec![1.0; 3], 2, "label vector").is_err());
}
