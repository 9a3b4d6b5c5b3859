//! The result: a partition of the vocabulary with names, statistics, neighbours and a map.

use gnnxml_shared::api::{
    ClusterDetail, ClusterList, ClusterStatistics, ClusterSummary, LabelDetail, LabelMap, LabelNeighbour,
    LabelSearch, LabelSummary,
};
use serde::{Deserialize, Serialize};

use super::LabelError;

/// How a partition came about: settings and counts, no clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterReport {
    /// Label pairs counted for the correlation matrix.
    pub pairs: u64,
    /// What the pairs could not exceed.
    pub pair_bound: u64,
    /// Documents with so many labels that their pairs were sampled.
    pub sampled_documents: usize,
    /// Entries of the normalised label graph, the diagonal among them.
    pub graph_entries: usize,
    /// Labels without any neighbour in the graph.
    pub isolated_labels: usize,
    /// How often the filter was applied.
    pub filter_order: usize,
    /// Σ squared distances to the cluster centres.
    pub inertia: f64,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Its most telling label.
    pub name: String,
    /// What sets it apart, strongest first.
    pub terms: Vec<String>,
    /// Training documents with at least one of its labels.
    pub documents: u32,
    /// Place on the map.
    pub position: [f32; 2],
}

/// What [`LabelClusters`] is made of; checked when it is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterParts {
    /// Label → cluster.
    pub assignment: Vec<u32>,
    /// Training documents of each label.
    pub counts: Vec<u32>,
    /// Cosine of each label's vector with its cluster's centre.
    pub closeness: Vec<f32>,
    /// Label names; empty when the labels have not been named.
    pub names: Vec<String>,
    /// Place of each label on the map.
    pub positions: Vec<[f32; 2]>,
    pub clusters: Vec<Cluster>,
    /// Neighbours of label i are entries `neighbour_starts[i]..neighbour_starts[i + 1]`.
    pub neighbour_starts: Vec<u64>,
    pub neighbours: Vec<u32>,
    /// P(neighbour | label).
    pub probabilities: Vec<f32>,
    /// Documents in all.
    pub documents: u32,
    pub report: ClusterReport,
}

/// A valid partition: every label in exactly one existing cluster, no cluster empty, every array as long as
/// it must be, every place on the map.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelClusters {
    parts: ClusterParts,
    member_starts: Vec<usize>,
    members: Vec<u32>,
}

impl LabelClusters {
    /// Checks the parts and puts them together.
    pub fn new(parts: ClusterParts) -> Result<Self, LabelError> {
        check(&parts)?;
        let k = parts.clusters.len();
        let mut starts = vec![0usize; k + 1];
        for &cluster in &parts.assignment {
            starts[cluster as usize + 1] += 1;
        }
        for cluster in 0..k {
            if starts[cluster + 1] == 0 {
                return Err(LabelError::Shape {
                    what: "labels in a cluster",
                    found: 0,
                    expected: 1,
                });
            }
            starts[cluster + 1] += starts[cluster];
        }
        let mut members: Vec<u32> = (0..parts.assignment.len() as u32).collect();
        members.sort_by_key(|&label| {
            let at = label as usize;
            (parts.assignment[at], std::cmp::Reverse(parts.counts[at]), label)
        });
        Ok(Self {
            parts,
            member_starts: starts,
            members,
        })
    }

    pub fn parts(&self) -> &ClusterParts {
        &self.parts
    }

    pub(super) fn into_parts(self) -> ClusterParts {
        self.parts
    }

    /// L.
    pub fn labels(&self) -> usize {
        self.parts.assignment.len()
    }

    /// K.
    pub fn len(&self) -> usize {
        self.parts.clusters.len()
    }

    /// Never: a partition has at least one cluster.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Label → cluster, for all labels.
    pub fn assignment(&self) -> &[u32] {
        &self.parts.assignment
    }

    /// The cluster of one label.
    pub fn cluster_of(&self, label: u32) -> u32 {
        self.parts.assignment[label as usize]
    }

    /// The labels of one cluster, most frequent first.
    pub fn members(&self, cluster: u32) -> &[u32] {
        let cluster = cluster as usize;
        &self.members[self.member_starts[cluster]..self.member_starts[cluster + 1]]
    }

    pub fn cluster(&self, cluster: u32) -> &Cluster {
        &self.parts.clusters[cluster as usize]
    }

    /// How it came about.
    pub fn report(&self) -> &ClusterReport {
        &self.parts.report
    }

    /// The label's name, or its number when labels have no names yet.
    pub fn label_name(&self, label: u32) -> String {
        match self.parts.names.get(label as usize) {
            Some(name) => name.clone(),
            None => label.to_string(),
        }
    }

    /// Neighbours in the label graph with P(neighbour | label), most probable first.
    pub fn neighbours(&self, label: u32) -> impl Iterator<Item = (u32, f32)> + '_ {
        let at = label as usize;
        let range = self.parts.neighbour_starts[at] as usize..self.parts.neighbour_starts[at + 1] as usize;
        self.parts.neighbours[range.clone()]
            .iter()
            .copied()
            .zip(self.parts.probabilities[range].iter().copied())
    }

    /// Figures over all clusters, as in the paper's first figure.
    pub fn statistics(&self) -> ClusterStatistics {
        let sizes = || {
            self.member_starts
                .windows(2)
                .map(|pair| (pair[1] - pair[0]) as u32)
        };
        let share = |over: usize, of: usize| over as f32 / of as f32;
        ClusterStatistics {
            labels: self.labels() as u32,
            clusters: self.len() as u32,
            documents: self.parts.documents,
            largest: sizes().max().unwrap_or(0),
            smallest: sizes().min().unwrap_or(0),
            labels_over_100: share(
                self.parts.counts.iter().filter(|&&n| n > 100).count(),
                self.labels(),
            ),
            clusters_over_100: share(
                self.parts.clusters.iter().filter(|c| c.documents > 100).count(),
                self.len(),
            ),
        }
    }

    pub fn summary(&self, cluster: u32) -> ClusterSummary {
        let found = self.cluster(cluster);
        ClusterSummary {
            id: cluster,
            name: found.name.clone(),
            terms: found.terms.clone(),
            labels: self.members(cluster).len() as u32,
            documents: found.documents,
            x: found.position[0],
            y: found.position[1],
        }
    }

    pub fn label_summary(&self, label: u32) -> LabelSummary {
        let at = label as usize;
        let [x, y] = self.parts.positions[at];
        LabelSummary {
            id: label,
            name: self.label_name(label),
            count: self.parts.counts[at],
            cluster: self.parts.assignment[at],
            x,
            y,
        }
    }

    /// All clusters, for a list.
    pub fn list(&self) -> ClusterList {
        ClusterList {
            statistics: self.statistics(),
            clusters: (0..self.len() as u32).map(|c| self.summary(c)).collect(),
        }
    }

    /// One cluster with its labels; none if there is no such cluster.
    pub fn detail(&self, cluster: u32) -> Option<ClusterDetail> {
        ((cluster as usize) < self.len()).then(|| ClusterDetail {
            cluster: self.summary(cluster),
            members: self
                .members(cluster)
                .iter()
                .map(|&l| self.label_summary(l))
                .collect(),
        })
    }

    /// One label with its neighbours; none if there is no such label. Terms and examples are for those
    /// who hold the ranker and the corpus to add.
    pub fn label_detail(&self, label: u32) -> Option<LabelDetail> {
        ((label as usize) < self.labels()).then(|| LabelDetail {
            label: self.label_summary(label),
            cluster_name: self.cluster(self.cluster_of(label)).name.clone(),
            neighbours: self
                .neighbours(label)
                .map(|(id, probability)| LabelNeighbour {
                    id,
                    name: self.label_name(id),
                    cluster: self.cluster_of(id),
                    probability,
                })
                .collect(),
            terms: Vec::new(),
            examples: Vec::new(),
        })
    }

    /// Every label's place.
    pub fn map(&self, with_names: bool) -> LabelMap {
        LabelMap {
            x: self.parts.positions.iter().map(|place| place[0]).collect(),
            y: self.parts.positions.iter().map(|place| place[1]).collect(),
            cluster: self.parts.assignment.clone(),
            count: self.parts.counts.clone(),
            names: if with_names {
                self.parts.names.clone()
            } else {
                Vec::new()
            },
        }
    }

    /// Labels whose name contains the query, whatever the case: those that begin with it first, then the
    /// more frequent.
    pub fn search(&self, query: &str, limit: usize) -> LabelSearch {
        let wanted = query.trim().to_lowercase();
        let mut found: Vec<(bool, std::cmp::Reverse<u32>, u32)> = Vec::new();
        for (label, name) in self.parts.names.iter().enumerate() {
            let name = name.to_lowercase();
            if let Some(at) = name.find(&wanted) {
                found.push((at > 0, std::cmp::Reverse(self.parts.counts[label]), label as u32));
            }
        }
        found.sort_unstable();
        LabelSearch {
            query: query.to_owned(),
            total: found.len() as u32,
            labels: found
                .iter()
                .take(limit)
                .map(|&(_, _, label)| self.label_summary(label))
                .collect(),
        }
    }
}

/// Every length, index and number.
fn check(parts: &ClusterParts) -> Result<(), LabelError> {
    let labels = parts.assignment.len();
    if labels == 0 {
        return Err(LabelError::NoLabels);
    }
    let lengths = [
        ("label counts", parts.counts.len(), labels),
        ("label closeness values", parts.closeness.len(), labels),
        ("label positions", parts.positions.len(), labels),
        (
            "label names",
            parts.names.len(),
            if parts.names.is_empty() { 0 } else { labels },
        ),
        (
            "starts of neighbour lists",
            parts.neighbour_starts.len(),
            labels + 1,
        ),
        (
            "neighbour probabilities",
            parts.probabilities.len(),
            parts.neighbours.len(),
        ),
    ];
    for (what, found, expected) in lengths {
        if found != expected {
            return Err(LabelError::Shape {
                what,
                found,
                expected,
            });
        }
    }
    let outside = |what, found: u32, count: usize| LabelError::Shape {
        what,
        found: found as usize,
        expected: count,
    };
    if let Some(&cluster) = parts
        .assignment
        .iter()
        .find(|&&c| c as usize >= parts.clusters.len())
    {
        return Err(outside(
            "number of a label's cluster, below",
            cluster,
            parts.clusters.len(),
        ));
    }
    if let Some(&label) = parts.neighbours.iter().find(|&&label| label as usize >= labels) {
        return Err(outside("number of a neighbour, below", label, labels));
    }
    let ordered = parts.neighbour_starts.windows(2).all(|pair| pair[0] <= pair[1]);
    let end = parts.neighbour_starts[labels] as usize;
    if !ordered || parts.neighbour_starts[0] != 0 || end != parts.neighbours.len() {
        return Err(LabelError::Shape {
            what: "end of the neighbour lists",
            found: end,
            expected: parts.neighbours.len(),
        });
    }
    let places = parts
        .positions
        .iter()
        .chain(parts.clusters.iter().map(|c| &c.position));
    for (row, place) in places.enumerate() {
        if let Some(column) = place.iter().position(|v| !(-1.0..=1.0).contains(v)) {
            return Err(LabelError::NotFinite {
                what: "map position",
                row,
                column,
                value: place[column],
            });
        }
    }
    Ok(())
}
