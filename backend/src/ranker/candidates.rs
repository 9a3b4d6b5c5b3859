//! Which documents a cluster's rankers learn from.
//!
//! The documents whose true clusters hold the label's cluster (teacher forcing) and those the matcher would send there by
//! mistake (matcher-aware negatives): at prediction time a ranker sees both kinds, so it must have learned from both.

/// For each of `clusters` clusters the documents that take part, ascending.
///
/// `truth` and `predicted` give each document's clusters, in any order, with repetitions allowed.
pub fn documents_of_clusters<'a>(
    clusters: usize,
    truth: impl IntoIterator<Item = &'a [u32]>,
    predicted: impl IntoIterator<Item = &'a [u32]>,
) -> Vec<Vec<u32>> {
    let mut documents: Vec<Vec<u32>> = vec![Vec::new(); clusters];
    for (document, (truth, predicted)) in truth.into_iter().zip(predicted).enumerate() {
        for &cluster in truth.iter().chain(predicted) {
            let seen = &mut documents[cluster as usize];
            if seen.last() != Some(&(document as u32)) {
                seen.push(document as u32);
            }
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_takes_part_once_in_each_true_or_predicted_cluster() {
        let truth: [&[u32]; 3] = [&[0, 0], &[1], &[]];
        let predicted: [&[u32]; 3] = [&[2, 0], &[1, 0], &[2]];
        let found = documents_of_clusters(3, truth, predicted);
        assert_eq!(found, [vec![0, 1], vec![1], vec![0, 2]]);
    }
}
