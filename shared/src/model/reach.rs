//! How far a text reaches when the rankers it asks for have to be fetched.
//!
//! A published model's rankers lie in shards of known size. A text asks its clusters from the most probable on, and passes
//! over one whose shard would take it beyond the limit. Which ones depends on the text and the bundle alone, never on what was
//! fetched before: the page at its first text, the page at its hundredth and the server answer alike.

/// Where the rankers of each cluster lie, and how much of them a text may ask for.
///
/// The default is a model whose rankers are all at hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The shard of each cluster.
    shard_of: Vec<Option<usize>>,
    /// The size of each shard.
    bytes: Vec<u64>,
    /// Bytes a text asks for at most, but for its most probable cluster's.
    limit: Option<u64>,
}

impl Reach {
    /// `shards` are the clusters and the size of each shard.
    pub fn new<'a>(
        clusters: usize,
        shards: impl IntoIterator<Item = (&'a [u32], u64)>,
        limit: Option<u64>,
    ) -> Self {
        let mut reach = Self {
            shard_of: vec![None; clusters],
            bytes: Vec::new(),
            limit,
        };
        for (held, bytes) in shards {
            for &cluster in held {
                reach.shard_of[cluster as usize] = Some(reach.bytes.len());
            }
            reach.bytes.push(bytes);
        }
        reach
    }

    /// The shard that holds a cluster's rankers.
    pub fn shard_of(&self, cluster: u32) -> Option<usize> {
        *self.shard_of.get(cluster as usize)?
    }

    /// Size of the shards that hold rankers of these clusters.
    pub fn bytes_of(&self, clusters: impl IntoIterator<Item = u32>) -> u64 {
        let mut shards: Vec<usize> = clusters.into_iter().filter_map(|c| self.shard_of(c)).collect();
        shards.sort_unstable();
        shards.dedup();
        shards.iter().map(|&shard| self.bytes[shard]).sum()
    }

    /// Of `asked`, most probable first, the clusters within reach.
    pub fn within(&self, mut asked: Vec<u32>) -> Vec<u32> {
        let Some(limit) = self.limit else { return asked };
        let (mut taken, mut sum) = (Vec::new(), 0u64);
        asked.retain(|&cluster| {
            let Some(shard) = self.shard_of(cluster).filter(|shard| !taken.contains(shard)) else {
                return true;
            };
            let fits = taken.is_empty() || sum.saturating_add(self.bytes[shard]) <= limit;
            if fits {
                taken.push(shard);
                sum = sum.saturating_add(self.bytes[shard]);
            }
            fits
        });
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clusters 0 and 1 share 40 bytes, 2 has 50, 3 has 30; nothing is published of 4.
    fn reach(limit: Option<u64>) -> Reach {
        let shards: [(&[u32], u64); 3] = [(&[0, 1], 40), (&[2], 50), (&[3], 30)];
        Reach::new(5, shards, limit)
    }

    #[test]
    fn a_cluster_that_does_not_fit_is_passed_over_for_a_smaller_one() {
        assert_eq!(reach(Some(80)).within(vec![0, 2, 3]), [0, 3]);
        assert_eq!(reach(Some(90)).within(vec![0, 2, 3]), [0, 2]);
        assert_eq!(reach(Some(120)).within(vec![0, 2, 3]), [0, 2, 3]);
    }

    #[test]
    fn a_shard_counts_once_and_clusters_without_one_count_nothing() {
        assert_eq!(reach(Some(70)).within(vec![1, 4, 3, 0]), [1, 4, 3, 0]);
        assert_eq!(reach(None).bytes_of([0, 1, 4, 3]), 70);
    }

    #[test]
    fn the_most_probable_cluster_is_always_asked() {
        assert_eq!(reach(Some(10)).within(vec![2, 3, 0]), [2]);
        assert_eq!(reach(Some(0)).within(vec![4, 3]), [4, 3]);
    }

    #[test]
    fn without_a_limit_all_are_asked() {
        assert_eq!(reach(None).within(vec![3, 2, 1, 0]), [3, 2, 1, 0]);
        assert_eq!(Reach::default().within(vec![7, 3]), [7, 3]);
    }
}
