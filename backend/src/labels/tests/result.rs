//! What comes out: names, statistics, map, file.

use std::collections::BTreeSet;

use super::*;
use crate::labels::{LabelClusters, LabelError, LabelTerms, SparseRows, cluster_labels};

fn named() -> LabelClusters {
    let (documents, vectors) = material(topics(240, 4));
    let names: Vec<String> = (0..240).map(|l| format!("topic{} word{l}", l / 60)).collect();
    cluster_labels(&documents, vectors, &with_k(4))
        .unwrap()
        .name(&names, None)
        .unwrap()
}

#[test]
fn a_cluster_is_named_after_one_of_its_labels_and_described_by_what_sets_it_apart() {
    let clusters = named();
    for cluster in 0..4 {
        let members: Vec<String> = clusters
            .members(cluster)
            .iter()
            .map(|&l| clusters.label_name(l))
            .collect();
        assert!(members.contains(&clusters.cluster(cluster).name));
        let topic = members[0].split(' ').next().unwrap();
        assert_eq!(clusters.cluster(cluster).terms[0], topic);
    }
}

#[test]
fn given_terms_are_preferred_to_the_words_of_names() {
    let clusters = named();
    let vocabulary: Vec<String> = ["common", "zero", "one", "two", "three"]
        .map(String::from)
        .to_vec();
    let mut starts = vec![0];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for label in 0..240u32 {
        columns.extend([0, 1 + label / 60]);
        values.extend([0.5f32, 0.5]);
        starts.push(columns.len());
    }
    let rows = SparseRows::new((240, 5), starts, columns, values);
    let names = clusters.parts().names.clone();
    let terms = LabelTerms {
        rows: &rows,
        vocabulary: &vocabulary,
    };
    let clusters = clusters.name(&names, Some(terms)).unwrap();
    for cluster in 0..4 {
        assert_ne!(clusters.cluster(cluster).terms[0], "common");
    }
}

#[test]
fn members_come_most_frequent_first_and_documents_are_counted_once_a_cluster() {
    let documents = DocumentLabels::collect([vec![0, 1], vec![1], vec![2], vec![2, 0]], 3).unwrap();
    let vectors = LabelVectors::Dense(dense(&[1.0, 0.0, 1.0, 0.1, -1.0, 0.0], 2));
    let clusters = cluster_labels(
        &documents,
        vectors,
        &ClusterOptions {
            rho: 1.0,
            ..with_k(2)
        },
    )
    .unwrap();
    let cluster = clusters.cluster_of(0);
    assert_eq!(clusters.members(cluster), [0, 1]);
    assert_eq!(
        clusters.cluster(cluster).documents,
        3,
        "document 0 carries both labels"
    );
    assert_eq!(clusters.statistics().documents, 4);
}

#[test]
fn the_share_of_clusters_with_over_100_documents_is_counted() {
    let documents =
        DocumentLabels::collect((0..150).map(|i| if i < 101 { vec![0] } else { vec![1] }), 2).unwrap();
    let vectors = LabelVectors::Dense(dense(&[1.0, 0.0, 0.0, 1.0], 2));
    let clusters = cluster_labels(&documents, vectors, &with_k(2)).unwrap();
    assert_eq!(clusters.statistics().clusters_over_100, 0.5);
    assert_eq!(clusters.statistics().labels_over_100, 0.5);
}

#[test]
fn neighbours_are_those_of_the_label_graph_most_probable_first() {
    let documents = DocumentLabels::collect([vec![0, 1], vec![0, 1, 2], vec![0, 1], vec![0]], 3).unwrap();
    let clusters = cluster_labels(
        &documents,
        LabelVectors::Dense(dense(&[1.0, 0.5, 0.2], 1)),
        &with_k(1),
    )
    .unwrap();
    let found: Vec<(u32, f32)> = clusters.neighbours(0).collect();
    assert_eq!(found, [(1, 0.75), (2, 0.25)]);
    let detail = clusters.label_detail(2).unwrap();
    assert_eq!(detail.neighbours.len(), 2);
    assert_eq!(detail.neighbours[0].probability, 1.0);
    assert!(clusters.label_detail(3).is_none() && clusters.detail(1).is_none());
}

#[test]
fn the_map_keeps_clusters_together_and_no_two_labels_on_one_spot() {
    let clusters = named();
    let map = clusters.map(true);
    let spots: BTreeSet<(u32, u32)> = map
        .x
        .iter()
        .zip(&map.y)
        .map(|(x, y)| (x.to_bits(), y.to_bits()))
        .collect();
    assert_eq!(spots.len(), 240);
    assert!(map.x.iter().chain(&map.y).all(|v| (-1.0..=1.0).contains(v)));
    let mut near_own = 0;
    for label in 0..240 {
        let distance = |cluster: u32| {
            let [x, y] = clusters.cluster(cluster).position;
            (map.x[label] - x).hypot(map.y[label] - y)
        };
        let nearest = (0..4)
            .min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
            .unwrap();
        near_own += usize::from(nearest == map.cluster[label]);
    }
    assert!(
        near_own >= 235,
        "{near_own} of 240 labels are nearest to their own cluster's place"
    );
}

#[test]
fn a_search_finds_names_whatever_the_case_and_prefers_beginnings() {
    let clusters = named();
    let found = clusters.search("TOPIC2", 5);
    assert_eq!((found.total, found.labels.len()), (60, 5));
    let counts: Vec<u32> = found.labels.iter().map(|label| label.count).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b));
}

#[test]
fn what_is_saved_is_loaded_and_every_damage_is_noticed() {
    let clusters = named();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(LabelClusters::FILE_NAME);
    clusters.save(&path).unwrap();
    assert_eq!(LabelClusters::load(&path).unwrap(), clusters);
    let bytes = std::fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(997).chain(0..24) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        assert!(LabelClusters::from_bytes(&damaged).is_err(), "byte {at}");
    }
    for length in [0, 7, 19, 51, 52, bytes.len() / 2, bytes.len() - 1] {
        assert!(
            LabelClusters::from_bytes(&bytes[..length]).is_err(),
            "{length} bytes"
        );
    }
    std::fs::write(&path, &bytes[..100]).unwrap();
    let error = LabelClusters::load(&path).unwrap_err();
    assert!(matches!(error, LabelError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("cut short"), "{error}");
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let parts = named().parts().clone();
    let mut wrong = parts.clone();
    wrong.assignment[0] = 4;
    assert!(LabelClusters::new(wrong).is_err());
    let mut wrong = parts.clone();
    wrong.counts.pop();
    assert!(LabelClusters::new(wrong).is_err());
    let mut wrong = parts.clone();
    wrong.positions[3] = [f32::NAN, 0.0];
    assert!(LabelClusters::new(wrong).is_err());
    let mut wrong = parts;
    wrong.assignment.fill(0);
    assert!(LabelClusters::new(wrong).is_err(), "empty clusters");
}
