//! What an answer lacks, in words: the clusters whose rankers did not come.

use gnnxml_shared::api::TagResponse;

/// Clusters that are named; the others are counted.
const NAMED: usize = 3;

/// Names the clusters whose tags are missing; nothing when none are.
pub fn clusters(response: &TagResponse) -> Option<String> {
    let missing = &response.missing_clusters;
    let name = |&cluster: &u32| {
        let matched = response.clusters.iter().find(|known| known.cluster == cluster);
        match matched.filter(|known| !known.name.is_empty()) {
            Some(known) => format!("“{}”", known.name),
            None => format!("number {cluster}"),
        }
    };
    let mut list: Vec<String> = missing.iter().take(NAMED).map(name).collect();
    if missing.len() > NAMED {
        list.push(format!("{} more", missing.len() - NAMED));
    }
    let last = list.pop()?;
    let which = if list.is_empty() {
        format!("the cluster {last}")
    } else {
        format!("the clusters {} and {last}", list.join(", "))
    };
    Some(format!(
        "Tags may be missing: {which} could not be fetched. The server is away, sends damaged files, or no longer has this model."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnnxml_shared::api::MatchedCluster;

    fn without(missing: &[u32]) -> Option<String> {
        let names = ["cod", "", "wheat", "bonds", "coal"].into_iter().zip(0..);
        let matched = names.map(|(name, cluster)| MatchedCluster {
            cluster,
            name: name.to_owned(),
            probability: 0.5,
        });
        clusters(&TagResponse {
            tags: Vec::new(),
            clusters: matched.collect(),
            cutoff: 0.5,
            missing_clusters: missing.to_vec(),
            keygraph: None,
        })
    }

    #[test]
    fn clusters_that_did_not_come_are_named_and_beyond_three_counted() {
        assert_eq!(without(&[]), None);
        for (missing, said) in [
            (&[0][..], "the cluster “cod” could"),
            (&[1], "the cluster number 1 could"),
            (&[0, 2], "the clusters “cod” and “wheat” could"),
            (&[0, 2, 3], "the clusters “cod”, “wheat” and “bonds” could"),
            (
                &[0, 2, 3, 4, 1],
                "the clusters “cod”, “wheat”, “bonds” and 2 more could",
            ),
        ] {
            let found = without(missing).unwrap();
            assert!(found.contains(said), "{found}");
        }
    }
}
