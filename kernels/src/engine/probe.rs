//! A little of a model's work on both processors: do they agree, and which is quicker?

use gnnxml_shared::model::encoder::bert::{Bert, BertScratch};
use gnnxml_shared::model::matcher::{GraphInput, Matcher, MatcherConfig};
use gnnxml_shared::model::ops::rows::add_rows;

use super::OnGpu;
use super::choice::Work;
use crate::GpuError;

/// Milliseconds that a processor is timed for at least.
const PROBE_MILLISECONDS: f64 = 3.0;
/// Runs that are timed at most.
const PROBE_RUNS: u32 = 16;
/// How far logits of the two may lie apart, relative to the largest, before the GPU is not believed. Trained weights lie
/// there in halves, which moves logits by up to half a thousandth.
const BELIEVED: f32 = 2e-3;
/// How alike sentence vectors of the two must be.
const LIKE: f32 = 0.999;

/// A piece of every network's work, to compare and to time.
pub(super) struct Probe<'m> {
    matcher: Option<(&'m Matcher, GraphInput<'static>)>,
    /// With the tokens of a few sentences and their lengths.
    encoder: Option<(&'m Bert, Vec<u32>, Vec<usize>)>,
}

impl<'m> Probe<'m> {
    pub(super) fn new(work: Work<'m>) -> Self {
        Self {
            matcher: work
                .matcher
                .map(|matcher| (matcher, probe_graph(matcher.config()))),
            encoder: work.encoder.map(|encoder| {
                let length = encoder.shape().positions.clamp(1, 16);
                let vocabulary = encoder.shape().vocabulary.max(1);
                let ids = (0..4 * length).map(|place| (place * 7919 % vocabulary) as u32);
                (encoder, ids.collect(), vec![length; 4])
            }),
        }
    }

    /// Whether the GPU's numbers are the CPU's.
    pub(super) async fn agree(&self, on_gpu: &OnGpu) -> Result<(), GpuError> {
        if let (Some((matcher, graph)), Some(on_gpu)) = (&self.matcher, &on_gpu.matcher) {
            let expected = matcher.forward(graph)?;
            agree(&on_gpu.forward(graph, 0).await?.logits, &expected)?;
        }
        if let (Some((encoder, ids, lengths)), Some(on_gpu)) = (&self.encoder, &on_gpu.encoder) {
            let width = encoder.shape().width;
            let mut scratch = BertScratch::default();
            let mut hidden = encoder.forward(ids, lengths, &mut scratch);
            let found = on_gpu.forward(ids, lengths).await?.sums;
            for (sum, &length) in found.chunks_exact(width).zip(lengths) {
                let (sentence, rest) = hidden.split_at(length * width);
                hidden = rest;
                let mut expected = vec![0.0; width];
                add_rows(sentence, &mut expected);
                let cosine = cosine(sum, &expected);
                if cosine.is_nan() || cosine < LIKE {
                    return Err(GpuError::Disagrees {
                        found: format!("a sentence vector at cosine {cosine}"),
                        expected: "its own".into(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Milliseconds on the CPU and on the GPU.
    pub(super) async fn time(
        &self,
        on_gpu: &OnGpu,
        clock: &impl Fn() -> f64,
    ) -> Result<(f64, f64), GpuError> {
        let going =
            |begun: f64, runs: u32| runs == 0 || (clock() - begun < PROBE_MILLISECONDS && runs < PROBE_RUNS);
        let mut scratch = BertScratch::default();
        let (begun, mut runs) = (clock(), 0);
        while going(begun, runs) {
            if let Some((matcher, graph)) = &self.matcher {
                matcher.forward(graph)?;
            }
            if let Some((encoder, ids, lengths)) = &self.encoder {
                encoder.forward(ids, lengths, &mut scratch);
            }
            runs += 1;
        }
        let cpu = (clock() - begun) / f64::from(runs);
        let (begun, mut runs) = (clock(), 0);
        while going(begun, runs) {
            if let (Some((_, graph)), Some(on_gpu)) = (&self.matcher, &on_gpu.matcher) {
                on_gpu.forward(graph, 0).await?;
            }
            if let (Some((_, ids, lengths)), Some(on_gpu)) = (&self.encoder, &on_gpu.encoder) {
                on_gpu.forward(ids, lengths).await?;
            }
            runs += 1;
        }
        Ok((cpu, (clock() - begun) / f64::from(runs)))
    }
}

pub(super) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f32::MIN_POSITIVE)
}

/// A text as large as the network takes: keywords in a ring, a word each.
fn probe_graph(config: &MatcherConfig) -> GraphInput<'static> {
    let n = config.max_vertices.clamp(3, 64);
    let wave = |i: usize| ((i * 37 % 101) as f32 / 101.0 - 0.5) * 0.2;
    let neighbours = (0..n).flat_map(|v| {
        let (before, after) = ((v + n - 1) % n, (v + 1) % n);
        [before.min(after) as u32, before.max(after) as u32]
    });
    let words: Vec<u32> = (0..config.vocabulary.min(n)).map(|w| w as u32).collect();
    let keywords: Vec<u32> = (0..n)
        .filter(|_| !words.is_empty())
        .map(|v| words[v % words.len()])
        .collect();
    let keyword_step = u32::from(!words.is_empty());
    GraphInput {
        vertices: n,
        features: (0..(n + 1) * config.width).map(wave).collect::<Vec<_>>().into(),
        offsets: (0..=n as u32).map(|v| 2 * v).collect::<Vec<_>>().into(),
        neighbours: neighbours.collect::<Vec<_>>().into(),
        shared: vec![1.0; 2 * n].into(),
        keyword_offsets: (0..=n as u32)
            .map(|v| v * keyword_step)
            .collect::<Vec<_>>()
            .into(),
        keywords: keywords.into(),
        word_weights: words.iter().map(|&w| wave(w as usize)).collect::<Vec<_>>().into(),
        words: words.into(),
        origin: (0..n as u32).collect::<Vec<_>>().into(),
    }
}

pub(super) fn agree(found: &[f32], expected: &[f32]) -> Result<(), GpuError> {
    let size = expected.iter().fold(1.0_f32, |most, z| most.max(z.abs()));
    let apart = found.iter().zip(expected).find(|(f, e)| {
        let distance = (*f - *e).abs();
        distance.is_nan() || distance > BELIEVED * size
    });
    match apart {
        None if found.len() == expected.len() => Ok(()),
        None => Err(GpuError::Disagrees {
            found: format!("{} logits", found.len()),
            expected: format!("{}", expected.len()),
        }),
        Some((found, expected)) => Err(GpuError::Disagrees {
            found: found.to_string(),
            expected: expected.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_graph_fits_every_shape() {
        for config in [
            MatcherConfig::new(4, 3),
            MatcherConfig::fast(7, 5, 2),
            MatcherConfig::full(16, 9, 1000),
        ] {
            probe_graph(&config).check(&config).unwrap();
        }
    }

    #[test]
    fn numbers_that_differ_are_not_believed() {
        assert!(agree(&[1.0, 2.0], &[1.0, 2.0005]).is_ok());
        assert!(agree(&[1.0, 2.1], &[1.0, 2.0]).is_err());
        assert!(agree(&[f32::NAN], &[0.0]).is_err());
        assert!(agree(&[1.0], &[1.0, 2.0]).is_err());
    }
}
