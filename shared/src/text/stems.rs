//! Stems: "movement" and "movements" are one keyword.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::Language;

/// Words longer than this are names of files, sequences or noise, and are left as they are.
const MAX_STEMMED_BYTES: usize = 64;

/// The Snowball stemmer of a language; `Neutral` leaves words as they are.
///
/// ```
/// use gnnxml_shared::text::{Language, Stemmer};
/// assert_eq!(Stemmer::new(Language::English).stem("movements"), "movement");
/// assert_eq!(Stemmer::new(Language::Neutral).stem("movements"), "movements");
/// ```
pub struct Stemmer {
    language: Language,
    snowball: Option<snowball_stemmers_rs::Stemmer>,
}

impl Stemmer {
    /// The stemmer of a language.
    pub fn new(language: Language) -> Self {
        Self {
            language,
            snowball: snowball(language),
        }
    }

    /// The stem of a folded word. What is not purely letters (numbers, codes, `e.g`) is its own stem.
    pub fn stem<'a>(&self, folded: &'a str) -> Cow<'a, str> {
        match &self.snowball {
            Some(snowball) if folded.len() <= MAX_STEMMED_BYTES && self.knows(folded) => {
                let stem = snowball.stem(folded);
                if stem.is_empty() {
                    Cow::Borrowed(folded)
                } else {
                    stem
                }
            }
            _ => Cow::Borrowed(folded),
        }
    }

    fn knows(&self, folded: &str) -> bool {
        if folded.is_ascii() {
            return folded
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'\'');
        }
        self.language != Language::English && folded.chars().all(char::is_alphabetic)
    }
}

#[cfg(feature = "all-languages")]
fn snowball(language: Language) -> Option<snowball_stemmers_rs::Stemmer> {
    language.stemming().map(snowball_stemmers_rs::Stemmer::create)
}

/// Made from a constant, so that the linker can leave out every other language's stemmer.
#[cfg(not(feature = "all-languages"))]
fn snowball(language: Language) -> Option<snowball_stemmers_rs::Stemmer> {
    use snowball_stemmers_rs::{Algorithm, Stemmer};
    (language == Language::English).then(|| Stemmer::create(Algorithm::English))
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
