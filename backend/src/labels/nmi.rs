//! Normalised mutual information: how much of a known grouping a partition tells.

use std::collections::BTreeMap;

/// 2·I(A;B)/(H(A) + H(B)) of two labellings of the same things: 1 for the same grouping, 0 for independent
/// ones. Two groupings of one group each count as the same.
///
/// ```
/// use gnnxml_backend::labels::normalised_mutual_information;
/// assert_eq!(normalised_mutual_information(&[0, 0, 1, 1], &[5, 5, 9, 9]), 1.0);
/// assert!(normalised_mutual_information(&[0, 0, 1, 1], &[5, 9, 5, 9]).abs() < 1e-12);
/// ```
pub fn normalised_mutual_information(a: &[u32], b: &[u32]) -> f64 {
    assert_eq!(a.len(), b.len(), "both groupings must be of the same things");
    let n = a.len() as f64;
    let mut pairs: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let (mut of_a, mut of_b): (BTreeMap<u32, f64>, BTreeMap<u32, f64>) = Default::default();
    for (&a, &b) in a.iter().zip(b) {
        *pairs.entry((a, b)).or_default() += 1.0;
        *of_a.entry(a).or_default() += 1.0;
        *of_b.entry(b).or_default() += 1.0;
    }
    let entropy = |counts: &BTreeMap<u32, f64>| -> f64 {
        counts
            .values()
            .map(|&count| -(count / n) * (count / n).ln())
            .sum()
    };
    let (in_a, in_b) = (entropy(&of_a), entropy(&of_b));
    if in_a + in_b == 0.0 {
        return 1.0;
    }
    let mutual: f64 = pairs
        .iter()
        .map(|(&(a, b), &count)| (count / n) * (count * n / (of_a[&a] * of_b[&b])).ln())
        .sum();
    2.0 * mutual / (in_a + in_b)
}
