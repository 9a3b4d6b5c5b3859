//! Stage `match`: which clusters a document belongs to, by words, by graph, or by both.

use gnnxml_shared::model::ranker::ClusterRankers;
use gnnxml_shared::model::score::log_sigmoid;
use gnnxml_shared::model::score::strongest;
use gnnxml_shared::model::tagger::ClusterMatcher;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::codec::{PartError, PartReader, PartWriter};
use super::encode::Encoded;
use super::parts::{put_cluster_matcher, take_cluster_matcher};
use super::pipeline::{Documents, TrainRequest};
use super::work::Work;
use super::{MatcherKind, MatcherSettings, Progress, TrainConfig, TrainError};
use crate::labels::LabelClusters;
use crate::matcher::{Lists, TrainData, TrainOptions, ValidationData};
use crate::ranker::block::LANES;
use crate::ranker::{Dual, Loss, RankerConfig, Rows, TrainingSet, train_rankers};

/// The matchers and what they say about the documents of the run.
#[derive(Debug)]
pub(super) struct Matched {
    /// Learned from all training documents.
    pub last: ClusterMatcher,
    /// Clusters each document is sent to by the matcher that did not see the held-out ones.
    pub first_predicted: Vec<Vec<u32>>,
    /// Clusters each document is sent to by the last matcher.
    pub last_predicted: Vec<Vec<u32>>,
    /// Held-out documents and the first matcher's log-odds for them.
    pub held_log_odds: Vec<(u32, Vec<f32>)>,
}

pub(super) fn match_clusters(
    documents: &Documents,
    encoded: &Encoded,
    clusters: &LabelClusters,
    request: &TrainRequest,
    work: &Work,
    progress: &Progress<'_>,
) -> Result<Matched, TrainError> {
    let config = &request.config;
    let truth = true_clusters(documents, clusters);
    let graph = if config.has_graph() {
        let trained = train_graph(documents, encoded, clusters, &truth, request, work, progress)?;
        Some(trained)
    } else {
        None
    };
    let (first, last) = if config.matcher.kind == MatcherKind::Graph {
        (None, None)
    } else {
        let (first, last) = train_linear(documents, &truth, clusters.len(), config, progress)?;
        (Some(first), Some(last))
    };
    let held: Vec<usize> = (0..documents.len()).filter(|&d| documents.held_out[d]).collect();
    // The graph network is trained once, without the held-out documents: they stop it early.
    let graph_logits = graph.as_ref().map(|(_, logits)| logits);
    let share = match (&first, graph_logits) {
        (Some(first), Some(logits)) => {
            let margins: Vec<Vec<f32>> = held
                .par_iter()
                .map(|&d| first.margins(&documents.gathered.words[d], &[]))
                .collect();
            let logits: Vec<&[f32]> = held.iter().map(|&d| &logits[d][..]).collect();
            let truth: Vec<&[u32]> = held.iter().map(|&d| &truth[d][..]).collect();
            best_share(&margins, &logits, &truth)
        }
        (None, _) => 1.0,
        (_, None) => 0.0,
    };
    if graph.is_some() && first.is_some() {
        progress.info(format!(
            "the graph network counts {share:.2} of the cluster's log-odds"
        ));
    }
    let log_odds = |linear: Option<&ClusterRankers>, document: usize| -> Vec<f32> {
        let words = linear.map(|linear| linear.margins(&documents.gathered.words[document], &[]));
        match (words, graph_logits) {
            (Some(words), Some(logits)) => (words.iter().zip(&logits[document]))
                .map(|(w, g)| (1.0 - share) * w + share * g)
                .collect(),
            (Some(words), None) => words,
            (None, Some(logits)) => logits[document].clone(),
            (None, None) => Vec::new(),
        }
    };
    let predicted = |linear: Option<&ClusterRankers>| -> Vec<Vec<u32>> {
        (0..documents.len())
            .into_par_iter()
            .map(|document| strongest(&log_odds(linear, document), config.ranker.negatives))
            .collect()
    };
    let first_predicted = predicted(first.as_ref());
    // A matcher that learned from a sample is not refitted.
    let last_predicted = if documents.refits() && first != last {
        predicted(last.as_ref())
    } else {
        first_predicted.clone()
    };
    let held_log_odds = held
        .par_iter()
        .map(|&d| (d as u32, log_odds(first.as_ref(), d)))
        .collect();
    let graph = graph.map(|(matcher, _)| Box::new(matcher));
    let last = match (last, graph) {
        (Some(linear), Some(graph)) => ClusterMatcher::Both { linear, graph, share },
        (Some(linear), None) => ClusterMatcher::Linear(linear),
        (None, Some(graph)) => ClusterMatcher::Graph(graph),
        (None, None) => unreachable!("every kind of matcher has at least one half"),
    };
    let matched = Matched {
        last,
        first_predicted,
        last_predicted,
        held_log_odds,
    };
    tell_recall(&matched, &truth, config, progress);
    Ok(matched)
}

/// The clusters of each document's labels, ascending, each once.
pub(super) fn true_clusters(documents: &Documents, clusters: &LabelClusters) -> Vec<Vec<u32>> {
    let of = |labels: &Vec<u32>| {
        let mut found: Vec<u32> = labels.iter().map(|&label| clusters.cluster_of(label)).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    documents.gathered.labels.iter().map(of).collect()
}

/// How the linear matcher is solved.
pub(crate) fn linear_solver(settings: &MatcherSettings, clusters: usize) -> RankerConfig {
    RankerConfig {
        loss: Loss::Logistic,
        cost: settings.cost,
        tolerance: settings.tolerance,
        max_iterations: 100,
        threshold: settings.threshold,
        most_weights: MOST_WEIGHTS / clusters.max(1),
        tail_weight: 0.0,
        keep_duals: true,
    }
}

/// One-vs-all over clusters: first without the held-out documents, then, from where that stopped, with them.
fn train_linear(
    documents: &Documents,
    truth: &[Vec<u32>],
    clusters: usize,
    config: &TrainConfig,
    progress: &Progress<'_>,
) -> Result<(ClusterRankers, ClusterRankers), TrainError> {
    let gathered = &documents.gathered;
    let rows = Rows::new(&gathered.words, gathered.tfidf.len(), Vec::new(), 0, 1.0)?;
    let solver = linear_solver(&config.matcher, clusters);
    let groups = groups(clusters, documents.len());
    let sampled = Sample::new(&groups, documents.len(), config.seed);
    // Where documents are so many that a sample does, the few held out do not matter.
    let refits = documents.refits() && sampled.is_everything();
    let total = (clusters * (1 + usize::from(refits))) as u64;
    let solve = |keep: &dyn Fn(usize) -> bool, start: Option<&[Dual]>, before: u64| {
        let mut of_cluster = vec![Vec::new(); clusters];
        let mut taking_part = 0;
        for document in (0..documents.len()).filter(|&d| keep(d)) {
            taking_part += 1;
            for &cluster in &truth[document] {
                of_cluster[cluster as usize].push(document as u32);
            }
        }
        let candidates: Vec<Vec<u32>> = (groups.iter().zip(&sampled.documents))
            .map(|(group, sample)| {
                let sample = sample.iter().copied().filter(|&d| keep(d as usize));
                let mut seen: Vec<u32> = sample.collect();
                if !sampled.is_everything() {
                    seen.extend(group.iter().flat_map(|&cluster| &of_cluster[cluster as usize]));
                    seen.sort_unstable();
                    seen.dedup();
                }
                seen
            })
            .collect();
        let set = TrainingSet {
            rows: &rows,
            label_documents: &of_cluster,
            clusters: &groups,
            candidates: &candidates,
            inverse_propensity: &[],
        };
        let solver = RankerConfig {
            keep_duals: start.is_none() && refits,
            ..solver
        };
        let mut trained = train_rankers(&set, &solver, config.seed, start, &|done| {
            progress.done(before + done, Some(total));
            !progress.stopped()
        })
        .ok_or(TrainError::Interrupted)?;
        if sampled.is_everything() {
            return Ok((trained.clusters.pop().unwrap_or_default(), trained.duals));
        }
        let mut all = Vec::with_capacity(clusters);
        for (group, seen) in trained.clusters.iter().zip(&candidates) {
            for mut ranker in group.to_labels() {
                let own = of_cluster[ranker.label as usize].len();
                ranker.bias += unseen_negatives(seen.len() - own, taking_part - own);
                all.push(ranker);
            }
        }
        Ok::<_, TrainError>((ClusterRankers::new(all, rows.dims()), trained.duals))
    };
    let (first, duals) = solve(&|d| !documents.held_out[d], None, 0)?;
    if !refits {
        return Ok((first.clone(), first));
    }
    let (last, _) = solve(&|d| d < documents.training, Some(&duals), clusters as u64)?;
    Ok((first, last))
}

/// With more pairs of a cluster and a document than this, clusters no longer learn from every document: both grow with the
/// corpus, their product must not.
const MOST_PAIRS: usize = 50_000_000;

/// Weights that all clusters keep together, at most.
const MOST_WEIGHTS: usize = 30_000_000;

/// Clusters that learn from the same documents: all together, or, where those would be too many, neighbours by number, which two-level
/// clustering makes alike, so that the documents of one are the hardest negatives of the others.
fn groups(clusters: usize, documents: usize) -> Vec<Vec<u32>> {
    let all: Vec<u32> = (0..clusters as u32).collect();
    if clusters.saturating_mul(documents) <= MOST_PAIRS {
        return vec![all];
    }
    all.chunks(LANES).map(<[u32]>::to_vec).collect()
}

/// Documents that each group of clusters learns from besides its own.
struct Sample {
    documents: Vec<Vec<u32>>,
}

impl Sample {
    fn new(groups: &[Vec<u32>], documents: usize, seed: u64) -> Self {
        let clusters: usize = groups.iter().map(Vec::len).sum();
        let rate = if groups.len() == 1 {
            1.0
        } else {
            (MOST_PAIRS as f64 / clusters as f64 / documents as f64).min(1.0)
        };
        let draw = |group: usize| -> Vec<u32> {
            if rate >= 1.0 {
                return (0..documents as u32).collect();
            }
            // From one drawn document to the next: geometric gaps, as if each were drawn by itself.
            let mut random = ChaCha8Rng::seed_from_u64(seed ^ (group as u64) << 32);
            let mut drawn = Vec::new();
            let mut at = 0.0f64;
            loop {
                at += (random.random::<f64>().max(f64::MIN_POSITIVE).ln() / (-rate).ln_1p()).floor();
                if at >= documents as f64 {
                    return drawn;
                }
                drawn.push(at as u32);
                at += 1.0;
            }
        };
        Self {
            documents: (0..groups.len()).into_par_iter().map(draw).collect(),
        }
    }

    /// Whether there is one group, which sees every document.
    fn is_everything(&self) -> bool {
        self.documents.len() == 1
    }
}

/// What a classifier's log-odds must change by when it saw only `seen` of `all` negatives (King and Zeng, 2001).
fn unseen_negatives(seen: usize, all: usize) -> f32 {
    ((seen.max(1) as f64) / (all.max(1) as f64)).ln() as f32
}

/// Trains the graph network; its logits for every document of the run come with it.
fn train_graph(
    documents: &Documents,
    encoded: &Encoded,
    clusters: &LabelClusters,
    truth: &[Vec<u32>],
    request: &TrainRequest,
    work: &Work,
    progress: &Progress<'_>,
) -> Result<(gnnxml_shared::model::matcher::Matcher, Vec<Vec<f32>>), TrainError> {
    let (Some(learned), Some(held)) = (&encoded.learned_graphs, &encoded.held_graphs) else {
        return Err(TrainError::Encoder {
            name: request.config.encoder.name.clone(),
            reason: "no graphs were laid out".into(),
        });
    };
    let config = &request.config;
    let learned_documents: Vec<usize> = (0..documents.len()).filter(|&d| !documents.held_out[d]).collect();
    let held_documents: Vec<usize> = (0..documents.len()).filter(|&d| documents.held_out[d]).collect();
    let of = |list: &[usize]| Lists::from_rows(&list.iter().map(|&d| &truth[d]).collect::<Vec<_>>());
    let (positives, held_positives) = (of(&learned_documents), of(&held_documents));
    let mut label_documents = vec![Vec::new(); documents.gathered.label_names.len()];
    for (at, &document) in learned_documents.iter().enumerate() {
        for &label in &documents.gathered.labels[document] {
            label_documents[label as usize].push(at as u32);
        }
    }
    let label_documents = Lists::from_rows(&label_documents);
    let model = super::encode::graph_config(
        config,
        encoded.dims,
        documents.gathered.tfidf.len(),
        clusters.len(),
    );
    let mut options = TrainOptions::new(model);
    if config.matcher.kind == MatcherKind::Both {
        options = options.beside_linear();
    }
    options.epochs = config.matcher.epochs;
    options.seed = config.seed;
    options.device = request.device;
    options.checkpoints = Some(work.path("matcher-checkpoint"));
    options.resume = work.resumes();
    options.stop = std::sync::Arc::clone(&request.stop);
    let validation = (!held_documents.is_empty()).then_some(ValidationData {
        graphs: held,
        positives: &held_positives,
    });
    let data = TrainData {
        graphs: learned,
        positives: &positives,
        label_documents: &label_documents,
        validation,
    };
    let trained = crate::matcher::train(data, &options, &mut |event| progress.emit(event))?;
    if trained.interrupted {
        return Err(TrainError::Interrupted);
    }
    let mut logits = vec![Vec::new(); documents.len()];
    for (graphs, places) in [(learned, &learned_documents), (held, &held_documents)] {
        let found = crate::matcher::logits(&trained.matcher, graphs)?;
        for (&document, found) in places.iter().zip(found) {
            logits[document] = found;
        }
    }
    Ok((trained.matcher, logits))
}

/// The share of the graph network under which the documents' true clusters are most likely.
pub(crate) fn best_share(margins: &[Vec<f32>], logits: &[&[f32]], truth: &[&[u32]]) -> f32 {
    if truth.is_empty() {
        return 0.5;
    }
    let likelihood = |share: f32| -> f64 {
        let documents = margins.iter().zip(logits).zip(truth);
        documents
            .map(|((margins, logits), truth)| {
                let mixed = margins.iter().zip(*logits).enumerate();
                mixed
                    .map(|(cluster, (w, g))| {
                        let odds = (1.0 - share) * w + share * g;
                        let sign = if truth.binary_search(&(cluster as u32)).is_ok() {
                            1.0
                        } else {
                            -1.0
                        };
                        f64::from(log_sigmoid(sign * odds))
                    })
                    .sum::<f64>()
            })
            .sum()
    };
    let shares = (0..=10).map(|tenth| tenth as f32 / 10.0);
    shares
        .map(|share| (likelihood(share), share))
        .reduce(|a, b| if b.0 > a.0 { b } else { a })
        .map_or(0.5, |best| best.1)
}

/// How many true clusters the held-out documents are sent to.
fn tell_recall(matched: &Matched, truth: &[Vec<u32>], config: &TrainConfig, progress: &Progress<'_>) {
    let (mut found, mut all) = (0, 0);
    for (document, log_odds) in &matched.held_log_odds {
        let sent = strongest(log_odds, config.score.clusters);
        let truth = &truth[*document as usize];
        found += truth.iter().filter(|cluster| sent.contains(cluster)).count();
        all += truth.len();
    }
    if all > 0 {
        progress.info(format!(
            "{:.2} % of the held-out documents' clusters are among the {} most probable",
            100.0 * found as f64 / all as f64,
            config.score.clusters,
        ));
    }
}

impl Matched {
    pub(super) fn save(&self, part: &mut PartWriter) {
        put_cluster_matcher(part, &self.last);
        for predicted in [&self.first_predicted, &self.last_predicted] {
            for clusters in predicted {
                part.u32s(clusters);
            }
        }
        part.u32(self.held_log_odds.len() as u32);
        for (document, log_odds) in &self.held_log_odds {
            part.u32(*document);
            part.f32s(log_odds);
        }
    }

    pub(super) fn load(
        part: &mut PartReader,
        documents: &Documents,
        clusters: usize,
    ) -> Result<Self, PartError> {
        let last = take_cluster_matcher(part, documents.gathered.tfidf.len(), clusters)?;
        let mut predicted = || {
            (0..documents.len())
                .map(|_| part.u32s())
                .collect::<Result<Vec<_>, _>>()
        };
        let (first_predicted, last_predicted) = (predicted()?, predicted()?);
        let held = part.u32()?;
        let mut held_log_odds = Vec::new();
        for _ in 0..held {
            held_log_odds.push((part.u32()?, part.f32s()?));
        }
        Ok(Self {
            last,
            first_predicted,
            last_predicted,
            held_log_odds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pairs_are_learned_from_whole() {
        let groups = groups(54, 15_539);
        let sample = Sample::new(&groups, 15_539, 0);
        assert!(sample.is_everything());
        assert_eq!(sample.documents[0].len(), 15_539);
        assert_eq!(groups[0].len(), 54);
    }

    #[test]
    fn many_pairs_are_drawn_from_evenly_and_alike_every_time() {
        let (clusters, documents) = (1_000, 500_000);
        let groups = groups(clusters, documents);
        assert_eq!(groups.concat().len(), clusters);
        let sample = Sample::new(&groups, documents, 7);
        assert!(!sample.is_everything());
        let expected = MOST_PAIRS as f64 / clusters as f64;
        for drawn in &sample.documents {
            assert!(drawn.is_sorted_by(|a, b| a < b));
            // Five standard deviations of a binomial count.
            let far = (drawn.len() as f64 - expected).abs() / expected.sqrt();
            assert!(far < 5.0, "{} drawn, {expected} expected", drawn.len());
            let half = drawn.partition_point(|&d| (d as usize) < documents / 2) as f64;
            assert!(
                (half - expected / 2.0).abs() < 5.0 * (expected / 4.0).sqrt(),
                "{half}"
            );
        }
        assert_eq!(Sample::new(&groups, documents, 7).documents, sample.documents);
        assert_ne!(Sample::new(&groups, documents, 8).documents, sample.documents);
    }

    #[test]
    fn a_tenth_of_the_negatives_is_a_tenth_of_the_odds() {
        assert!((unseen_negatives(10, 100).exp() - 0.1).abs() < 1e-6);
        assert_eq!(unseen_negatives(5, 5), 0.0);
    }
}
