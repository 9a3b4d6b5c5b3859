//! Stems: "movement" and "movements" are one keyword.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::{Language, english};

/// Words longer than this are names of files, sequences or noise, and are left as they are.
#[cfg(feature = "all-languages")]
const MAX_STEMMED_BYTES: usize = english::LONGEST;

/// The Snowball stemmer of a language; `Neutral` leaves words as they are.
///
/// ```
/// use gnnxml_shared::text::{Language, Stemmer};
/// assert_eq!(Stemmer::new(Language::English).stem("movements"), "movement");
/// assert_eq!(Stemmer::new(Language::Neutral).stem("movements"), "movements");
/// ```
pub struct Stemmer {
    language: Language,
    #[cfg(feature = "all-languages")]
    snowball: Option<snowball_stemmers_rs::Stemmer>,
}

impl Stemmer {
    /// The stemmer of a language.
    pub fn new(language: Language) -> Self {
        Self {
            language,
            #[cfg(feature = "all-languages")]
            snowball: language.stemming().map(snowball_stemmers_rs::Stemmer::create),
        }
    }

    /// The stem of a folded word. What is not purely letters (numbers, codes, `e.g`) is its own stem.
    pub fn stem<'a>(&self, folded: &'a str) -> Cow<'a, str> {
        let stem = match self.language {
            Language::English => english::stem(folded),
            _ => self.foreign_stem(folded),
        };
        if stem.is_empty() {
            Cow::Borrowed(folded)
        } else {
            stem
        }
    }

    #[cfg(feature = "all-languages")]
    fn foreign_stem<'a>(&self, folded: &'a str) -> Cow<'a, str> {
        match &self.snowball {
            Some(snowball) if folded.len() <= MAX_STEMMED_BYTES && is_a_word(folded) => snowball.stem(folded),
            _ => Cow::Borrowed(folded),
        }
    }

    /// Other languages are not built in.
    #[cfg(not(feature = "all-languages"))]
    fn foreign_stem<'a>(&self, folded: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(folded)
    }
}

#[cfg(feature = "all-languages")]
fn is_a_word(folded: &str) -> bool {
    if folded.is_ascii() {
        return folded
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'\'');
    }
    folded.chars().all(char::is_alphabetic)
}

impl fmt::Debug for Stemmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stemmer")
            .field("language", &self.language)
            .finish_non_exhaustive()
    }
}

/// A stemmer that remembers, for callers that meet the same words in many documents.
///
/// It forgets everything when full, so its memory is bounded whatever the corpus.
#[derive(Debug)]
pub struct StemCache {
    stemmer: Stemmer,
    known: HashMap<Box<str>, Box<str>>,
    capacity: usize,
}

impl StemCache {
    /// An empty memory of at most `capacity` words.
    pub fn new(language: Language, capacity: usize) -> Self {
        Self {
            stemmer: Stemmer::new(language),
            known: HashMap::new(),
            capacity: capacity.max(1),
        }
    }

    /// The stem of a folded word.
    pub fn stem(&mut self, folded: &str) -> &str {
        if !self.known.contains_key(folded) {
            if self.known.len() >= self.capacity {
                self.known.clear();
            }
            self.known.insert(folded.into(), self.stemmer.stem(folded).into());
        }
        &self.known[folded]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn inflections_share_a_stem() {
        let stemmer = Stemmer::new(Language::English);
        assert_eq!(stemmer.stem("regulations"), stemmer.stem("regulation"));
    }

    #[cfg(feature = "all-languages")]
    #[test]
    fn inflections_of_other_languages_share_a_stem() {
        let stemmer = Stemmer::new(Language::German);
        assert_eq!(stemmer.stem("häusern"), stemmer.stem("hauses"));
        let stemmer = Stemmer::new(Language::Russian);
        assert_eq!(stemmer.stem("книги"), stemmer.stem("книга"));
    }

    #[test]
    fn codes_and_numbers_are_their_own_stems() {
        let stemmer = Stemmer::new(Language::English);
        for word in ["2793/77", "b12s", "e.g", "1,750"] {
            assert_eq!(stemmer.stem(word), word);
        }
    }

    #[test]
    fn the_cache_answers_as_the_stemmer_does_and_stays_small() {
        let stemmer = Stemmer::new(Language::English);
        let mut cache = StemCache::new(Language::English, 3);
        for word in ["cats", "dogs", "running", "ponies", "cats", "tables"] {
            assert_eq!(cache.stem(word), stemmer.stem(word));
            assert!(cache.known.len() <= 3);
        }
    }

    proptest! {
        #[test]
        fn no_word_of_any_script_breaks_a_stemmer(word in "[\\p{L}\\p{M}'.0-9]{0,24}") {
            let folded = super::super::fold(&word);
            for language in Language::ALL {
                let _ = Stemmer::new(language).stem(&folded);
            }
        }
    }
}
