//! The partition itself: quality, determinism, large K, several processes.

use std::sync::{Barrier, Mutex};

use super::*;
use crate::collective::{Buffer, Collective, CollectiveError, SingleProcess};
use crate::labels::kmeans::{KMeansOptions, mini_batch};
use crate::labels::rows::WeightedRows;
use crate::labels::two_level::two_level;
use crate::labels::{
    FilterOrder, LabelClusters, Partition, cluster_labels, cluster_labels_with, normalised_mutual_information,
};

fn told(clusters: &LabelClusters, shape: Shape) -> f64 {
    let truth: Vec<u32> = (0..shape.labels)
        .map(|label| shape.topic_of(label) as u32)
        .collect();
    normalised_mutual_information(clusters.assignment(), &truth)
}

/// Vectors that hardly tell the topics; company does.
fn blurred(shape: Shape) -> LabelVectors {
    let own = Shape {
        topics: shape.labels,
        ..shape
    };
    let (clear, noise) = (shape.vectors(), own.vectors());
    let values = clear
        .values()
        .iter()
        .zip(noise.values())
        .map(|(c, n)| 0.9 * c + n)
        .collect();
    LabelVectors::Dense(DenseRows::new(values, shape.width, "label vector").unwrap())
}

#[test]
fn the_graph_beats_plain_k_means_and_both_beat_chance() {
    let shape = topics(900, 15);
    let documents = shape.documents().unwrap();
    let quality = |method| {
        let options = ClusterOptions { method, ..with_k(15) };
        told(
            &cluster_labels(&documents, blurred(shape), &options).unwrap(),
            shape,
        )
    };
    let (graph, plain, random) = (
        quality(Partition::Graph),
        quality(Partition::KMeans),
        quality(Partition::Random),
    );
    assert!(graph > plain + 0.05, "graph {graph}, k-means {plain}");
    assert!(plain > random + 0.05, "k-means {plain}, random {random}");
}

#[test]
fn the_adaptive_order_filters_until_clusters_stop_tightening() {
    let shape = topics(600, 10);
    let options = ClusterOptions {
        filter_order: FilterOrder::Adaptive { max: 8 },
        ..with_k(10)
    };
    let clusters = cluster_labels(&shape.documents().unwrap(), blurred(shape), &options).unwrap();
    assert!(clusters.report().filter_order >= 1);
    let unfiltered = ClusterOptions {
        filter_order: FilterOrder::Fixed(0),
        ..with_k(10)
    };
    let unfiltered = cluster_labels(&shape.documents().unwrap(), blurred(shape), &unfiltered).unwrap();
    assert!(told(&clusters, shape) > told(&unfiltered, shape));
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let shape = topics(500, 8);
    let bytes = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
            .install(|| {
                let (documents, vectors) = material(shape);
                cluster_labels(&documents, vectors, &ClusterOptions::default())
                    .unwrap()
                    .to_bytes()
            })
    };
    let one = bytes(1);
    assert!(one == bytes(2) && one == bytes(5));
}

#[test]
fn two_levels_come_near_the_inertia_of_one() {
    let shape = topics(3000, 60);
    let inertia = |flat_limit| {
        let (documents, vectors) = material(shape);
        let options = ClusterOptions {
            flat_limit,
            map: false,
            ..with_k(60)
        };
        let clusters = cluster_labels(&documents, vectors, &options).unwrap();
        assert_eq!(clusters.len(), 60);
        clusters.report().inertia
    };
    let (flat, two) = (inertia(1024), inertia(8));
    assert!(two < 1.15 * flat, "flat {flat}, two levels {two}");
}

#[test]
fn a_centre_is_the_weighted_mean_of_its_labels_at_one_level_and_at_two() {
    let rows = dense(&[0.0, 0.0, 4.0, 0.0, 100.0, 0.0, 104.0, 0.0], 2);
    let weighted = WeightedRows {
        rows: &rows,
        weights: &[3.0, 1.0, 1.0, 1.0],
    };
    let options = KMeansOptions {
        k: 2,
        batch: 4,
        epochs: 20,
        passes: 4,
        seed: 0,
    };
    for k_means in [mini_batch, two_level] {
        let found = k_means(&weighted, options, &SingleProcess).unwrap();
        let mut centres: Vec<f32> = found.centres.values().iter().copied().step_by(2).collect();
        centres.sort_by(f32::total_cmp);
        assert_eq!(centres, [1.0, 102.0]);
    }
}

/// Threads that stand for processes: sums in rank order.
#[derive(Debug)]
struct Twins<'a> {
    rank: usize,
    size: usize,
    barrier: &'a Barrier,
    table: &'a Mutex<Vec<Vec<f64>>>,
}

impl Twins<'_> {
    fn exchange(&self, mine: Vec<f64>) -> Vec<Vec<f64>> {
        self.table.lock().unwrap()[self.rank] = mine;
        self.barrier.wait();
        let all = self.table.lock().unwrap().clone();
        self.barrier.wait();
        all
    }
}

impl Collective for Twins<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_reduce(&self, buffer: Buffer<'_>) -> Result<(), CollectiveError> {
        let sum = |all: Vec<Vec<f64>>, at: usize| all.iter().map(|values| values[at]).sum::<f64>();
        match buffer {
            Buffer::F32(values) => {
                let all = self.exchange(values.iter().map(|&v| f64::from(v)).collect());
                for (at, value) in values.iter_mut().enumerate() {
                    *value = all.iter().map(|values| values[at]).sum::<f64>() as f32;
                }
            }
            Buffer::F64(values) => {
                let all = self.exchange(values.to_vec());
                for (at, value) in values.iter_mut().enumerate() {
                    *value = all.iter().map(|values| values[at]).sum();
                }
            }
            Buffer::U64(values) => {
                let all = self.exchange(values.iter().map(|&v| v as f64).collect());
                for (at, value) in values.iter_mut().enumerate() {
                    *value = sum(all.clone(), at) as u64;
                }
            }
        }
        Ok(())
    }

    fn broadcast(&self, _root: usize, _buffer: Buffer<'_>) -> Result<(), CollectiveError> {
        Ok(())
    }
}

#[test]
fn two_processes_agree_with_each_other_and_nearly_with_one() {
    let shape = topics(300, 6);
    let (documents, vectors) = material(shape);
    let options = ClusterOptions {
        map: false,
        ..with_k(6)
    };
    let barrier = Barrier::new(2);
    let table = Mutex::new(vec![Vec::new(); 2]);
    let results: Vec<LabelClusters> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..2)
            .map(|rank| {
                let (documents, options, barrier, table) = (&documents, &options, &barrier, &table);
                let vectors = vectors.clone();
                scope.spawn(move || {
                    let twins = Twins {
                        rank,
                        size: 2,
                        barrier,
                        table,
                    };
                    cluster_labels_with(documents, vectors, options, &twins, &mut |_| {}).unwrap()
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(results[0], results[1]);
    let alone = cluster_labels_with(&documents, vectors, &options, &SingleProcess, &mut |_| {}).unwrap();
    let same = normalised_mutual_information(results[0].assignment(), alone.assignment());
    assert!(same > 0.95, "{same}");
}
