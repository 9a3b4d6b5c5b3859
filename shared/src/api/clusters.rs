//! The label vocabulary as a person browses it: clusters, labels, their neighbours and the map.

use serde::{Deserialize, Serialize};

/// One label cluster, as a list or a map shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterSummary {
    pub id: u32,
    /// Its most telling label.
    pub name: String,
    /// What sets it apart from the other clusters, strongest first.
    pub terms: Vec<String>,
    /// How many labels it holds.
    pub labels: u32,
    /// Training documents with at least one of its labels.
    pub documents: u32,
    /// Place on the map; the whole map lies within -1 to 1 on both axes.
    pub x: f32,
    pub y: f32,
}

/// One label, as a list or a map shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelSummary {
    pub id: u32,
    pub name: String,
    /// Training documents with this label.
    pub count: u32,
    pub cluster: u32,
    /// Place on the map; the whole map lies within -1 to 1 on both axes.
    pub x: f32,
    pub y: f32,
}

/// A label that often comes along with another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelNeighbour {
    pub id: u32,
    pub name: String,
    pub cluster: u32,
    /// P(neighbour | label): share of the label's documents that also carry the neighbour, 0 to 1.
    pub probability: f32,
}

/// A word and how strongly it speaks for a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TermWeight {
    pub term: String,
    pub weight: f32,
}

/// A training document that carries a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExampleDocument {
    pub id: String,
    /// The beginning of its text.
    pub excerpt: String,
}

/// Everything about one label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelDetail {
    #[serde(flatten)]
    pub label: LabelSummary,
    pub cluster_name: String,
    /// Neighbours in the label graph, most probable first.
    pub neighbours: Vec<LabelNeighbour>,
    /// The words that carry it in the ranker, strongest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<TermWeight>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ExampleDocument>,
}

/// Everything about one cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterDetail {
    #[serde(flatten)]
    pub cluster: ClusterSummary,
    /// Its labels, most frequent first: the long tail in order.
    pub members: Vec<LabelSummary>,
}

/// What the partition as a whole looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterStatistics {
    pub labels: u32,
    pub clusters: u32,
    /// Documents the label graph was built from.
    pub documents: u32,
    /// Labels in the largest cluster.
    pub largest: u32,
    /// Labels in the smallest cluster.
    pub smallest: u32,
    /// Share of labels with more than 100 training documents, 0 to 1.
    pub labels_over_100: f32,
    /// Share of clusters with more than 100 training documents, 0 to 1.
    pub clusters_over_100: f32,
}

/// All clusters of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterList {
    pub statistics: ClusterStatistics,
    pub clusters: Vec<ClusterSummary>,
}

/// Every label's place on the map, in columns: label `i` is entry `i` of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelMap {
    pub x: Vec<f32>,
    pub y: Vec<f32>,
    pub cluster: Vec<u32>,
    pub count: Vec<u32>,
    /// Label names; left out when the caller asked for points only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// Labels whose name matches a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelSearch {
    pub query: String,
    /// How many match in all; `labels` may hold fewer.
    pub total: u32,
    pub labels: Vec<LabelSummary>,
}
