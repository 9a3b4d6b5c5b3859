//! Function words: frequent, and about nothing.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::Language;
use super::words::fold;

/// Closed-class words of English that the crate's list leaves out: modals, adverbs that join sentences,
/// pro-forms of legal prose, number words.
const MORE_ENGLISH: &str = "\
    according accordingly across almost along already also although always among amongst another anyone \
    anything around became become becomes became besides can't cannot could de despite e.g e.g. eight either eleven else \
    especially etc even ever every everyone everything except far five former four furthermore get gets given \
    gives got hence hereby herein hereinafter hereof hereto however i.e inter last later latter least less let like many may \
    maybe meanwhile merely might moreover much must namely near nearly neither never nevertheless next nine \
    nobody none nonetheless nothing notwithstanding often one ones onto otherwise per perhaps pursuant quite rather \
    really recently said say says see seem seems seven several shall since six somebody someone something sometimes \
    soon still ten thereafter thereby therefore therein thereof thereto though three throughout thus \
    today together toward towards twelve twenty two unless unlike upon us used using usually various versus via viz \
    vs want well went whatever whenever whereas whereby wherein wherever whether whichever whoever whole whose \
    within without would yesterday yet";

/// Whether a folded word is a function word of the language.
///
/// `Neutral` has no list: a word of one or two Latin letters counts as a function word there.
pub fn is_stop_word(folded: &str, language: Language) -> bool {
    if language == Language::Neutral {
        return folded.len() <= 2 && folded.bytes().all(|byte| byte.is_ascii_lowercase());
    }
    list(language).contains(folded)
}

/// The set of one language, built at its first use.
fn list(language: Language) -> &'static HashSet<&'static str> {
    static LISTS: [OnceLock<HashSet<&'static str>>; Language::ALL.len()] =
        [const { OnceLock::new() }; Language::ALL.len()];
    LISTS[language as usize].get_or_init(|| {
        let mut set: HashSet<&'static str> = common(language)
            .iter()
            .copied()
            .filter(|word| fold(word) == *word)
            .collect();
        if language == Language::English {
            set.extend(MORE_ENGLISH.split_whitespace());
        }
        set
    })
}

/// The list that the crate `stop-words` has for English, written by the build script.
const ENGLISH: &[&str] = include!(concat!(env!("OUT_DIR"), "/english_stop_words.rs"));

#[cfg(feature = "all-languages")]
fn common(language: Language) -> &'static [&'static str] {
    match language {
        Language::English => ENGLISH,
        other => stop_words::lookup(other.tag()).unwrap_or_default(),
    }
}

#[cfg(not(feature = "all-languages"))]
fn common(language: Language) -> &'static [&'static str] {
    match language {
        Language::English => ENGLISH,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_language_has_its_list() {
        for language in Language::ALL {
            if language != Language::Neutral && language.is_built_in() {
                assert!(
                    list(language).len() > 40,
                    "{language:?}: {}",
                    list(language).len()
                );
            }
        }
    }

    #[cfg(feature = "all-languages")]
    #[test]
    fn languages_do_not_borrow_from_english() {
        assert!(is_stop_word("the", Language::English));
        assert!(!is_stop_word("the", Language::French));
        assert!(!is_stop_word("the", Language::Neutral));
        assert!(is_stop_word("und", Language::German));
        assert!(is_stop_word("из", Language::Russian));
    }

    /// The build script's copy of the crate could be of other features than ours.
    #[cfg(feature = "all-languages")]
    #[test]
    fn the_english_list_is_the_crates_own() {
        assert_eq!(ENGLISH, stop_words::lookup("en").unwrap());
    }

    #[test]
    fn words_of_substance_stay() {
        for word in ["system", "computer", "state", "fire", "milk", "first"] {
            assert!(!is_stop_word(word, Language::English), "{word}");
        }
    }
}
