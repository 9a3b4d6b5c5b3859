//! Rankers, graph networks and projections as bytes.

use gnnxml_shared::features::SparseVector;
use gnnxml_shared::model::encoder::{Lsa, VectorTable};
use gnnxml_shared::model::matcher::{Matcher, MatcherConfig, NamedTensor};
use gnnxml_shared::model::neighbours::{Neighbours, Remembered};
use gnnxml_shared::model::ranker::{ClusterRankers, LabelRanker};
use gnnxml_shared::model::tagger::ClusterMatcher;

use super::codec::{PartError, PartReader, PartWriter};

/// Writes the rankers of some clusters: features delta-coded, weights in single precision.
pub(super) fn put_rankers(part: &mut PartWriter, clusters: &[ClusterRankers]) {
    part.u32(clusters.len() as u32);
    for cluster in clusters {
        part.u32(cluster.dims() as u32);
        let labels = cluster.to_labels();
        part.u32(labels.len() as u32);
        for ranker in labels {
            part.u32(ranker.label);
            part.f32(ranker.bias);
            part.f32s(&ranker.embedding);
            put_rising(part, &ranker.words.iter().map(|word| word.0).collect::<Vec<_>>());
            for &(_, weight) in &ranker.words {
                part.f32(weight);
            }
        }
    }
}

/// Reads what [`put_rankers`] wrote. Features are below `columns`, labels below `labels`.
pub(super) fn take_rankers(
    part: &mut PartReader,
    columns: usize,
    labels: usize,
) -> Result<Vec<ClusterRankers>, PartError> {
    let count = part.u32()? as usize;
    if count > part.room_for(8) {
        return Err(part.wrong(
            "clusters of rankers",
            count,
            format!("at most {}", part.room_for(8)),
        ));
    }
    let mut clusters = Vec::with_capacity(count);
    for _ in 0..count {
        let dims = part.u32()? as usize;
        let members = part.u32()? as usize;
        if members > part.room_for(17) {
            return Err(part.wrong(
                "labels of a cluster",
                members,
                format!("at most {}", part.room_for(17)),
            ));
        }
        let mut rankers = Vec::with_capacity(members);
        for _ in 0..members {
            rankers.push(take_ranker(part, dims, columns, labels)?);
        }
        clusters.push(ClusterRankers::new(rankers, dims));
    }
    Ok(clusters)
}

fn take_ranker(
    part: &mut PartReader,
    dims: usize,
    columns: usize,
    labels: usize,
) -> Result<LabelRanker, PartError> {
    let label = part.u32()?;
    if label as usize >= labels {
        return Err(part.wrong("label of a ranker", label, format!("below {labels}")));
    }
    let bias = part.f32()?;
    let embedding = part.f32s()?;
    if embedding.len() != dims {
        return Err(part.wrong("width of a ranker's embedding", embedding.len(), dims));
    }
    let features = take_rising(part, columns, "feature of a ranker")?;
    if features.len() > part.room_for(4) {
        return Err(part.wrong(
            "weights of a ranker",
            features.len(),
            format!("at most {}", part.room_for(4)),
        ));
    }
    let mut words: Vec<(u32, f32)> = features.into_iter().map(|feature| (feature, 0.0)).collect();
    for word in &mut words {
        word.1 = part.f32()?;
    }
    Ok(LabelRanker {
        label,
        bias,
        words,
        embedding,
    })
}

/// Writes the remembered documents: a step a document, then words by gap and code, then labels by gap.
pub(super) fn put_neighbours(part: &mut PartWriter, neighbours: &Neighbours) {
    part.u32(neighbours.len() as u32);
    for document in neighbours.documents() {
        let step = document.step();
        part.f32(step);
        put_rising(part, &document.words.indices);
        for &weight in &document.words.values {
            part.varint((weight / step).round() as u32);
        }
        put_rising(part, &document.labels);
    }
}

/// Reads what [`put_neighbours`] wrote. Words are below `columns`, labels below `labels`.
pub(super) fn take_neighbours(
    part: &mut PartReader,
    columns: usize,
    labels: usize,
) -> Result<Neighbours, PartError> {
    let count = part.u32()? as usize;
    if count > part.room_for(6) {
        return Err(part.wrong(
            "remembered documents",
            count,
            format!("at most {}", part.room_for(6)),
        ));
    }
    let mut documents = Vec::with_capacity(count);
    for _ in 0..count {
        let step = part.f32()?;
        if !step.is_finite() || step < 0.0 {
            return Err(part.wrong("step of a remembered document", step, "a number from 0"));
        }
        let indices = take_rising(part, columns, "word of a remembered document")?;
        let values = (indices.iter())
            .map(|_| Ok(part.varint()? as f32 * step))
            .collect::<Result<_, PartError>>()?;
        documents.push(Remembered {
            words: SparseVector { indices, values },
            labels: take_rising(part, labels, "label of a remembered document")?,
        });
    }
    Ok(Neighbours::new(&documents, columns))
}

fn put_rising(part: &mut PartWriter, numbers: &[u32]) {
    part.varint(numbers.len() as u32);
    let mut last = 0;
    for &number in numbers {
        part.varint(number - last);
        last = number;
    }
}

/// Rising numbers below `bound`.
fn take_rising(part: &mut PartReader, bound: usize, what: &'static str) -> Result<Vec<u32>, PartError> {
    let count = part.varint()? as usize;
    if count > part.room_for(1) {
        return Err(part.wrong(what, count, format!("at most {}", part.room_for(1))));
    }
    let mut numbers = Vec::with_capacity(count);
    let mut last = 0u32;
    for at in 0..count {
        let gap = part.varint()?;
        let number = (last.checked_add(gap)).filter(|&n| (n as usize) < bound && (gap > 0 || at == 0));
        let Some(number) = number else {
            let found = u64::from(last) + u64::from(gap);
            return Err(part.wrong(what, found, format!("rising, below {bound}")));
        };
        numbers.push(number);
        last = number;
    }
    Ok(numbers)
}

/// Writes what chooses clusters: a linear classifier, a graph network, or both.
pub(super) fn put_cluster_matcher(part: &mut PartWriter, matcher: &ClusterMatcher) {
    part.f32(matcher.graph_share());
    part.u32(u32::from(matcher.linear().is_some()) | u32::from(matcher.graph().is_some()) << 1);
    if let Some(linear) = matcher.linear() {
        put_rankers(part, std::slice::from_ref(linear));
    }
    if let Some(graph) = matcher.graph() {
        put_matcher(part, graph);
    }
}

/// Reads what [`put_cluster_matcher`] wrote.
pub(super) fn take_cluster_matcher(
    part: &mut PartReader,
    columns: usize,
    clusters: usize,
) -> Result<ClusterMatcher, PartError> {
    let share = part.f32()?;
    let kinds = part.u32()?;
    let linear = if kinds & 1 == 1 {
        take_rankers(part, columns, clusters)?.pop()
    } else {
        None
    };
    let graph = if kinds & 2 == 2 {
        Some(Box::new(take_matcher(part)?))
    } else {
        None
    };
    match (linear, graph) {
        (Some(linear), Some(graph)) => Ok(ClusterMatcher::Both { linear, graph, share }),
        (Some(linear), None) => Ok(ClusterMatcher::Linear(linear)),
        (None, Some(graph)) => Ok(ClusterMatcher::Graph(graph)),
        (None, None) => Err(part.wrong("kinds of matcher", kinds, "1 (linear), 2 (graph) or 3 (both)")),
    }
}

/// Writes a graph network.
fn put_matcher(part: &mut PartWriter, matcher: &Matcher) {
    part.text(&serde_json::to_string(matcher.config()).expect("a configuration is plain data"));
    let tensors = matcher.tensors();
    part.u32(tensors.len() as u32);
    for tensor in tensors {
        part.text(&tensor.name);
        part.u32s(&tensor.shape.iter().map(|&s| s as u32).collect::<Vec<_>>());
        part.f32s(&tensor.data);
    }
}

/// Reads what [`put_matcher`] wrote.
fn take_matcher(part: &mut PartReader) -> Result<Matcher, PartError> {
    let config = part.text()?;
    let config: MatcherConfig = serde_json::from_str(&config)
        .map_err(|error| part.wrong("matcher configuration", error, "the settings of a graph network"))?;
    let count = part.u32()? as usize;
    let mut tensors = Vec::new();
    for _ in 0..count {
        let name = part.text()?;
        let shape = part.u32s()?.into_iter().map(|s| s as usize).collect();
        tensors.push(NamedTensor {
            name,
            shape,
            data: part.f32s()?,
        });
    }
    Matcher::new(config, tensors).map_err(|error| part.wrong("matcher", error, "the weights of its shape"))
}

/// Writes an LSA projection.
pub(super) fn put_lsa(part: &mut PartWriter, lsa: &Lsa) {
    let table = lsa.projection();
    part.u32(table.dims() as u32);
    part.f32s(table.scales());
    part.u32s(&table.codes().chunks(4).map(pack).collect::<Vec<_>>());
    part.u32(table.codes().len() as u32);
}

/// Reads what [`put_lsa`] wrote.
pub(super) fn take_lsa(part: &mut PartReader) -> Result<Lsa, PartError> {
    let dims = part.u32()? as usize;
    let scales = part.f32s()?;
    let packed = part.u32s()?;
    let len = part.u32()? as usize;
    let mut codes: Vec<i8> = packed
        .iter()
        .flat_map(|p| p.to_le_bytes())
        .map(|b| b as i8)
        .collect();
    codes.truncate(len);
    VectorTable::from_parts(dims, scales, codes)
        .map(Lsa::new)
        .map_err(|error| part.wrong("projection", error, "a table of vectors"))
}

fn pack(codes: &[i8]) -> u32 {
    let mut bytes = [0u8; 4];
    for (byte, &code) in bytes.iter_mut().zip(codes) {
        *byte = code as u8;
    }
    u32::from_le_bytes(bytes)
}
