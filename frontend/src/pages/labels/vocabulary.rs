//! All labels and clusters of the active model, fetched once.

use gnnxml_page_logic::map::{Place, Scene};
use gnnxml_shared::api::{ClusterList, ClusterStatistics, ClusterSummary, LabelMap};

use crate::server::{self, Trouble};

/// The vocabulary as the page holds it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vocabulary {
    pub(crate) statistics: ClusterStatistics,
    pub(crate) clusters: Vec<ClusterSummary>,
    pub(crate) map: LabelMap,
    /// Names in lower case, for searching.
    folded: Vec<String>,
    /// Label numbers of each cluster, most frequent first.
    members: Vec<Vec<u32>>,
}

/// Moves and widens the map so that it fills the square −1 … 1; both axes by the same factor.
fn spread(map: &mut LabelMap, clusters: &mut [ClusterSummary]) {
    let bounds = |values: &[f32]| {
        values
            .iter()
            .filter(|value| value.is_finite())
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &value| {
                (low.min(value), high.max(value))
            })
    };
    let (x, y) = (bounds(&map.x), bounds(&map.y));
    let half = ((x.1 - x.0).max(y.1 - y.0) * 0.5).max(1e-6);
    if !half.is_finite() {
        return;
    }
    let middle = [x.0.midpoint(x.1), y.0.midpoint(y.1)];
    for (values, middle) in [(&mut map.x, middle[0]), (&mut map.y, middle[1])] {
        for value in values {
            *value = (*value - middle) / half;
        }
    }
    for cluster in clusters {
        cluster.x = (cluster.x - middle[0]) / half;
        cluster.y = (cluster.y - middle[1]) / half;
    }
}

/// A label found by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Cluster(u32),
    Label(u32),
}

impl Vocabulary {
    pub(crate) async fn load() -> Result<Self, Trouble> {
        let (clusters, map) = futures::join!(
            server::get::<ClusterList>("/api/v1/clusters"),
            server::get::<LabelMap>("/api/v1/map?names=true"),
        );
        Ok(Self::new(clusters?, map?))
    }

    fn new(list: ClusterList, mut map: LabelMap) -> Self {
        // Columns of unequal length would be a server's mistake; the shortest one decides.
        let count = map
            .x
            .len()
            .min(map.y.len())
            .min(map.cluster.len())
            .min(map.count.len());
        map.names.resize_with(count, String::new);
        for (index, name) in map.names.iter_mut().enumerate() {
            if name.is_empty() {
                *name = format!("label {index}");
            }
        }
        map.x.truncate(count);
        map.y.truncate(count);
        map.cluster.truncate(count);
        map.count.truncate(count);
        let mut clusters = list.clusters;
        spread(&mut map, &mut clusters);
        clusters.sort_by_key(|cluster| cluster.id);
        let groups = clusters.last().map_or(0, |cluster| cluster.id as usize + 1);
        let mut members = vec![Vec::new(); groups];
        for label in 0..count as u32 {
            if let Some(group) = members.get_mut(map.cluster[label as usize] as usize) {
                group.push(label);
            }
        }
        for group in &mut members {
            group.sort_by_key(|&label| (std::cmp::Reverse(map.count[label as usize]), label));
        }
        let folded = map.names.iter().map(|name| name.to_lowercase()).collect();
        Self {
            statistics: list.statistics,
            clusters,
            map,
            folded,
            members,
        }
    }

    pub(crate) fn name(&self, label: u32) -> &str {
        self.map.names.get(label as usize).map_or("", String::as_str)
    }

    pub(crate) fn count(&self, label: u32) -> u32 {
        self.map.count.get(label as usize).copied().unwrap_or(0)
    }

    pub(crate) fn cluster(&self, id: u32) -> Option<&ClusterSummary> {
        self.clusters.iter().find(|cluster| cluster.id == id)
    }

    pub(crate) fn cluster_of(&self, label: u32) -> Option<&ClusterSummary> {
        self.cluster(*self.map.cluster.get(label as usize)?)
    }

    pub(crate) fn members(&self, cluster: u32) -> &[u32] {
        self.members.get(cluster as usize).map_or(&[], Vec::as_slice)
    }

    /// Clusters and labels whose name contains `query`: beginnings first, then frequent ones.
    pub(crate) fn search(&self, query: &str, most: usize) -> (Vec<Found>, usize) {
        let query = query.trim().to_lowercase();
        if query.is_empty() {
            return (Vec::new(), 0);
        }
        let rank = |name: &str| {
            name.find(&query).map(|at| {
                let word_start = at == 0 || !name[..at].ends_with(char::is_alphanumeric);
                if at == 0 {
                    0
                } else if word_start {
                    1
                } else {
                    2
                }
            })
        };
        let mut found: Vec<(u8, std::cmp::Reverse<u32>, Found)> = Vec::new();
        for cluster in &self.clusters {
            if let Some(rank) = rank(&cluster.name.to_lowercase()) {
                found.push((
                    rank,
                    std::cmp::Reverse(cluster.documents),
                    Found::Cluster(cluster.id),
                ));
            }
        }
        for (label, name) in self.folded.iter().enumerate() {
            if let Some(rank) = rank(name) {
                let label = label as u32;
                found.push((rank, std::cmp::Reverse(self.count(label)), Found::Label(label)));
            }
        }
        let total = found.len();
        found.sort_by_key(|&(rank, count, _)| (rank, count));
        (
            found.into_iter().take(most).map(|(_, _, found)| found).collect(),
            total,
        )
    }

    /// The scene of the map. `width` measures a name at a font size of one pixel.
    pub(crate) fn scene(&self, width: impl Fn(&str) -> f32) -> Scene {
        let labels = (0..self.map.x.len())
            .map(|index| Place {
                at: [self.map.x[index], self.map.y[index]],
                count: self.map.count[index],
                cluster: self.map.cluster[index],
                name_width: width(&self.map.names[index]),
            })
            .collect();
        let mut clusters = vec![
            Place {
                at: [f32::NAN; 2],
                count: 0,
                cluster: 0,
                name_width: 0.0
            };
            self.members.len()
        ];
        for cluster in &self.clusters {
            clusters[cluster.id as usize] = Place {
                at: [cluster.x, cluster.y],
                count: cluster.documents,
                cluster: cluster.id,
                name_width: width(&cluster.name),
            };
        }
        Scene::new(labels, clusters)
    }
}
