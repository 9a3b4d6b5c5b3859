use super::*;
use crate::features::SparseVector;
use crate::keygraph::{KeyGraph, Sentence, Vertex, VertexKind};

fn vertex(id: usize, kind: VertexKind, rank: f32, sentences: &[usize]) -> Vertex {
    Vertex {
        id,
        text: if kind == VertexKind::Empty {
            String::new()
        } else {
            format!("word{id}")
        },
        kind,
        rank,
        sentences: sentences.to_vec(),
        spans: match kind {
            VertexKind::Empty => Vec::new(),
            _ => sentences.iter().map(|s| [s * 10, s * 10 + 5]).collect(),
        },
    }
}

fn keygraph() -> KeyGraph {
    let sentences = (0..4).map(|s| Sentence::new(s * 10, s * 10 + 9)).collect();
    let vertices = vec![
        vertex(0, VertexKind::Keyword, 0.5, &[0, 1]),
        vertex(1, VertexKind::Entity, 0.9, &[1]),
        vertex(2, VertexKind::Keyword, 0.1, &[1, 2]),
        vertex(3, VertexKind::Empty, 0.0, &[3]),
    ];
    KeyGraph::new(sentences, vertices).unwrap()
}

fn config() -> MatcherConfig {
    MatcherConfig {
        hidden: 5,
        layers: 2,
        unit_features: false,
        embedding: 4,
        vocabulary: 7,
        ..MatcherConfig::new(3, 6)
    }
}

fn vectors() -> Vec<f32> {
    (0..12).map(|i| i as f32 * 0.1).collect()
}

fn words() -> SparseVector {
    SparseVector {
        indices: vec![1, 4, 900],
        values: vec![0.6, 0.8, 1.0],
    }
}

fn graph(config: &MatcherConfig) -> GraphInput<'static> {
    let lookup = |text: &str, rows: &mut Vec<u32>| rows.push(text[4..].parse().unwrap());
    GraphInput::from_keygraph(&keygraph(), &vectors(), config, &words(), lookup).unwrap()
}

/// Weights from a small linear congruence: the same everywhere, no two alike.
fn matcher(config: &MatcherConfig) -> Matcher {
    let mut state = 12345u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let tensors = config.tensors();
    let tensors = tensors.into_iter().map(|s| NamedTensor {
        data: (0..s.len()).map(|_| next()).collect(),
        name: s.name,
        shape: s.shape,
    });
    Matcher::new(config.clone(), tensors.collect()).unwrap()
}

#[test]
fn a_vertex_holds_the_sum_of_its_sentences_and_the_text_vertex_that_of_all() {
    let input = graph(&config());
    assert_eq!(input.vertices, 4);
    let close = |row: usize, expected: [f32; 3]| {
        for (a, b) in input.features[row * 3..row * 3 + 3].iter().zip(expected) {
            assert!((a - b).abs() < 1e-6, "row {row}: {a} {b}");
        }
    };
    close(0, [0.3, 0.5, 0.7]);
    close(1, [0.3, 0.4, 0.5]);
    close(3, [0.9, 1.0, 1.1]);
    close(4, [1.8, 2.2, 2.6]);
    assert_eq!(
        &input.words[..],
        &[1, 4],
        "a word outside the vocabulary is left out"
    );
}

#[test]
fn sentences_of_vertices_beyond_the_limit_move_to_the_empty_vertex() {
    let input = graph(&MatcherConfig {
        max_vertices: 2,
        ..config()
    });
    assert_eq!(
        &input.origin[..],
        &[1, 3],
        "the best keyword and the empty vertex stay"
    );
    let left_over: f32 = input.features[3];
    assert!(
        (left_over - (0.0 + 0.6 + 0.9)).abs() < 1e-6,
        "sentences 0, 2 and 3, found {left_over}"
    );
}

#[test]
fn one_vertex_at_most_is_the_left_over_vertex_alone() {
    let input = graph(&MatcherConfig {
        max_vertices: 1,
        ..config()
    });
    assert_eq!(input.vertices, 1);
    assert_eq!(&input.origin[..], &[3]);
}

#[test]
fn edges_stand_in_both_lists_with_normalised_weights_summing_to_one() {
    let input = graph(&config());
    assert_eq!(&input.offsets[..], &[0, 2, 4, 6, 6]);
    assert_eq!(&input.neighbours[..], &[1, 2, 0, 2, 0, 1]);
    assert!(
        input
            .message_weights(EdgeWeights::Normalised)
            .iter()
            .all(|&w| w == 0.5)
    );
}

/// The equations of [`MatcherConfig`] written out once more, vertex by vertex, in f64 and without any trick.
fn by_the_book(matcher: &Matcher, g: &GraphInput<'_>) -> Vec<f64> {
    let c = matcher.config();
    let tensors = matcher.tensors();
    let w = |name: String| -> Vec<f64> {
        tensors
            .iter()
            .find(|t| t.name == name)
            .unwrap()
            .data
            .iter()
            .map(|&x| f64::from(x))
            .collect()
    };
    let (n, d, e) = (g.vertices, c.width, c.embedding_width());
    let rows = c.rows(n);
    let factor = f64::from(c.readout_factor(n));
    let table = if e > 0 { w("embedding".into()) } else { vec![] };
    let mut x = vec![vec![0.0; d + e]; rows];
    for v in 0..rows {
        for i in 0..d {
            x[v][i] = f64::from(g.features[v * d + i]);
        }
        for i in 0..e {
            if v == n {
                for (t, s) in g.words.iter().zip(g.word_weights.iter()) {
                    x[v][d + i] += f64::from(*s) * table[*t as usize * e + i];
                }
            } else {
                let kw = &g.keywords[g.keyword_offsets[v] as usize..g.keyword_offsets[v + 1] as usize];
                for t in kw {
                    x[v][d + i] += table[*t as usize * e + i] / kw.len() as f64;
                }
            }
        }
    }
    let a = g.message_weights(c.edge_weights);
    let norm_relu = |x: &[f64], gain: &[f64], shift: &[f64]| -> Vec<f64> {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let var = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64;
        x.iter()
            .enumerate()
            .map(|(i, v)| ((v - mean) / (var + f64::from(NORM_EPSILON)).sqrt() * gain[i] + shift[i]).max(0.0))
            .collect()
    };
    let times = |m: &[f64], x: &[f64]| -> Vec<f64> {
        m.chunks(x.len())
            .map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum())
            .collect()
    };
    let mut z = vec![0.0; c.clusters];
    for b in 0..c.branches() {
        let mut layers = vec![x.clone()];
        for k in 1..=c.depth() {
            let p = c.layer_prefix(b, k);
            let h = layers.last().unwrap();
            let eps = w(format!("{p}.epsilon"))[0];
            let next = (0..rows)
                .map(|v| {
                    let mut m: Vec<f64> = h[v].iter().map(|q| q * (1.0 + eps)).collect();
                    let mut add = |u: usize, s: f64| m.iter_mut().zip(&h[u]).for_each(|(m, q)| *m += s * q);
                    if v == n {
                        (0..n).for_each(|u| add(u, factor));
                    } else {
                        for i in g.offsets[v] as usize..g.offsets[v + 1] as usize {
                            add(g.neighbours[i] as usize, f64::from(a[i]));
                        }
                        if c.text_vertex {
                            add(n, 1.0);
                        }
                    }
                    let m = norm_relu(
                        &times(&w(format!("{p}.w1")), &m),
                        &w(format!("{p}.gain1")),
                        &w(format!("{p}.shift1")),
                    );
                    norm_relu(
                        &times(&w(format!("{p}.w2")), &m),
                        &w(format!("{p}.gain2")),
                        &w(format!("{p}.shift2")),
                    )
                })
                .collect();
            layers.push(next);
        }
        let from = if c.reads_all_layers() { 0 } else { c.depth() };
        let mut read: Vec<f64> = Vec::new();
        for h in &layers[from..] {
            for i in 0..h.first().map_or(0, Vec::len) {
                read.push(
                    (0..rows)
                        .map(|v| h[v][i] * if v == n { 1.0 } else { factor })
                        .sum(),
                );
            }
        }
        let name = c.branch_names()[b];
        let head = times(&w(format!("{name}.head.w")), &read);
        let bias = w(format!("{name}.head.b"));
        for k in 0..c.clusters {
            z[k] += (head[k] + bias[k]) / c.branches() as f64;
        }
    }
    z
}

fn every_switch() -> Vec<MatcherConfig> {
    let mut all = vec![];
    for variant in [Variant::V1, Variant::V2, Variant::V3, Variant::V4] {
        for shared_lower in [true, false] {
            all.push(MatcherConfig {
                variant,
                shared_lower,
                ..config()
            });
        }
        all.push(MatcherConfig {
            variant,
            embedding: 0,
            vocabulary: 0,
            ..config()
        });
        all.push(MatcherConfig {
            variant,
            edge_weights: EdgeWeights::Shared,
            readout: ReadoutNorm::Sum,
            ..config()
        });
        all.push(MatcherConfig {
            variant,
            edge_weights: EdgeWeights::Off,
            readout: ReadoutNorm::Root,
            text_vertex: false,
            ..config()
        });
    }
    all
}

#[test]
fn forward_is_the_equations_for_every_switch() {
    for config in every_switch() {
        let matcher = matcher(&config);
        let input = graph(&config);
        let z = matcher.forward(&input).unwrap();
        for (a, b) in z.iter().zip(by_the_book(&matcher, &input)) {
            assert!((f64::from(*a) - b).abs() < 1e-5, "{a} {b} {config:?}");
        }
    }
}

#[test]
fn leaving_a_vertex_out_is_the_forward_pass_of_the_smaller_graph() {
    for config in every_switch() {
        let matcher = matcher(&config);
        let input = graph(&config);
        let each = matcher.forward_without_each(&input).unwrap();
        for v in 0..input.vertices {
            let small = matcher.forward(&input.without(v)).unwrap();
            assert_eq!(small, matcher.forward_without(&input, v).unwrap());
            assert_eq!(small, each[v]);
        }
    }
    let config = config();
    assert!(matcher(&config).forward_without(&graph(&config), 4).is_err());
}

#[test]
fn weights_survive_a_round_trip_through_their_names() {
    for config in every_switch() {
        let first = matcher(&config);
        let mut tensors = first.tensors();
        tensors.reverse();
        let second = Matcher::new(config.clone(), tensors).unwrap();
        assert_eq!(first.tensors(), second.tensors());
    }
}

#[test]
fn a_missing_a_misshapen_and_an_unknown_weight_are_named() {
    let config = config();
    let good = matcher(&config).tensors();
    let mut less = good.clone();
    less.pop();
    assert!(
        matches!(Matcher::new(config.clone(), less), Err(MatcherError::MissingTensor { name, .. }) if name == "rebalance.head.b")
    );
    let mut other = good.clone();
    other[0].shape = vec![7, 5];
    assert!(
        matches!(Matcher::new(config.clone(), other), Err(MatcherError::TensorShape { name, .. }) if name == "embedding")
    );
    let mut more = good;
    more.push(NamedTensor::zeros("extra", vec![1]));
    assert!(
        matches!(Matcher::new(config, more), Err(MatcherError::UnknownTensor { name }) if name == "extra")
    );
}

#[test]
fn an_empty_text_one_vertex_and_one_cluster_are_scored() {
    for config in every_switch() {
        let config = MatcherConfig {
            clusters: 1,
            ..config
        };
        let matcher = matcher(&config);
        assert!(matcher.forward(&GraphInput::empty(3)).unwrap()[0].is_finite());
        let one = graph(&MatcherConfig {
            max_vertices: 1,
            ..config
        });
        assert!(matcher.forward(&one).unwrap()[0].is_finite());
        assert!(matcher.forward_without(&one, 0).unwrap()[0].is_finite());
    }
}

#[test]
fn a_graph_with_a_wrong_index_is_refused_not_read() {
    let config = config();
    let matcher = matcher(&config);
    let mut bad = graph(&config);
    bad.neighbours.to_mut()[0] = 99;
    assert!(matches!(
        matcher.forward(&bad),
        Err(MatcherError::Graph { found: 99, .. })
    ));
    let mut bad = graph(&config);
    bad.words.to_mut()[0] = 7;
    assert!(matches!(
        matcher.forward(&bad),
        Err(MatcherError::Graph { found: 7, .. })
    ));
    let mut bad = graph(&config);
    bad.offsets.to_mut()[1] = 5;
    bad.offsets.to_mut()[2] = 4;
    assert!(matcher.forward(&bad).is_err());
}

#[test]
fn the_top_clusters_come_best_first_with_ties_by_number() {
    let top = top_clusters(&[0.0, 2.0, -1.0, 2.0], 3);
    assert_eq!(top.iter().map(|t| t.0).collect::<Vec<_>>(), [1, 3, 0]);
    assert!((top[2].1 - 0.5).abs() < 1e-7);
    assert_eq!(top_clusters(&[1.0], 10).len(), 1);
}

#[test]
fn matmul_agrees_with_the_definition_at_odd_sizes() {
    for (rows, inputs, outputs) in [(1, 1, 1), (5, 7, 19), (9, 33, 40), (4, 16, 16)] {
        let x: Vec<f32> = (0..rows * inputs).map(|i| (i % 13) as f32 - 6.0).collect();
        let w: Vec<f32> = (0..inputs * outputs).map(|i| (i % 7) as f32 - 3.0).collect();
        let mut out = vec![0.0; rows * outputs];
        matmul(&x, rows, inputs, &w, outputs, &mut out);
        for r in 0..rows {
            for o in 0..outputs {
                let expected: f32 = (0..inputs).map(|i| x[r * inputs + i] * w[i * outputs + o]).sum();
                assert_eq!(out[r * outputs + o], expected);
            }
        }
    }
}

#[test]
fn a_shape_beyond_what_a_machine_lays_out_is_refused_at_once() {
    let config = || MatcherConfig::fast(4, 3, 10);
    config().validate().unwrap();
    type Change = fn(&mut MatcherConfig, usize);
    let changes: [(&str, Change, usize); 7] = [
        ("width", |config, value| config.width = value, 8192),
        ("hidden", |config, value| config.hidden = value, 8192),
        ("embedding", |config, value| config.embedding = value, 8192),
        ("layers", |config, value| config.layers = value, 64),
        ("clusters", |config, value| config.clusters = value, 1 << 24),
        ("vocabulary", |config, value| config.vocabulary = value, 1 << 24),
        (
            "max_vertices",
            |config, value| config.max_vertices = value,
            crate::keygraph::MAX_VERTICES,
        ),
    ];
    for (setting, change, most) in changes {
        for (value, fits) in [
            (0, false),
            (1, true),
            (most, true),
            (most + 1, false),
            (usize::MAX, false),
        ] {
            let mut config = config();
            change(&mut config, value);
            assert_eq!(config.validate().is_ok(), fits, "{setting} = {value}");
        }
    }
}
