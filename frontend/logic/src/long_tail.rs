//! The long tail of a vocabulary: how often each label occurs, by rank, on two logarithmic axes.

/// One point: the label at `rank` (from 1) occurs in `count` documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailPoint {
    pub rank: u32,
    pub count: u32,
}

/// At most about `most` points, evenly spaced on a logarithmic rank axis, first and last always among them.
///
/// Labels without a document have no place on a logarithmic axis and are left out.
pub fn rank_frequency(counts: &[u32], most: usize) -> Vec<TailPoint> {
    let mut sorted: Vec<u32> = counts.iter().copied().filter(|&count| count > 0).collect();
    sorted.sort_unstable_by(|one, other| other.cmp(one));
    let Some(last) = sorted.len().checked_sub(1) else {
        return Vec::new();
    };
    let steps = most.max(2) - 1;
    let mut points: Vec<TailPoint> = Vec::new();
    for step in 0..=steps {
        let rank = ((last + 1) as f64).powf(step as f64 / steps as f64).round() as usize;
        let rank = rank.clamp(1, last + 1);
        if points.last().is_none_or(|point| point.rank < rank as u32) {
            points.push(TailPoint {
                rank: rank as u32,
                count: sorted[rank - 1],
            });
        }
    }
    points
}

/// Share of labels with fewer than `documents` training documents, 0 to 1.
pub fn share_below(counts: &[u32], documents: u32) -> f32 {
    if counts.is_empty() {
        return 0.0;
    }
    counts.iter().filter(|&&count| count < documents).count() as f32 / counts.len() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_falls_from_the_most_frequent_label_to_the_rarest() {
        let counts: Vec<u32> = (1..=5000).map(|rank| 5000 / rank).collect();
        let points = rank_frequency(&counts, 60);
        assert_eq!(points[0], TailPoint { rank: 1, count: 5000 });
        assert_eq!(points.last().unwrap().rank, 5000);
        assert!(points.len() <= 60);
        assert!(
            points
                .windows(2)
                .all(|pair| pair[0].rank < pair[1].rank && pair[0].count >= pair[1].count)
        );
    }

    #[test]
    fn no_labels_make_no_curve() {
        assert!(rank_frequency(&[], 10).is_empty());
        assert!(rank_frequency(&[0, 0], 10).is_empty());
        assert_eq!(share_below(&[], 5), 0.0);
    }

    #[test]
    fn the_tail_share_counts_rare_labels() {
        assert_eq!(share_below(&[1, 2, 30, 40], 5), 0.5);
    }
}
