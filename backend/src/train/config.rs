//! Every number of a training run, as a TOML file a person can print, copy and change.

use gnnxml_shared::features::TfIdfOptions;
use gnnxml_shared::keygraph;
use gnnxml_shared::model::matcher::{MatcherError, Variant};
use gnnxml_shared::text::Language;
use serde::{Deserialize, Serialize};

use super::encode::graph_config;
use crate::labels::{ClusterOptions, LabelError};
use crate::ranker::{Loss, RankerConfig};

/// The settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    pub seed: u64,
    /// IETF tag of the texts' language, `und` for one without stop words and stemmer here, or `auto`: their function words tell.
    pub language: String,
    pub words: TfIdfOptions,
    /// Pairs of words are terms too when documents have fewer words than this on average; 0 leaves it to `words.bigrams`.
    #[serde(default)]
    pub pair_words_below: usize,
    /// This share of an average document is its lead, whose words are terms of their own, unless `words.lead` says how long it is.
    #[serde(default)]
    pub lead_share: f64,
    /// Bytes of the lead at most.
    #[serde(default)]
    pub lead_at_most: usize,
    /// Training documents kept with each label, by their beginnings, to show what it means; 0 keeps none.
    #[serde(default)]
    pub examples: usize,
    #[serde(default)]
    pub keygraph: keygraph::Options,
    pub encoder: EncoderSettings,
    /// What labels are clustered by, besides the company they keep.
    #[serde(default)]
    pub label_features: LabelFeatures,
    pub clusters: ClusterOptions,
    pub matcher: MatcherSettings,
    pub ranker: RankerSettings,
    pub score: ScoreSettings,
}

/// Where sentence vectors come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderSettings {
    /// `none`, `lsa`, `static`, `minilm`, a directory or a hub id.
    pub name: String,
    /// Width of `lsa`, and of `static` at most; the others bring their own.
    pub dims: usize,
    /// Sentences of a document that are encoded, from its beginning; 0 for all.
    #[serde(default)]
    pub sentences: u32,
}

/// What a label's vector is the sum of, over its documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelFeatures {
    /// TF-IDF.
    #[default]
    Words,
    /// The encoder's document vectors, which are there when the rankers look at them too.
    Vectors,
}

/// Which matcher chooses clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatcherKind {
    /// One-vs-all on words.
    Linear,
    /// Bilateral GIN on the KeyGraph.
    Graph,
    /// Both, mixed by a share fitted on held-out documents.
    Both,
}

/// How clusters are matched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatcherSettings {
    pub kind: MatcherKind,
    /// C of the linear matcher.
    pub cost: f64,
    /// ε of the linear matcher.
    pub tolerance: f64,
    /// Weights of the linear matcher below this are dropped.
    pub threshold: f32,
    /// Epochs of the graph network.
    pub epochs: u32,
    /// Units of its hidden layers.
    pub hidden: usize,
    /// GIN layers.
    pub layers: usize,
    /// Keyword vertices kept.
    pub max_vertices: usize,
    /// Width of its trained word embedding.
    pub embedding: usize,
    /// Which of the paper's four networks: v1 to v4, the last the whole one.
    #[serde(default)]
    pub variant: Variant,
}

/// How labels are ranked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankerSettings {
    pub loss: Loss,
    pub cost: f64,
    pub tolerance: f64,
    pub max_iterations: usize,
    pub threshold: f32,
    pub tail_weight: f64,
    /// Documents learn against the rankers of that many predicted clusters, besides their true ones.
    pub negatives: usize,
    /// Whether rankers see the document's vector beside its words.
    pub embedding: bool,
    /// What the document's vector is multiplied with before it joins the words (both have length 1).
    pub embedding_weight: f32,
    /// Rankers learn along that many of the vectors' strongest directions; 0 for all.
    #[serde(default)]
    pub directions: usize,
}

impl RankerSettings {
    /// How many directions of vectors `dims` wide rankers learn along, unless it is all of them or they see none.
    pub(super) fn directions(&self, dims: usize) -> Option<usize> {
        (self.embedding && (1..dims).contains(&self.directions)).then_some(self.directions)
    }

    /// The solver's part.
    pub fn solver(&self) -> RankerConfig {
        RankerConfig {
            loss: self.loss,
            cost: self.cost,
            tolerance: self.tolerance,
            max_iterations: self.max_iterations,
            threshold: self.threshold,
            most_weights: usize::MAX,
            tail_weight: self.tail_weight,
            keep_duals: true,
        }
    }
}

/// How the parts are mixed into one score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreSettings {
    /// B: clusters looked into.
    pub clusters: usize,
    /// Share of the training documents held out for fitting when no validation corpus is given.
    pub hold_out: f64,
    /// Documents held out at most.
    pub hold_out_at_most: usize,
    /// What a point of propensity-scored precision is worth against a point of plain precision.
    pub tail_emphasis: f64,
    /// Points of the two that passing over improbable clusters may cost, from 0 to 1.
    #[serde(default)]
    pub floor_cost: f64,
    pub calibration: CalibrationKind,
    /// Fixes γ instead of fitting it.
    #[serde(default)]
    pub gamma: Option<f32>,
    /// Words by which each training document is remembered, to be a neighbour; 0 does without neighbours.
    #[serde(default)]
    pub remembered_words: usize,
    /// Whether a label's name in the text counts.
    #[serde(default)]
    pub names: bool,
}

/// How log-scores become probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationKind {
    Platt,
    Isotonic,
}

/// The presets by name, as the files they are.
pub const PRESETS: [(&str, &str); 3] = [
    ("fast", include_str!("../../presets/fast.toml")),
    ("balanced", include_str!("../../presets/balanced.toml")),
    ("best", include_str!("../../presets/best.toml")),
];

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("there is no preset {found:?}; expected fast, balanced or best")]
    Preset { found: String },
    #[error("{file}: {error}; `gnnxml train --print-preset fast` prints a whole file to start from")]
    Toml {
        file: String,
        error: Box<toml::de::Error>,
    },
    #[error("{file}: {setting} is {found}; expected {expected}")]
    Setting {
        file: String,
        setting: String,
        found: String,
        expected: String,
    },
    #[error("{file}: [clusters] {error}")]
    Clusters { file: String, error: LabelError },
    #[error("{file}: [matcher] {error}")]
    Network { file: String, error: MatcherError },
}

/// The text of a preset.
pub fn preset(name: &str) -> Result<&'static str, ConfigError> {
    PRESETS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
        .ok_or_else(|| ConfigError::Preset {
            found: name.to_owned(),
        })
}

/// Puts every setting of `above` over the one below it, table by table.
fn overlay(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => overlay(inner, value),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// The first setting that is infinite or not a number, by its path.
fn not_a_number(settings: &toml::Value) -> Option<(String, f64)> {
    let below = |name: String, value: &toml::Value| {
        let (path, found) = not_a_number(value)?;
        Some((
            if path.is_empty() {
                name
            } else {
                format!("{name}.{path}")
            },
            found,
        ))
    };
    match settings {
        toml::Value::Float(found) if !found.is_finite() => Some((String::new(), *found)),
        toml::Value::Array(values) => {
            (values.iter().enumerate()).find_map(|(at, value)| below(at.to_string(), value))
        }
        toml::Value::Table(table) => table.iter().find_map(|(name, value)| below(name.clone(), value)),
        _ => None,
    }
}

impl TrainConfig {
    /// A preset, checked.
    pub fn of_preset(name: &str) -> Result<Self, ConfigError> {
        Self::parse(&format!("preset {name}"), preset(name)?)
    }

    /// A preset with the settings that `text` names in place of its own; `file` is what errors call that text.
    pub fn of_preset_with(name: &str, file: &str, text: &str) -> Result<Self, ConfigError> {
        let fault = |error| ConfigError::Toml {
            file: file.to_owned(),
            error: Box::new(error),
        };
        let mut settings: toml::Table = toml::from_str(preset(name)?).map_err(fault)?;
        overlay(&mut settings, toml::from_str(text).map_err(fault)?);
        let config: Self = settings.try_into().map_err(fault)?;
        config.check(file)?;
        Ok(config)
    }

    /// Reads TOML; `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::Toml {
            file: file.to_owned(),
            error: Box::new(error),
        })?;
        config.check(file)?;
        Ok(config)
    }

    /// The texts' language; none where the texts are to tell.
    pub fn text_language(&self) -> Option<Language> {
        (self.language != "auto").then(|| Language::from_tag(&self.language))
    }

    /// Whether anything looks at sentence vectors.
    pub fn needs_vectors(&self) -> bool {
        self.ranker.embedding || self.matcher.kind != MatcherKind::Linear
    }

    /// Sentences of a document that are encoded.
    pub fn encoded_sentences(&self) -> u32 {
        match self.encoder.sentences {
            0 => u32::MAX,
            some => some,
        }
    }

    /// Whether every setting is one a run can work with; `file` is what errors call them.
    pub fn check(&self, file: &str) -> Result<(), ConfigError> {
        let wrong = |setting: &str, found: String, expected: &str| {
            Err(ConfigError::Setting {
                file: file.to_owned(),
                setting: setting.to_owned(),
                found,
                expected: expected.to_owned(),
            })
        };
        if self.language != "auto" && self.language.parse::<Language>().is_err() {
            let expected = format!("auto, or one of {}", Language::tags());
            return wrong("language", format!("{:?}", self.language), &expected);
        }
        // A number that is not one fails every range; elsewhere in the file it is looked for below.
        const POSITIVE: (f64, f64, &str) = (f64::MIN_POSITIVE, f64::MAX, "a positive number");
        const NOT_NEGATIVE: (f64, f64, &str) = (0.0, f64::MAX, "zero or a positive number");
        const SHARE: (f64, f64, &str) = (0.0, 1.0, "a share from 0 to 1");
        const COUNT: (f64, f64, &str) = (1.0, u32::MAX as f64, "at least 1");
        let (words, ranker, score) = (&self.words, &self.ranker, &self.score);
        let numbers = [
            ("lead_share", self.lead_share, SHARE),
            ("words.max_df", words.max_df.into(), SHARE),
            ("words.max_features", words.max_features as f64, COUNT),
            (
                "encoder.dims",
                self.encoder.dims as f64,
                (1.0, 8192.0, "1 to 8192"),
            ),
            ("matcher.cost", self.matcher.cost, POSITIVE),
            ("matcher.tolerance", self.matcher.tolerance, POSITIVE),
            ("matcher.threshold", self.matcher.threshold.into(), NOT_NEGATIVE),
            ("ranker.cost", ranker.cost, POSITIVE),
            ("ranker.tolerance", ranker.tolerance, POSITIVE),
            ("ranker.max_iterations", ranker.max_iterations as f64, COUNT),
            ("ranker.threshold", ranker.threshold.into(), NOT_NEGATIVE),
            ("ranker.tail_weight", ranker.tail_weight, NOT_NEGATIVE),
            (
                "ranker.embedding_weight",
                ranker.embedding_weight.into(),
                NOT_NEGATIVE,
            ),
            ("score.clusters", score.clusters as f64, COUNT),
            (
                "score.hold_out",
                score.hold_out,
                (0.0, 0.9, "a share from 0 to 0.9"),
            ),
            ("score.tail_emphasis", score.tail_emphasis, NOT_NEGATIVE),
            ("score.floor_cost", score.floor_cost, NOT_NEGATIVE),
            (
                "score.remembered_words",
                score.remembered_words as f64,
                (0.0, 1024.0, "0 to 1024"),
            ),
        ];
        for (setting, found, (least, most, expected)) in numbers {
            if !(least..=most).contains(&found) {
                return wrong(setting, found.to_string(), expected);
            }
        }
        let settings = toml::Table::try_from(self).expect("settings are plain data");
        if let Some((setting, found)) = not_a_number(&settings.into()) {
            return wrong(&setting, found.to_string(), "a finite number");
        }
        let of_clusters = |error| ConfigError::Clusters {
            file: file.to_owned(),
            error,
        };
        self.clusters.check().map_err(of_clusters)?;
        if self.has_graph() {
            let of_network = |error| ConfigError::Network {
                file: file.to_owned(),
                error,
            };
            // Width, words and clusters come from the encoder and the corpus.
            graph_config(self, 1, 1, 1).validate().map_err(of_network)?;
        }
        if self.label_features == LabelFeatures::Vectors && !self.ranker.embedding {
            return wrong(
                "label_features",
                "vectors".into(),
                "words, or ranker.embedding = true, so that documents have vectors",
            );
        }
        if self.needs_vectors() && self.encoder.name == "none" {
            return wrong(
                "encoder.name",
                "none".into(),
                "an encoder, because the matcher or the ranker looks at vectors",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_reads_and_survives_a_round_trip() {
        for (name, _) in PRESETS {
            let config = TrainConfig::of_preset(name).unwrap();
            let text = toml::to_string(&config).unwrap();
            assert_eq!(TrainConfig::parse("again", &text).unwrap(), config, "{name}");
        }
    }

    #[test]
    fn a_misspelt_setting_is_named() {
        let text = preset("fast").unwrap().replace("cost =", "kost =");
        let message = TrainConfig::parse("mine.toml", &text).unwrap_err().to_string();
        assert!(
            message.contains("mine.toml") && message.contains("kost"),
            "{message}"
        );
    }

    #[test]
    fn a_preset_that_does_not_exist_names_those_that_do() {
        let message = TrainConfig::of_preset("quick").unwrap_err().to_string();
        assert!(message.contains("fast, balanced or best"), "{message}");
    }

    #[test]
    fn a_setting_out_of_range_is_refused_with_its_value() {
        let text = preset("fast")
            .unwrap()
            .replace("hold_out = 0.13", "hold_out = 1.5");
        let message = TrainConfig::parse("mine.toml", &text).unwrap_err().to_string();
        assert!(message.contains("1.5"), "{message}");
    }

    #[test]
    fn a_language_is_known_or_meant_or_told_by_the_texts() {
        let of = |tag: &str| {
            let text = format!("language = \"{tag}\"\n");
            TrainConfig::of_preset_with("fast", "mine.toml", &text).map(|config| config.text_language())
        };
        assert_eq!(of("fi").unwrap(), Some(Language::Finnish));
        assert_eq!(of("und").unwrap(), Some(Language::Neutral));
        assert_eq!(of("auto").unwrap(), None);
        let message = of("enlish").unwrap_err().to_string();
        assert!(
            message.contains("enlish") && message.contains(" en "),
            "{message}"
        );
    }

    #[test]
    fn a_number_that_is_none_is_refused_wherever_it_stands() {
        let settings = [
            ("[words]\nmax_df", "words.max_df"),
            ("[ranker]\nthreshold", "ranker.threshold"),
            ("[ranker]\ntail_weight", "ranker.tail_weight"),
            ("[ranker]\nembedding_weight", "ranker.embedding_weight"),
            ("[score]\ntail_emphasis", "score.tail_emphasis"),
            ("[score]\nfloor_cost", "score.floor_cost"),
            ("[score]\ngamma", "score.gamma"),
            ("[clusters]\ntau", "clusters.tau"),
        ];
        for (line, setting) in settings {
            for number in ["nan", "inf", "-inf"] {
                let message =
                    TrainConfig::of_preset_with("fast", "mine.toml", &format!("{line} = {number}\n"))
                        .unwrap_err()
                        .to_string();
                assert!(
                    message.contains(setting) && message.contains("mine.toml"),
                    "{message}"
                );
            }
        }
        for line in [
            "[encoder]\ndims = 0",
            "[words]\nmax_features = 0",
            "[matcher]\nkind = \"graph\"\nlayers = 0",
        ] {
            let text = format!("{line}\n");
            assert!(
                TrainConfig::of_preset_with("balanced", "mine.toml", &text).is_err(),
                "{line}"
            );
        }
    }
}
