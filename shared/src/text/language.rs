//! Which language a text is in, as far as the program needs to know.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
#[cfg(feature = "all-languages")]
use snowball_stemmers_rs::Algorithm;

/// The language of a text.
///
/// The languages named here have both stop words and a stemmer. Every other language is
/// [`Language::Neutral`]: words are kept as they are and told from function words by length alone.
///
/// ```
/// use gnnxml_shared::text::Language;
/// assert_eq!(Language::from_tag("en-GB"), Language::English);
/// assert_eq!(Language::from_tag("tlh"), Language::Neutral);
/// assert_eq!(serde_json::to_string(&Language::German).unwrap(), "\"de\"");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    Arabic,
    Basque,
    Catalan,
    Danish,
    Dutch,
    English,
    Finnish,
    French,
    German,
    Greek,
    Hungarian,
    Indonesian,
    Italian,
    Nepali,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Tamil,
    Turkish,
    /// Any other language, or one that nobody named.
    #[default]
    Neutral,
}

impl Language {
    /// Every language, `Neutral` last.
    pub const ALL: [Self; 23] = [
        Self::Arabic,
        Self::Basque,
        Self::Catalan,
        Self::Danish,
        Self::Dutch,
        Self::English,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hungarian,
        Self::Indonesian,
        Self::Italian,
        Self::Nepali,
        Self::Norwegian,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Spanish,
        Self::Swedish,
        Self::Tamil,
        Self::Turkish,
        Self::Neutral,
    ];

    /// The language of a BCP-47 tag; only the first subtag counts. What is not known is `Neutral`.
    pub fn from_tag(tag: &str) -> Self {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or_default();
        // Norwegian is written with two tags of its own besides the common one.
        if primary.eq_ignore_ascii_case("nb") || primary.eq_ignore_ascii_case("nn") {
            return Self::Norwegian;
        }
        Self::ALL
            .into_iter()
            .find(|language| primary.eq_ignore_ascii_case(language.tag()))
            .unwrap_or(Self::Neutral)
    }

    /// Every tag, between blanks.
    pub fn tags() -> String {
        Self::ALL.map(Self::tag).join(" ")
    }

    /// The BCP-47 tag; `und` ("undetermined") for `Neutral`.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Arabic => "ar",
            Self::Basque => "eu",
            Self::Catalan => "ca",
            Self::Danish => "da",
            Self::Dutch => "nl",
            Self::English => "en",
            Self::Finnish => "fi",
            Self::French => "fr",
            Self::German => "de",
            Self::Greek => "el",
            Self::Hungarian => "hu",
            Self::Indonesian => "id",
            Self::Italian => "it",
            Self::Nepali => "ne",
            Self::Norwegian => "no",
            Self::Portuguese => "pt",
            Self::Romanian => "ro",
            Self::Russian => "ru",
            Self::Spanish => "es",
            Self::Swedish => "sv",
            Self::Tamil => "ta",
            Self::Turkish => "tr",
            Self::Neutral => "und",
        }
    }

    /// Whether common nouns are written with a capital, so that a capital names nothing.
    pub(crate) const fn capitalises_nouns(self) -> bool {
        matches!(self, Self::German)
    }

    /// Whether "3." reads "third", so that a full stop after a small number ends nothing.
    pub(crate) const fn writes_ordinals_with_a_stop(self) -> bool {
        matches!(
            self,
            Self::Basque
                | Self::Danish
                | Self::Finnish
                | Self::German
                | Self::Hungarian
                | Self::Norwegian
                | Self::Turkish
        )
    }

    /// Whether this build holds the language's stop words and stemmer. Without them its texts would be read otherwise
    /// than they were in training.
    pub const fn is_built_in(self) -> bool {
        cfg!(feature = "all-languages") || matches!(self, Self::English | Self::Neutral)
    }

    /// The stemmer; none for `Neutral`.
    #[cfg(feature = "all-languages")]
    pub(super) const fn stemming(self) -> Option<Algorithm> {
        Some(match self {
            Self::Arabic => Algorithm::Arabic,
            Self::Basque => Algorithm::Basque,
            Self::Catalan => Algorithm::Catalan,
            Self::Danish => Algorithm::Danish,
            Self::Dutch => Algorithm::Dutch,
            Self::English => Algorithm::English,
            Self::Finnish => Algorithm::Finnish,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Greek => Algorithm::Greek,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Indonesian => Algorithm::Indonesian,
            Self::Italian => Algorithm::Italian,
            Self::Nepali => Algorithm::Nepali,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Romanian => Algorithm::Romanian,
            Self::Russian => Algorithm::Russian,
            Self::Spanish => Algorithm::Spanish,
            Self::Swedish => Algorithm::Swedish,
            Self::Tamil => Algorithm::Tamil,
            Self::Turkish => Algorithm::Turkish,
            Self::Neutral => return None,
        })
    }
}

/// A tag that names no language we know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{tag:?}: no stop words and stemmer for this language; known: {}, the last going on without them",
    Language::tags()
)]
pub struct UnknownLanguage {
    tag: String,
}

/// As a person writes a tag: one that is not known may be a slip of the pen, and `und` says that it is not.
impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(tag: &str) -> Result<Self, UnknownLanguage> {
        let language = Self::from_tag(tag);
        if language == Self::Neutral && !tag.trim().eq_ignore_ascii_case(Self::Neutral.tag()) {
            return Err(UnknownLanguage { tag: tag.to_owned() });
        }
        Ok(language)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tag())
    }
}

impl Serialize for Language {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.tag())
    }
}

impl<'de> Deserialize<'de> for Language {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tag = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Ok(Self::from_tag(&tag))
    }
}

/// On the wire a language is its tag.
#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Language {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        String::schema()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Language {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_leads_back_to_its_language() {
        for language in Language::ALL {
            assert_eq!(Language::from_tag(language.tag()), language);
            let json = serde_json::to_string(&language).unwrap();
            assert_eq!(serde_json::from_str::<Language>(&json).unwrap(), language);
        }
    }

    #[test]
    fn a_misspelt_tag_is_refused_and_an_unknown_language_can_be_meant() {
        let refused = "enlish".parse::<Language>().unwrap_err().to_string();
        assert!(
            refused.contains("\"enlish\"") && refused.contains(" en "),
            "{refused}"
        );
        assert_eq!("und".parse(), Ok(Language::Neutral));
        assert_eq!("en-GB".parse(), Ok(Language::English));
    }

    #[test]
    fn english_is_built_in_always_and_every_language_with_all_of_them() {
        for language in Language::ALL {
            let expected =
                cfg!(feature = "all-languages") || matches!(language, Language::English | Language::Neutral);
            assert_eq!(language.is_built_in(), expected, "{language:?}");
        }
    }

    #[test]
    fn region_case_and_script_do_not_matter() {
        assert_eq!(Language::from_tag("EN_us"), Language::English);
        assert_eq!(Language::from_tag("pt-BR"), Language::Portuguese);
        assert_eq!(Language::from_tag("nn-NO"), Language::Norwegian);
    }

    #[test]
    fn nothing_is_english_by_accident() {
        for tag in ["", "und", "zh-Hans", "eng lish", "x-klingon"] {
            assert_eq!(Language::from_tag(tag), Language::Neutral, "{tag:?}");
        }
        assert_eq!(Language::default(), Language::Neutral);
    }
}
