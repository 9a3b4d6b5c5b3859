//! Look-ups, messages, read-outs, heads and the choice of the best.

use gnnxml_shared::model::matcher::{probabilities, top_clusters};
use half::f16;
use rand::Rng as _;

use super::{PRECISIONS, assert_close, exact_table, floats, gpu, numbers, plain, random, stored};
use crate::matcher::words_of;
use crate::narrow::{Narrow, Precision, pack_rows};
use crate::operations::{Heads, Lists, Vertices};
use crate::recording::{Recording, View};
use crate::weights::Matrix;
use crate::{GpuError, LARGEST_BINDING};

/// `rows` lists over `below`, some of them empty.
fn lists(rng: &mut rand_chacha::ChaCha8Rng, rows: usize, below: usize) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for _ in 0..rows {
        if below > 0 {
            for _ in 0..rng.random_range(0..6) {
                indices.push(rng.random_range(0..below) as u32);
            }
        }
        offsets.push(indices.len() as u32);
    }
    let weights = numbers(rng, indices.len(), 2.0);
    (offsets, indices, weights)
}

#[test]
fn looked_up_rows_add_up_as_in_the_reference() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(11);
    for (rows, base, width, vocabulary) in [
        (1, 0, 1, 1),
        (3, 2, 17, 5),
        (17, 0, 64, 100),
        (6, 33, 3, 9),
        (0, 4, 4, 3),
    ] {
        let (offsets, mut indices, weights) = lists(&mut rng, rows, vocabulary);
        // A row that is not there counts nothing.
        if let Some(first) = indices.first_mut() {
            *first = vocabulary as u32 + 7;
        }
        let table = exact_table(&mut rng, vocabulary, width);
        let bases = numbers(&mut rng, rows * base, 1.0);
        let mut expected = Vec::new();
        for row in 0..rows {
            expected.extend_from_slice(&bases[row * base..(row + 1) * base]);
            let mut sum = vec![0.0; width];
            for e in offsets[row] as usize..offsets[row + 1] as usize {
                if (indices[e] as usize) < vocabulary {
                    table.add_scaled(indices[e] as usize, weights[e], &mut sum);
                }
            }
            expected.extend(sum);
        }
        for precision in PRECISIONS {
            let (matrix, _) = stored(&gpu, &table, precision);
            let mut recording = Recording::default();
            let bases = recording.upload(&bases);
            let lists = Lists::upload(&mut recording, &offsets, &indices, &weights);
            let out = recording.gather(Some((&bases, base)), &lists, &matrix);
            let found = floats(&gpu, recording, &out, expected.len());
            let what = format!("{rows} rows of {base} + {width}, {precision:?}");
            assert_close(&found, &expected, 1e-5, &what);
        }
    }
}

#[test]
fn every_half_is_read_as_the_number_it_is() {
    let Some(gpu) = gpu() else { return };
    let halves: Vec<f16> = (0..=u16::MAX)
        .map(f16::from_bits)
        .filter(|half| half.is_finite())
        .collect();
    let columns = 31;
    let rows = halves.len() / columns;
    let narrow = Narrow {
        precision: Precision::Half,
        rows,
        columns,
        words: pack_rows(
            &halves.iter().map(|half| half.to_bits()).collect::<Vec<_>>(),
            columns,
        ),
        scales: vec![1.0; rows],
    };
    let table = Matrix::store_narrow(&gpu, "halves", &narrow).unwrap();
    let one_each: Vec<u32> = (0..=rows as u32).collect();
    let mut recording = Recording::default();
    let lists = Lists::upload(&mut recording, &one_each, &one_each[..rows], &vec![1.0; rows]);
    let out = recording.gather(None, &lists, &table);
    for (found, half) in floats(&gpu, recording, &out, rows * columns).iter().zip(halves) {
        // The smallest may be zero to a GPU.
        let zeroed = !half.is_normal() && *found == 0.0;
        assert!(*found == half.to_f32() || zeroed, "{half} was read as {found}");
    }
}

#[test]
fn the_incidence_matrix_times_sentences_sums_each_vertexs_sentences() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(12);
    for (vertices, sentences, width) in [(1, 1, 1), (5, 3, 17), (40, 25, 384), (3, 1, 65)] {
        let (offsets, indices, _) = lists(&mut rng, vertices, sentences);
        let vectors = numbers(&mut rng, sentences * width, 1.0);
        let mut expected = vec![0.0; vertices * width];
        for v in 0..vertices {
            for &s in &indices[offsets[v] as usize..offsets[v + 1] as usize] {
                for i in 0..width {
                    expected[v * width + i] += vectors[s as usize * width + i];
                }
            }
        }
        let mut recording = Recording::default();
        let table = Matrix::of_floats(recording.upload(&vectors), sentences, width);
        let lists = Lists::upload(&mut recording, &offsets, &indices, &vec![1.0; indices.len()]);
        let out = recording.gather(None, &lists, &table);
        assert_close(
            &floats(&gpu, recording, &out, vertices * width),
            &expected,
            1e-6,
            "vertex features",
        );
    }
}

#[test]
fn messages_and_read_outs_agree_with_the_equations() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(13);
    for (keywords, width) in [(0, 3), (1, 1), (3, 17), (17, 64), (40, 130)] {
        for text in [false, true] {
            for size in [1.0, 1e12, 0.0] {
                let vertices = Vertices {
                    keywords,
                    rows: keywords + usize::from(text),
                    factor: 0.25,
                };
                let own = 1.3;
                let (offsets, neighbours, weights) = lists(&mut rng, keywords, keywords);
                let p = numbers(&mut rng, vertices.rows * width, size);
                let at = |v: usize, i: usize| p[v * width + i];
                let mut messages = vec![0.0; vertices.rows * width];
                let mut sums = vec![0.0; width];
                for i in 0..width {
                    for v in 0..keywords {
                        let list = offsets[v] as usize..offsets[v + 1] as usize;
                        let from: f32 = list.map(|e| weights[e] * at(neighbours[e] as usize, i)).sum();
                        messages[v * width + i] =
                            own * at(v, i) + from + if text { at(keywords, i) } else { 0.0 };
                        sums[i] += 0.25 * at(v, i);
                    }
                    if text {
                        messages[keywords * width + i] = own * at(keywords, i) + sums[i];
                        sums[i] += at(keywords, i);
                    }
                }
                let mut recording = Recording::default();
                let p = recording.upload(&p);
                let lists = Lists::upload(&mut recording, &offsets, &neighbours, &weights);
                let m = recording.aggregate(&p, width, vertices, own, &lists);
                let out = recording.between(3 * width);
                // Two places of three; the middle one belongs to somebody else.
                recording.read_out(&p, width, vertices, &out, (0, 2 * width));
                recording.read_out(&p, width, vertices, &out, (width, width));
                recording.download(&m);
                let read = floats_of_second(&gpu, recording, &out, messages.len(), 3 * width);
                let what = format!("{keywords} keywords of {width}, text {text}, size {size}");
                assert_close(&read.0, &messages, 1e-5, &what);
                let thrice: Vec<f32> = [&sums[..], &sums, &sums].concat();
                assert_close(&read.1, &thrice, 1e-5, &what);
            }
        }
    }
}

/// The first download and `view` as a second one.
fn floats_of_second(
    gpu: &crate::Gpu,
    mut recording: Recording,
    view: &View,
    first: usize,
    second: usize,
) -> (Vec<f32>, Vec<f32>) {
    recording.download(view);
    let (answers, _) = pollster::block_on(gpu.run(recording)).unwrap();
    let read = |bytes: &[u8], count: usize| {
        words_of(bytes)
            .into_iter()
            .take(count)
            .map(f32::from_bits)
            .collect()
    };
    (read(&answers[0], first), read(&answers[1], second))
}

#[test]
fn both_heads_are_mixed_and_squashed() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(14);
    for (clusters, width) in [(1, 1), (3, 17), (65, 130), (257, 1408)] {
        for branches in [1, 2] {
            for (precision, alpha) in PRECISIONS.into_iter().zip([0.5, 0.9, 0.5]) {
                let read_outs = numbers(&mut rng, branches * width, 1.0);
                let bias = numbers(&mut rng, branches * clusters, 40.0);
                let mut scales = Vec::new();
                let mut rows: Vec<Vec<f32>> = Vec::new();
                let mut weights = Vec::new();
                for _ in 0..branches {
                    let table = exact_table(&mut rng, clusters, width);
                    let (head, head_scales) = stored(&gpu, &table, precision);
                    weights.push(head);
                    scales.extend(head_scales);
                    rows.push(plain(&table));
                }
                let z: Vec<f32> = (0..clusters)
                    .map(|k| {
                        let head = |b: usize| -> f32 {
                            let row = &rows[b][k * width..(k + 1) * width];
                            let h = &read_outs[b * width..(b + 1) * width];
                            let sum: f64 = row.iter().zip(h).map(|(w, h)| f64::from(w * h)).sum();
                            sum as f32 + bias[b * clusters + k]
                        };
                        if branches == 1 {
                            head(0)
                        } else {
                            alpha * head(0) + (1.0 - alpha) * head(1)
                        }
                    })
                    .collect();
                let mut recording = Recording::default();
                let heads = Heads {
                    weights,
                    scales: recording.upload(&scales),
                    bias: recording.upload(&bias),
                };
                let read_outs = recording.upload(&read_outs);
                let (logits, squashed) = recording.classify(&read_outs, &heads, alpha);
                recording.download(&logits);
                let read = floats_of_second(&gpu, recording, &squashed, clusters, clusters);
                let what = format!("{clusters} clusters over {width}, {branches} branches, {precision:?}");
                assert_close(&read.0, &z, 1e-5, &what);
                assert_close(&read.1, &probabilities(&z), 1e-4, &what);
            }
        }
    }
}

#[test]
fn the_best_are_chosen_in_the_references_order() {
    let Some(gpu) = gpu() else { return };
    let mut rng = random(15);
    for (length, count) in [(1, 1), (3, 5), (17, 17), (64, 10), (1000, 64), (100_000, 5)] {
        for kind in 0..3 {
            let values: Vec<f32> = match kind {
                0 => numbers(&mut rng, length, 30.0),
                // Mostly ties, with both zeros.
                1 => (0..length)
                    .map(|_| [0.0, -0.0, 1.0, -1.0][rng.random_range(0..4)])
                    .collect(),
                _ => (0..length)
                    .map(|_| {
                        [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::NAN, 1e-40][rng.random_range(0..5)]
                    })
                    .collect(),
            };
            let expected: Vec<u32> = top_clusters(&values, count.min(length))
                .into_iter()
                .map(|(k, _)| k)
                .collect();
            let mut recording = Recording::default();
            let view = recording.upload(&values);
            let best = recording.top_k(&view, length, count);
            recording.download(&best);
            let (answers, _) = pollster::block_on(gpu.run(recording)).unwrap();
            let words = words_of(&answers[0]);
            let found: Vec<u32> = words.chunks_exact(2).take(count).map(|pair| pair[0]).collect();
            assert_eq!(
                &found[..expected.len()],
                &expected[..],
                "{count} of {length}, kind {kind}"
            );
            assert!(found[expected.len()..].iter().all(|&place| place == u32::MAX));
            for (pair, &place) in words.chunks_exact(2).zip(&expected) {
                assert_eq!(
                    pair[1],
                    values[place as usize].to_bits(),
                    "the number comes along"
                );
            }
        }
    }
}

#[test]
fn what_does_not_fit_a_binding_is_refused_before_it_is_allocated() {
    let Some(gpu) = gpu() else { return };
    let mut recording = Recording::default();
    let room = recording.between((LARGEST_BINDING / 4 + 1) as usize);
    recording.download(&room);
    let refused = pollster::block_on(gpu.run(recording)).unwrap_err();
    assert!(matches!(refused, GpuError::TooLarge { .. }), "{refused}");
}
