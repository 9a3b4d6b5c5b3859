//! What tagging answers: the same from `gnnxml predict`, the server and the page's own engine.

use serde::{Deserialize, Serialize};

use crate::keygraph::KeyGraph;

/// One label a text was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tag {
    /// The label's number in the model.
    pub label: u32,
    pub name: String,
    /// Calibrated probability, 0 to 1.
    pub score: f32,
    /// The cluster that brought it.
    pub cluster: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// Why a tag was given: additive contributions to its log-odds before calibration.
///
/// `bias + Σ words + Σ other` equals `total`; `sentences` and `vertices` regroup the same evidence
/// by place, for highlighting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Evidence {
    /// Everything together: the log-score that calibration turns into the tag's probability.
    pub total: f32,
    /// The label's own bias and prior.
    pub bias: f32,
    /// What the matched cluster contributes.
    pub cluster: f32,
    /// What the document's embedding contributes.
    pub embedding: f32,
    /// What the most similar training documents contribute.
    #[serde(default)]
    pub neighbours: f32,
    /// What the words of the label's own name in the text contribute, besides what their weights do.
    #[serde(default)]
    pub name: f32,
    /// The strongest words, largest contribution first.
    pub words: Vec<WordEvidence>,
    /// What the words that are not listed contribute together.
    pub other_words: f32,
    /// The sentences that count most, by what the words in them contribute.
    pub sentences: Vec<SentenceEvidence>,
    /// KeyGraph vertices by the change of the cluster's log-odds when each is left out.
    pub vertices: Vec<VertexEvidence>,
}

/// A word, where it stands and what it contributes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WordEvidence {
    pub text: String,
    /// Byte ranges in the original text.
    pub spans: Vec<[usize; 2]>,
    pub weight: f32,
}

/// A sentence, by its number in the KeyGraph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SentenceEvidence {
    pub sentence: usize,
    pub weight: f32,
}

/// A vertex, by its id in the KeyGraph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VertexEvidence {
    pub vertex: usize,
    pub weight: f32,
}

/// A label cluster the matcher chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MatchedCluster {
    pub cluster: u32,
    pub name: String,
    pub probability: f32,
}

/// Everything the tagging of one text yields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TagResponse {
    /// Best first.
    pub tags: Vec<Tag>,
    /// Most probable first.
    pub clusters: Vec<MatchedCluster>,
    /// The probability at which keeping a tag gives the best F1 on validation documents.
    pub cutoff: f32,
    /// Clusters that were matched but whose rankers could not be fetched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_clusters: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keygraph: Option<KeyGraph>,
}
