//! From cluster and margin to one number a person can read.
//!
//! For label ℓ of cluster k, with margin m from its ranker and p_ℓ its propensity:
//!
//! ```text
//! π     = ln(1/p_ℓ)                                          how rare the label is
//! t     = f(m, π) + lift·π + ν(π)·n_ℓ(x) + μ(π)·c_ℓ(x)       log-odds of the label in its cluster
//! s     = a·ln p(z=k|x) + ln σ(b·t) + γ·π                    log-score: p(z)^a · p(y|z,x)^b · (1/p_ℓ)^γ
//! p     = calibration(s)                                     what is shown
//! ```
//!
//! f bends at two margins and never falls ([`MarginCurve`]); n_ℓ(x) is what the most similar training documents say
//! ([`super::neighbours`]), c_ℓ(x) how clearly the text says the label's name ([`super::names`]), and their weights may differ for common and
//! rare labels but are never negative ([`Weight`]): no evidence for a label lowers its score.
//!
//! The paper multiplies the two probabilities and stops there. The exponents a and b say how far each factor is trusted; `lift`
//! undoes the ranker's habit of under-scoring labels with few documents, and γ prefers the rarer of two labels that are
//! both sure. All are fitted on documents the rankers did not see. Nothing here ranks: see [`super::tagger`].

use serde::{Deserialize, Serialize};

/// σ(slope·m + offset).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sigmoid {
    pub slope: f32,
    pub offset: f32,
}

impl Sigmoid {
    /// σ(m): no change.
    pub const PLAIN: Self = Self {
        slope: 1.0,
        offset: 0.0,
    };

    /// slope·m + offset.
    pub fn log_odds(self, margin: f32) -> f32 {
        self.slope * margin + self.offset
    }

    /// σ(slope·m + offset).
    pub fn probability(self, margin: f32) -> f32 {
        sigmoid(self.log_odds(margin))
    }
}

/// f(m, π): from a ranker's margin to log-odds, three straight lines that meet at [`Self::KNOTS`], steeper or not for rare labels.
///
/// A margin below −½ is a label that was hardly in question, above 0 one that is hardly in doubt; what lies between is worth
/// something else a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarginCurve {
    pub offset: f32,
    /// Below, between and above the knots.
    pub slopes: [f32; 3],
    /// What π adds to every slope.
    pub rarity: f32,
}

impl MarginCurve {
    /// Where the lines meet.
    pub const KNOTS: [f32; 2] = [-0.5, 0.0];

    /// f(m) = m: no change.
    pub const PLAIN: Self = Self {
        offset: 0.0,
        slopes: [1.0; 3],
        rarity: 0.0,
    };

    /// The margin's part on each of the three lines; they add up to it.
    pub fn parts(margin: f32) -> [f32; 3] {
        let [low, high] = Self::KNOTS;
        [
            (margin - low).min(0.0),
            margin.clamp(low, high),
            (margin - high).max(0.0),
        ]
    }

    /// f(m, π).
    pub fn log_odds(&self, margin: f32, log_inverse_propensity: f32) -> f32 {
        let parts = Self::parts(margin);
        self.offset
            + self.slopes[0] * parts[0]
            + self.slopes[1] * parts[1]
            + self.slopes[2] * parts[2]
            + self.rarity * log_inverse_propensity * margin
    }

    /// The steepest line where labels are in question, for a label of that π.
    pub fn steepest(&self, log_inverse_propensity: f32) -> f32 {
        self.slopes[1].max(self.slopes[2]) + self.rarity * log_inverse_propensity
    }
}

/// A sign's weight in the log-odds: `common + rarity·π`, never below 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    pub common: f32,
    pub rarity: f32,
}

impl Weight {
    /// No weight at all.
    pub const NONE: Self = Self {
        common: 0.0,
        rarity: 0.0,
    };

    /// The weight for a label of that π.
    pub fn at(self, log_inverse_propensity: f32) -> f32 {
        (self.common + self.rarity * log_inverse_propensity).max(0.0)
    }
}

/// 1/(1 + e^−x), without overflow.
pub fn sigmoid(x: f32) -> f32 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// ln σ(x), without overflow.
pub fn log_sigmoid(x: f32) -> f32 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

/// ln(q/(1−q)) of ln q; finite also for q = 1.
pub fn log_odds(log_probability: f32) -> f32 {
    let log_probability = log_probability.min(-1e-6);
    log_probability - (-log_probability.exp_m1()).ln()
}

/// How a log-score becomes a probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Calibration {
    /// σ(slope·ln(q/(1−q)) + offset) with q = e^(s − ceiling): a log-score ends at its ceiling, its log-odds do not, so a
    /// straight line through them can bend at both ends.
    Platt {
        sigmoid: Sigmoid,
        /// The highest log-score there can be: γ · the largest ln(1/p_ℓ).
        ceiling: f32,
    },
    /// Straight lines between rising knots (log-score, probability); constant beyond both ends.
    Isotonic {
        scores: Vec<f32>,
        probabilities: Vec<f32>,
    },
}

impl Calibration {
    /// The probability for a log-score; never falls when the score rises.
    pub fn probability(&self, score: f32) -> f32 {
        match self {
            Self::Platt { sigmoid, ceiling } => sigmoid.probability(log_odds(score - ceiling)),
            Self::Isotonic {
                scores,
                probabilities,
            } => {
                let above = scores.partition_point(|&knot| knot <= score);
                match (above.checked_sub(1), probabilities.get(above)) {
                    (None, first) => first.copied().unwrap_or(0.0),
                    (Some(below), None) => probabilities[below],
                    (Some(below), Some(&high)) => {
                        let low = probabilities[below];
                        let (from, to) = (scores[below], scores[above]);
                        let share = if to > from {
                            (score - from) / (to - from)
                        } else {
                            1.0
                        };
                        low + share * (high - low)
                    }
                }
            }
        }
    }

    /// Whether [`Self::probability`] has an answer for every score.
    fn validate(&self) -> Result<(), ScoreError> {
        match self {
            Self::Platt { sigmoid, ceiling } => ScoreError::unless_finite([
                ("calibration slope", sigmoid.slope),
                ("calibration offset", sigmoid.offset),
                ("calibration ceiling", *ceiling),
            ]),
            Self::Isotonic {
                scores,
                probabilities,
            } => {
                if scores.len() != probabilities.len() {
                    let found = format!("{} scores, {} probabilities", scores.len(), probabilities.len());
                    return Err(ScoreError::new("calibration", found, "as many of both"));
                }
                let each = |what, numbers: &[f32]| {
                    ScoreError::unless_finite(numbers.iter().map(|&number| (what, number)))
                };
                each("calibration score", scores)?;
                each("calibration probability", probabilities)?;
                match scores.windows(2).find(|pair| pair[0] > pair[1]) {
                    Some(pair) => {
                        let found = format!("{} after {}", pair[1], pair[0]);
                        Err(ScoreError::new(
                            "calibration score",
                            found,
                            "scores that do not fall",
                        ))
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

/// What is wrong with a score that was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {found}; expected {expected}")]
pub struct ScoreError {
    pub what: &'static str,
    pub found: String,
    pub expected: &'static str,
}

impl ScoreError {
    fn new(what: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self {
            what,
            found: found.to_string(),
            expected,
        }
    }

    /// Complains of the first number that is not finite.
    fn unless_finite(numbers: impl IntoIterator<Item = (&'static str, f32)>) -> Result<(), Self> {
        match numbers.into_iter().find(|number| !number.1.is_finite()) {
            Some((what, found)) => Err(Self::new(what, found, "a finite number")),
            None => Ok(()),
        }
    }
}

/// The `count` clusters of highest log-odds, best first, ties by number.
pub fn strongest(log_odds: &[f32], count: usize) -> Vec<u32> {
    let mut clusters: Vec<u32> = (0..log_odds.len() as u32).collect();
    let better = |a: &u32, b: &u32| {
        log_odds[*b as usize]
            .total_cmp(&log_odds[*a as usize])
            .then(a.cmp(b))
    };
    if count < clusters.len() {
        clusters.select_nth_unstable_by(count, better);
        clusters.truncate(count);
    }
    clusters.sort_unstable_by(better);
    // Training keeps one of these a document: the room for all clusters must not stay with it.
    clusters.shrink_to_fit();
    clusters
}

/// What a model knows about one label and a text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signs {
    /// ln p(z=k|x).
    pub log_cluster: f32,
    /// m.
    pub margin: f32,
    /// n_ℓ(x): [`super::neighbours::lift`] of the label's vote.
    pub neighbours: f32,
    /// c_ℓ(x): [`super::names::LabelNames::sign`].
    pub name: f32,
    /// ln(1/p_ℓ).
    pub log_inverse_propensity: f32,
}

/// The fitted mixture of everything a model knows about a label and a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// f.
    pub margin: MarginCurve,
    /// a.
    pub cluster_exponent: f32,
    /// b.
    pub label_exponent: f32,
    /// Weight of ln(1/p_ℓ) inside the log-odds.
    pub lift: f32,
    /// ν.
    pub neighbours: Weight,
    /// μ.
    pub names: Weight,
    /// γ.
    pub gamma: f32,
    /// B: how many clusters are looked into at most.
    pub clusters: usize,
    /// Clusters with a lower ln p(z=k|x) are not looked into, but for the most probable one.
    #[serde(default)]
    pub cluster_floor: Option<f32>,
    pub calibration: Calibration,
    /// The probability at which keeping a tag gives the best F1.
    pub cutoff: f32,
}

impl Default for Score {
    fn default() -> Self {
        Self {
            margin: MarginCurve::PLAIN,
            cluster_exponent: 1.0,
            label_exponent: 1.0,
            lift: 0.0,
            neighbours: Weight::NONE,
            names: Weight::NONE,
            gamma: 0.0,
            clusters: 10,
            cluster_floor: None,
            calibration: Calibration::Platt {
                sigmoid: Sigmoid::PLAIN,
                ceiling: 0.0,
            },
            cutoff: 0.5,
        }
    }
}

impl Score {
    /// The clusters a text is looked for in, most probable first, ties by number.
    pub fn asked(&self, cluster_log_odds: &[f32]) -> Vec<u32> {
        let mut clusters = strongest(cluster_log_odds, self.clusters);
        if let Some(floor) = self.cluster_floor {
            let above = |&cluster: &u32| log_sigmoid(cluster_log_odds[cluster as usize]) >= floor;
            clusters.truncate(clusters.partition_point(above).max(1));
        }
        clusters
    }

    /// Whether it can score anything: what was fitted always can, what a file says may not.
    pub fn validate(&self) -> Result<(), ScoreError> {
        if self.clusters == 0 {
            return Err(ScoreError::new("score clusters", self.clusters, "at least 1"));
        }
        ScoreError::unless_finite([
            ("margin offset", self.margin.offset),
            ("margin slope below", self.margin.slopes[0]),
            ("margin slope between", self.margin.slopes[1]),
            ("margin slope above", self.margin.slopes[2]),
            ("margin slope of rarity", self.margin.rarity),
            ("cluster exponent", self.cluster_exponent),
            ("label exponent", self.label_exponent),
            ("lift", self.lift),
            ("weight of the neighbours", self.neighbours.common),
            ("weight of the neighbours by rarity", self.neighbours.rarity),
            ("weight of the names", self.names.common),
            ("weight of the names by rarity", self.names.rarity),
            ("gamma", self.gamma),
            ("cluster floor", self.cluster_floor.unwrap_or_default()),
            ("cutoff", self.cutoff),
        ])?;
        self.calibration.validate()
    }

    /// s.
    pub fn log_score(&self, signs: Signs) -> f32 {
        let rarity = signs.log_inverse_propensity;
        let t = self.margin.log_odds(signs.margin, rarity)
            + self.lift * rarity
            + self.neighbours.at(rarity) * signs.neighbours
            + self.names.at(rarity) * signs.name;
        self.cluster_exponent * signs.log_cluster + log_sigmoid(self.label_exponent * t) + self.gamma * rarity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_clusters_take_no_room_for_the_others() {
        let log_odds: Vec<f32> = (0..10_000).map(|k| (k % 97) as f32).collect();
        let found = strongest(&log_odds, 3);
        assert_eq!(found, [96, 193, 290]);
        assert!(found.capacity() < 16, "{}", found.capacity());
    }

    #[test]
    fn sigmoids_survive_extreme_log_odds() {
        for x in [-1e30f32, -200.0, 0.0, 200.0, 1e30] {
            assert!((0.0..=1.0).contains(&sigmoid(x)), "{x}");
            assert!(log_sigmoid(x) <= 0.0 && !log_sigmoid(x).is_nan(), "{x}");
        }
        assert!((log_sigmoid(-3.0) - sigmoid(-3.0).ln()).abs() < 1e-6);
        assert!(log_odds(0.0).is_finite() && log_odds(1.0).is_finite());
        assert!((log_odds(sigmoid(1.3).ln()) - 1.3).abs() < 1e-5);
    }

    #[test]
    fn an_isotonic_calibration_interpolates_and_stays_flat_beyond_its_ends() {
        let c = Calibration::Isotonic {
            scores: vec![-2.0, 0.0, 1.0],
            probabilities: vec![0.1, 0.5, 0.9],
        };
        let found = [-9.0, -2.0, -1.0, 0.0, 0.5, 1.0, 9.0].map(|s| c.probability(s));
        for (found, expected) in found.iter().zip([0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 0.9]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn an_isotonic_calibration_without_knots_answers_zero() {
        let c = Calibration::Isotonic {
            scores: vec![],
            probabilities: vec![],
        };
        assert_eq!(c.probability(3.0), 0.0);
    }

    #[test]
    fn a_score_that_could_not_answer_is_refused_by_what_is_wrong() {
        let isotonic = |scores: &[f32], probabilities: &[f32]| Score {
            calibration: Calibration::Isotonic {
                scores: scores.to_vec(),
                probabilities: probabilities.to_vec(),
            },
            ..Score::default()
        };
        Score::default().validate().unwrap();
        isotonic(&[], &[]).validate().unwrap();
        isotonic(&[-1.0, -1.0, 0.0], &[0.1, 0.2, 0.3]).validate().unwrap();
        let none = Score {
            clusters: 0,
            ..Score::default()
        };
        let endless = Score {
            lift: f32::INFINITY,
            ..Score::default()
        };
        for (score, said) in [
            (isotonic(&[-100.0], &[0.1, 0.5, 0.9]), "1 scores, 3 probabilities"),
            (isotonic(&[0.0, -1.0], &[0.1, 0.5]), "-1 after 0"),
            (isotonic(&[0.0, f32::NAN], &[0.1, 0.5]), "NaN"),
            (
                isotonic(&[0.0], &[f32::INFINITY]),
                "calibration probability is inf",
            ),
            (none, "score clusters is 0"),
            (endless, "lift is inf"),
        ] {
            let fault = score.validate().unwrap_err().to_string();
            assert!(fault.contains(said), "{fault}");
        }
    }

    #[test]
    fn with_exponents_of_one_the_log_score_is_the_papers_product() {
        let score = Score::default();
        let (p_cluster, margin) = (0.3f32, 0.7f32);
        let expected = (p_cluster * sigmoid(margin)).ln();
        let signs = Signs {
            log_cluster: p_cluster.ln(),
            margin,
            neighbours: 1.0,
            name: 1.0,
            log_inverse_propensity: 2.0,
        };
        assert!((score.log_score(signs) - expected).abs() < 1e-6);
        let p = score.calibration.probability(expected);
        assert!((p - expected.exp()).abs() < 1e-6, "{p}");
    }

    #[test]
    fn a_margin_is_the_sum_of_its_parts_and_the_curve_bends_only_at_its_knots() {
        let curve = MarginCurve {
            offset: 0.25,
            slopes: [7.0, 2.0, 3.0],
            rarity: 0.5,
        };
        for (margin, expected) in [
            (-1.0, -3.5 - 1.0),
            (-0.5, -1.0),
            (-0.25, -0.5),
            (0.0, 0.0),
            (2.0, 6.0),
        ] {
            assert_eq!(MarginCurve::parts(margin).iter().sum::<f32>(), margin);
            assert!(
                (curve.log_odds(margin, 0.0) - expected - 0.25).abs() < 1e-6,
                "{margin}"
            );
            assert!((curve.log_odds(margin, 2.0) - expected - 0.25 - margin).abs() < 1e-6);
        }
        assert_eq!(MarginCurve::PLAIN.log_odds(-3.0, 9.0), -3.0);
    }

    #[test]
    fn a_weight_is_never_below_nothing() {
        let weight = Weight {
            common: 0.5,
            rarity: -0.25,
        };
        assert_eq!(
            [0.0, 1.0, 2.0, 3.0].map(|rarity| weight.at(rarity)),
            [0.5, 0.25, 0.0, 0.0]
        );
    }

    #[test]
    fn the_prior_prefers_the_rarer_of_two_equal_labels() {
        let score = Score {
            gamma: 0.3,
            ..Score::default()
        };
        let of = |log_inverse_propensity| {
            score.log_score(Signs {
                log_cluster: -0.1,
                margin: 2.0,
                neighbours: 0.0,
                name: 0.0,
                log_inverse_propensity,
            })
        };
        assert!(of(1.5) > of(0.2));
    }
}
