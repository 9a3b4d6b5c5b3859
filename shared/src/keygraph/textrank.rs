//! TextRank (Mihalcea and Tarau, 2004): PageRank over the words of one text.

/// Words that stand near each other, as an undirected weighted graph in CSR form.
#[derive(Debug, Default)]
pub(super) struct CoOccurrence {
    offsets: Vec<usize>,
    /// (neighbour, how often the two stood within the window).
    neighbours: Vec<(u32, u32)>,
}

impl CoOccurrence {
    /// The graph over `nodes` words of runs of text (sentences, as word numbers): two words are
    /// neighbours when at most `window − 1` content words apart in one run.
    ///
    /// The paper is silent on weights here; the original links unweighted. Counting how often two words
    /// meet keeps a long text from becoming one clique.
    pub(super) fn new<'a>(nodes: usize, runs: impl Iterator<Item = &'a [u32]>, window: usize) -> Self {
        let mut pairs: Vec<u64> = Vec::new();
        for run in runs {
            for (i, a) in run.iter().enumerate() {
                for b in run[i + 1..].iter().take(window.saturating_sub(1)) {
                    if a != b {
                        pairs.push(u64::from(*a.min(b)) << 32 | u64::from(*a.max(b)));
                    }
                }
            }
        }
        pairs.sort_unstable();
        let mut weighted: Vec<(u32, u32, u32)> = Vec::new();
        for pair in pairs {
            let (a, b) = ((pair >> 32) as u32, pair as u32);
            match weighted.last_mut() {
                Some(last) if last.0 == a && last.1 == b => last.2 += 1,
                _ => weighted.push((a, b, 1)),
            }
        }
        let mut offsets = vec![0usize; nodes + 1];
        for (a, b, _) in &weighted {
            offsets[*a as usize + 1] += 1;
            offsets[*b as usize + 1] += 1;
        }
        for i in 0..nodes {
            offsets[i + 1] += offsets[i];
        }
        let mut filled = offsets.clone();
        let mut neighbours = vec![(0, 0); offsets[nodes]];
        for (a, b, weight) in weighted {
            for (from, to) in [(a, b), (b, a)] {
                neighbours[filled[from as usize]] = (to, weight);
                filled[from as usize] += 1;
            }
        }
        Self { offsets, neighbours }
    }

    fn of(&self, node: usize) -> &[(u32, u32)] {
        &self.neighbours[self.offsets[node]..self.offsets[node + 1]]
    }

    /// S(i) = (1 − d) + d · Σ_j w_ij / (Σ_k w_jk) · S(j), from S = 1 until no score moves by `tolerance`,
    /// at most `MAX_ITERATIONS` times. A word without neighbours keeps 1 − d.
    pub(super) fn rank(&self, damping: f64, tolerance: f64) -> Vec<f64> {
        const MAX_ITERATIONS: usize = 100;
        let nodes = self.offsets.len() - 1;
        let strength: Vec<f64> = (0..nodes)
            .map(|i| self.of(i).iter().map(|(_, weight)| f64::from(*weight)).sum())
            .collect();
        let mut scores = vec![1.0; nodes];
        // What each word sends along one unit of weight.
        let mut sent = vec![0.0; nodes];
        for _ in 0..MAX_ITERATIONS {
            for i in 0..nodes {
                sent[i] = if strength[i] > 0.0 {
                    scores[i] / strength[i]
                } else {
                    0.0
                };
            }
            let mut moved: f64 = 0.0;
            for i in 0..nodes {
                let received: f64 = self
                    .of(i)
                    .iter()
                    .map(|(j, weight)| f64::from(*weight) * sent[*j as usize])
                    .sum();
                let score = (1.0 - damping) + damping * received;
                moved = moved.max((score - scores[i]).abs());
                scores[i] = score;
            }
            if moved < tolerance {
                break;
            }
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_limits_the_neighbourhood() {
        let run = [0u32, 1, 2, 3];
        let graph = CoOccurrence::new(4, std::iter::once(&run[..]), 2);
        assert_eq!(graph.of(1), [(0, 1), (2, 1)]);
        let graph = CoOccurrence::new(4, std::iter::once(&run[..]), 3);
        assert_eq!(graph.of(0), [(1, 1), (2, 1)]);
    }

    #[test]
    fn ranks_solve_the_equation() {
        let runs: [&[u32]; 3] = [&[0, 1, 2, 1], &[2, 3], &[4]];
        let graph = CoOccurrence::new(5, runs.into_iter(), 2);
        let scores = graph.rank(0.85, 1e-10);
        for i in 0..5 {
            let mut right = 0.15;
            for (j, weight) in graph.of(i) {
                let out: u32 = graph.of(*j as usize).iter().map(|(_, w)| w).sum();
                right += 0.85 * f64::from(*weight) / f64::from(out) * scores[*j as usize];
            }
            assert!(
                (scores[i] - right).abs() < 1e-8,
                "{i}: {} against {right}",
                scores[i]
            );
        }
        assert!((scores[4] - 0.15).abs() < 1e-12);
    }

    #[test]
    fn the_hub_of_a_star_ranks_highest() {
        let runs: Vec<[u32; 2]> = (1..6).map(|leaf| [0, leaf]).collect();
        let graph = CoOccurrence::new(6, runs.iter().map(|run| &run[..]), 2);
        let scores = graph.rank(0.85, 1e-4);
        assert!(scores[1..].iter().all(|leaf| *leaf < scores[0]));
    }
}
