//! Stage `calibrate`: the mixture of [`gnnxml_shared::model::score`], fitted on documents the rankers did not see.

use gnnxml_shared::metrics::LabelFrequencies;
use gnnxml_shared::model::score::{Calibration, MarginCurve, Score, Signs, Weight, log_odds};
use rayon::prelude::*;

use super::config::{CalibrationKind, ScoreSettings};
use super::monotone::Observations;
use crate::ranker::{Loss, platt};

/// One label that a held-out document was scored for.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub label: u32,
    /// ln p(z=k|x).
    pub log_cluster: f32,
    pub margin: f32,
    /// What similar documents say: [`gnnxml_shared::model::neighbours::lift`].
    pub neighbours: f32,
    /// How clearly the text says the label's name: [`gnnxml_shared::model::names::LabelNames::sign`].
    pub name: f32,
    pub truth: bool,
}

impl Outcome {
    /// What the score sees.
    pub fn signs(&self, log_inverse_propensity: f32) -> Signs {
        Signs {
            log_cluster: self.log_cluster,
            margin: self.margin,
            neighbours: self.neighbours,
            name: self.name,
            log_inverse_propensity,
        }
    }
}

/// A held-out document: its candidates and its true labels (also those no candidate reached).
#[derive(Clone, Debug, Default)]
pub struct HeldOut {
    pub outcomes: Vec<Outcome>,
    pub truth: Vec<u32>,
}

impl HeldOut {
    /// The candidates of clusters that are looked into with that [`Score::cluster_floor`].
    pub fn asked(&self, floor: Option<f32>) -> impl Iterator<Item = &Outcome> {
        let most = self
            .outcomes
            .iter()
            .map(|o| o.log_cluster)
            .fold(f32::MIN, f32::max);
        let floor = floor.unwrap_or(f32::MIN).min(most);
        self.outcomes.iter().filter(move |o| o.log_cluster >= floor)
    }
}

/// Candidates of a document that can come first under any mixture.
const CONTENDERS: usize = 64;
/// Knots of an isotonic calibration.
const KNOTS: usize = 64;
/// b. Weights of the log-odds are fitted to be right; this much of them, beside γ, lies on the plateau of four corpora (docs/results/choices.md).
const EXPONENT: f32 = 0.5;
/// γ, where a search over it begins.
const GAMMA: f32 = 0.12;
/// What another γ must gain, times the root of the number of documents. Small gains along γ trade points of P@1 for points of PSP@1; the size
/// was set by hand so that a preset keeps to one side of that trade (docs/results/choices.md), not by a test of significance.
const GAIN: f64 = 0.3;

/// Fits everything. Without held-out documents the paper's plain product stays.
pub fn fit(held_out: &[HeldOut], frequencies: &LabelFrequencies, settings: &ScoreSettings) -> Score {
    let mut score = Score {
        clusters: settings.clusters,
        ..Score::default()
    };
    let outcomes = || held_out.iter().flat_map(|document| &document.outcomes);
    if !outcomes().any(|outcome| outcome.truth) {
        return score;
    }
    let contests = contenders(held_out, frequencies, None);
    weigh(&mut score, &contests, frequencies);
    score.gamma = settings
        .gamma
        .unwrap_or_else(|| best_gamma(&score, &contests, frequencies, settings.tail_emphasis));
    score.cluster_floor = highest_floor(&score, held_out, frequencies, settings);

    let prior = |label: u32| frequencies.inverse_propensity(label).ln() as f32;
    let mut scored: Vec<(f32, bool)> = held_out
        .iter()
        .flat_map(|document| document.asked(score.cluster_floor))
        .map(|o| (score.log_score(o.signs(prior(o.label))), o.truth))
        .collect();
    score.calibration = match settings.calibration {
        CalibrationKind::Platt => {
            let ceiling = score.gamma * rarest(frequencies);
            let odds: Vec<(f32, bool)> = scored
                .iter()
                .map(|&(s, truth)| (log_odds(s - ceiling), truth))
                .collect();
            Calibration::Platt {
                sigmoid: platt::fit(&odds),
                ceiling,
            }
        }
        CalibrationKind::Isotonic => isotonic(&mut scored),
    };
    let truths = held_out.iter().map(|d| d.truth.len()).sum();
    score.cutoff = best_cutoff(&score.calibration, &scored, truths);
    score
}

/// The largest ln(1/p_ℓ).
fn rarest(frequencies: &LabelFrequencies) -> f32 {
    (0..frequencies.len() as u32)
        .map(|label| frequencies.inverse_propensity(label).ln() as f32)
        .fold(0.0, f32::max)
}

/// A document reduced to the candidates that matter, highest margin first, with ln(1/p_ℓ) beside each.
struct Contest {
    candidates: Vec<(Outcome, f32)>,
    truth: Vec<u32>,
}

fn contenders(held_out: &[HeldOut], frequencies: &LabelFrequencies, floor: Option<f32>) -> Vec<Contest> {
    held_out
        .iter()
        .filter(|document| !document.truth.is_empty())
        .map(|document| {
            let mut outcomes: Vec<Outcome> = document.asked(floor).copied().collect();
            outcomes.sort_by(|a, b| b.margin.total_cmp(&a.margin).then(a.label.cmp(&b.label)));
            outcomes.truncate(CONTENDERS);
            let prior = |label| frequencies.inverse_propensity(label).ln() as f32;
            Contest {
                candidates: outcomes.into_iter().map(|o| (o, prior(o.label))).collect(),
                truth: document.truth.clone(),
            }
        })
        .collect()
}

/// Fits what a label's log-odds are the sum of.
///
/// Only the labels that are in question tell how to weigh what is known of them: of each document the strongest few, twice
/// as many as documents have labels. Hundreds of others are wrong whatever the weights, and would shape them all the same.
fn weigh(score: &mut Score, contests: &[Contest], frequencies: &LabelFrequencies) {
    let labels: usize = contests.iter().map(|contest| contest.truth.len()).sum();
    let strongest = (2 * labels).div_ceil(contests.len().max(1)).max(8);
    let rarest = rarest(frequencies).max(f32::MIN_POSITIVE);
    let mut observed = Observations::default();
    for (o, prior) in contests.iter().flat_map(|c| c.candidates.iter().take(strongest)) {
        let [below, _, above] = MarginCurve::parts(o.margin);
        // Shares of the commonest and of the rarest label: a weight for each, and no label has a negative one.
        let (rare, common) = (prior / rarest, 1.0 - prior / rarest);
        let row = [
            o.margin,
            below,
            above,
            o.margin * rare,
            o.neighbours * common,
            o.neighbours * rare,
            o.name * common,
            o.name * rare,
            o.log_cluster,
            rare,
            1.0,
        ];
        observed.add(row.map(f64::from), o.truth);
    }
    let free_are_the_last = std::array::from_fn(|column| column < 9);
    let [
        slope,
        below,
        above,
        steeper,
        neighbours,
        near_rare,
        names,
        named_rare,
        cluster,
        lift,
        offset,
    ] = observed.fit(free_are_the_last).map(|weight| weight as f32);
    let weight = |common: f32, rare: f32| Weight {
        common,
        rarity: (rare - common) / rarest,
    };
    score.margin = MarginCurve {
        offset,
        // Least where labels are in question: the curve goes on rising where few documents tell how steeply.
        slopes: [slope + below, slope, slope + above],
        rarity: steeper / rarest,
    };
    score.neighbours = weight(neighbours, near_rare);
    score.names = weight(names, named_rare);
    score.lift = lift / rarest;
    score.label_exponent = EXPONENT;
    score.cluster_exponent = EXPONENT * cluster;
}

/// γ of the best ranking, unless the usual one is as good.
fn best_gamma(score: &Score, contests: &[Contest], frequencies: &LabelFrequencies, emphasis: f64) -> f32 {
    let grid: [f32; 6] = [0.0, 0.06, GAMMA, 0.18, 0.24, 0.3];
    let worth = |gamma: f32| {
        let tried = Score {
            gamma,
            ..score.clone()
        };
        goal(&tried, contests, frequencies, emphasis)
    };
    let tried: Vec<(f64, f32)> = grid.par_iter().map(|&gamma| (worth(gamma), gamma)).collect();
    let usual = worth(GAMMA);
    let best = tried.into_iter().reduce(|a, b| if b.0 > a.0 { b } else { a });
    let enough = usual + GAIN / (contests.len().max(1) as f64).sqrt();
    best.filter(|best| best.0 > enough).map_or(GAMMA, |best| best.1)
}

/// ln p(z) below which a cluster may be passed over, highest first.
const FLOORS: [f32; 12] = [
    -2.5, -3.0, -3.5, -4.0, -4.5, -5.0, -5.5, -6.0, -7.0, -8.0, -9.0, -10.0,
];

/// The highest floor that costs no more than it may: a text of one plain subject asks three clusters instead of fifteen.
fn highest_floor(
    score: &Score,
    held_out: &[HeldOut],
    frequencies: &LabelFrequencies,
    settings: &ScoreSettings,
) -> Option<f32> {
    let worth = |floor| {
        let contests = contenders(held_out, frequencies, floor);
        goal(score, &contests, frequencies, settings.tail_emphasis)
    };
    let enough = worth(None) - settings.floor_cost;
    FLOORS.into_iter().find(|&floor| worth(Some(floor)) >= enough)
}

/// mean(P@1, P@3, P@5, nDCG@5) + emphasis · mean(PSP@1, PSP@3, PSP@5), each from 0 to 1.
fn goal(score: &Score, contests: &[Contest], frequencies: &LabelFrequencies, emphasis: f64) -> f64 {
    let (mut plain, mut documents) = (0.0, 0.0);
    let (mut gained, mut possible) = ([0.0; 3], [0.0; 3]);
    let mut ranked: Vec<(f32, u32, bool)> = Vec::new();
    for contest in contests {
        ranked.clear();
        ranked.extend(
            contest
                .candidates
                .iter()
                .map(|(o, prior)| (score.log_score(o.signs(*prior)), o.label, o.truth)),
        );
        let top = ranked.len().min(5);
        if ranked.len() > 5 {
            ranked.select_nth_unstable_by(4, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        ranked[..top].sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let hits = |k: usize| ranked[..top.min(k)].iter().filter(|r| r.2);
        let discount = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let dcg: f64 = (ranked[..top].iter().enumerate())
            .filter(|r| r.1.2)
            .map(|r| discount(r.0))
            .sum();
        let ideal: f64 = (0..contest.truth.len().min(5)).map(discount).sum();
        let precision: f64 = [1, 3, 5].iter().map(|&k| hits(k).count() as f64 / k as f64).sum();
        plain += (precision + dcg / ideal) / 4.0;
        documents += 1.0;
        let mut best: Vec<f64> = contest
            .truth
            .iter()
            .map(|&l| frequencies.inverse_propensity(l))
            .collect();
        best.sort_by(|a, b| b.total_cmp(a));
        for (at, k) in [1, 3, 5].into_iter().enumerate() {
            gained[at] += hits(k).map(|r| frequencies.inverse_propensity(r.1)).sum::<f64>();
            possible[at] += best.iter().take(k).sum::<f64>();
        }
    }
    let tail: f64 = gained
        .iter()
        .zip(possible)
        .map(|(g, p)| if p > 0.0 { g / p } else { 0.0 })
        .sum();
    plain / f64::max(documents, 1.0) + emphasis * tail / 3.0
}

/// Pool adjacent violators, then knots spread evenly over positives and negatives, about [`KNOTS`] each.
pub fn isotonic(scored: &mut [(f32, bool)]) -> Calibration {
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Each pool: documents, positives, sum of scores.
    let mut pools: Vec<[f64; 3]> = Vec::new();
    for &(score, truth) in scored.iter() {
        pools.push([1.0, f64::from(u8::from(truth)), f64::from(score)]);
        while let [.., below, above] = pools[..]
            && below[1] * above[0] >= above[1] * below[0]
        {
            pools.truncate(pools.len() - 2);
            pools.push([below[0] + above[0], below[1] + above[1], below[2] + above[2]]);
        }
    }
    // Pools of a handful of outcomes are noise: join neighbours until each rests on enough of either kind. Many negatives are enough:
    // joined with the pool above for the sake of its one positive they would drag it down with them.
    let positives = scored.iter().filter(|s| s.1).count() as f64;
    let enough = |of_kind: f64| (of_kind / KNOTS as f64).max(5.0);
    let (enough_positives, enough_negatives) = (enough(positives), enough(scored.len() as f64 - positives));
    let (mut scores, mut probabilities) = (Vec::new(), Vec::new());
    let mut open = [0.0; 3];
    for (at, pool) in pools.iter().enumerate() {
        open = [open[0] + pool[0], open[1] + pool[1], open[2] + pool[2]];
        let rests = open[1] >= enough_positives || open[0] - open[1] >= enough_negatives;
        if rests || open[1] == 0.0 || at + 1 == pools.len() {
            scores.push((open[2] / open[0]) as f32);
            // Laplace's correction: never quite 0, never quite 1.
            probabilities.push(((open[1] + 0.5) / (open[0] + 1.0)) as f32);
            open = [0.0; 3];
        }
    }
    for at in 1..probabilities.len() {
        probabilities[at] = probabilities[at].max(probabilities[at - 1]);
    }
    Calibration::Isotonic {
        scores,
        probabilities,
    }
}

/// The probability at which keeping everything above gives the best micro-F1.
fn best_cutoff(calibration: &Calibration, scored: &[(f32, bool)], truths: usize) -> f32 {
    let mut by_score: Vec<(f32, bool)> = scored.to_vec();
    by_score.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut hits, mut best, mut cutoff) = (0usize, 0.0, 0.5);
    for (at, &(score, truth)) in by_score.iter().enumerate() {
        hits += usize::from(truth);
        let f1 = 2.0 * hits as f64 / (at + 1 + truths) as f64;
        if f1 > best {
            (best, cutoff) = (f1, calibration.probability(score));
        }
    }
    cutoff
}

/// The same mixture without any fitting, for a corpus too small to hold anything out.
pub fn plain(loss: Loss, settings: &ScoreSettings) -> Score {
    let margin = match loss {
        Loss::Logistic => MarginCurve::PLAIN,
        Loss::SquaredHinge => MarginCurve {
            slopes: [3.0; 3],
            ..MarginCurve::PLAIN
        },
    };
    Score {
        clusters: settings.clusters,
        margin,
        ..Score::default()
    }
}

#[cfg(test)]
mod tests {
    use gnnxml_shared::metrics::Propensity;

    use super::*;

    fn settings() -> ScoreSettings {
        ScoreSettings {
            clusters: 5,
            hold_out: 0.1,
            hold_out_at_most: 100,
            tail_emphasis: 0.25,
            floor_cost: 0.0,
            calibration: CalibrationKind::Isotonic,
            gamma: None,
            remembered_words: 0,
            names: false,
        }
    }

    /// 400 documents with 20 candidates each, true as often as σ(2m) says.
    fn drawn() -> Vec<HeldOut> {
        let mut state = 1u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as f32) / (1u64 << 31) as f32
        };
        let documents = (0..400).map(|_| {
            let outcomes: Vec<Outcome> = (0..20)
                .map(|label| {
                    let margin = 4.0 * next() - 3.0;
                    let truth = next() < 1.0 / (1.0 + (-2.0 * margin).exp());
                    Outcome {
                        label,
                        log_cluster: -0.1,
                        margin,
                        neighbours: 0.0,
                        name: 0.0,
                        truth,
                    }
                })
                .collect();
            let truth = outcomes.iter().filter(|o| o.truth).map(|o| o.label).collect();
            HeldOut { outcomes, truth }
        });
        documents.collect()
    }

    fn frequencies() -> LabelFrequencies {
        LabelFrequencies::new((1..=20).map(|n| n * 3).collect(), 400, Propensity::default())
    }

    #[test]
    fn calibrated_probabilities_are_right_as_often_as_they_say() {
        for calibration in [CalibrationKind::Isotonic, CalibrationKind::Platt] {
            let held_out = drawn();
            let labels = frequencies();
            let score = fit(
                &held_out,
                &labels,
                &ScoreSettings {
                    calibration,
                    ..settings()
                },
            );
            let mut bins = [[0.0f64; 3]; 10];
            for o in held_out.iter().flat_map(|d| d.asked(score.cluster_floor)) {
                let prior = labels.inverse_propensity(o.label).ln() as f32;
                let p = score.calibration.probability(score.log_score(o.signs(prior)));
                let bin = &mut bins[((p * 10.0) as usize).min(9)];
                *bin = [
                    bin[0] + 1.0,
                    bin[1] + f64::from(p),
                    bin[2] + f64::from(u8::from(o.truth)),
                ];
            }
            let total: f64 = bins.iter().map(|b| b[0]).sum();
            let error: f64 = bins.iter().map(|b| (b[1] - b[2]).abs()).sum::<f64>() / total;
            assert!(error < 0.03, "{calibration:?}: {error}");
        }
    }

    #[test]
    fn the_log_odds_that_made_the_outcomes_are_found_again() {
        let score = fit(&drawn(), &frequencies(), &settings());
        // Only margins told anything: their slope is 2, wherever they lie and however rare the label.
        for prior in [0.0, rarest(&frequencies())] {
            let rise = score.margin.log_odds(0.8, prior) - score.margin.log_odds(-0.8, prior);
            assert!((rise / 1.6 - 2.0).abs() < 0.5, "{rise} {score:?}");
        }
        assert_eq!((score.neighbours, score.names), (Weight::NONE, Weight::NONE));
    }

    #[test]
    fn no_evidence_lowers_a_score() {
        let score = fit(&drawn(), &frequencies(), &settings());
        let of = |margin: f32, neighbours: f32, name: f32, log_inverse_propensity: f32| {
            score.log_score(Signs {
                log_cluster: -0.5,
                margin,
                neighbours,
                name,
                log_inverse_propensity,
            })
        };
        for prior in [0.0, 0.5, 1.5] {
            for margin in [-2.0, -0.6, -0.2, 0.3, 1.0] {
                assert!(of(margin + 0.1, 0.5, 0.5, prior) >= of(margin, 0.5, 0.5, prior));
                assert!(of(margin, 1.5, 0.5, prior) >= of(margin, 0.5, 0.5, prior));
                assert!(of(margin, 0.5, 1.5, prior) >= of(margin, 0.5, 0.5, prior));
            }
        }
    }

    #[test]
    fn a_fixed_gamma_is_kept() {
        let fixed = ScoreSettings {
            gamma: Some(0.07),
            ..settings()
        };
        assert_eq!(fit(&drawn(), &frequencies(), &fixed).gamma, 0.07);
    }

    #[test]
    fn without_held_out_documents_the_plain_product_stays() {
        let score = fit(&[], &frequencies(), &settings());
        assert_eq!(
            (score.cluster_exponent, score.label_exponent, score.gamma),
            (1.0, 1.0, 0.0)
        );
    }

    #[test]
    fn an_isotonic_fit_never_falls() {
        let mut scored: Vec<(f32, bool)> = (0..500)
            .map(|i| (i as f32 / 50.0, (i * 7919) % 500 < i))
            .collect();
        let Calibration::Isotonic {
            scores,
            probabilities,
        } = isotonic(&mut scored)
        else {
            unreachable!()
        };
        assert!(scores.is_sorted() && probabilities.is_sorted());
        assert!(probabilities.len() > 5);
    }

    #[test]
    fn a_stray_positive_among_the_negatives_does_not_drag_the_sure_ones_down() {
        let negatives = (0..400).map(|i| (i as f32 / 400.0, i == 60));
        let mut scored: Vec<(f32, bool)> = negatives.chain((0..20).map(|i| (5.0 + i as f32, true))).collect();
        let calibration = isotonic(&mut scored);
        let (sure, unsure) = (calibration.probability(15.0), calibration.probability(0.5));
        assert!(sure > 0.9 && unsure < 0.02, "{sure} {unsure}");
    }
}
