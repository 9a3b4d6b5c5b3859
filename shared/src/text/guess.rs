//! Which language a corpus is written in, by its function words.
//!
//! Every language writes a third of its running text with a hundred small words, and no other language writes the same ones. Counted over a
//! few hundred documents nothing subtler is needed. It never looks at a single text: a title may have no small word at all.

use super::{Language, fold, is_stop_word, words};

/// Below this share of function words a text is in no language we know.
const LEAST_SHARE: f64 = 0.12;
/// Bytes of a text that are looked at.
const LOOKED_AT: usize = 2000;

/// Counts the function words of every language.
///
/// ```
/// use gnnxml_shared::text::{Language, LanguageGuess};
/// let mut guess = LanguageGuess::default();
/// guess.add("The fleet of the coast has been allowed to fish for cod since the end of May.");
/// assert_eq!(guess.language(), Language::English);
/// assert_eq!(LanguageGuess::default().language(), Language::Neutral);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LanguageGuess {
    words: u64,
    function_words: [u64; Language::ALL.len()],
}

impl LanguageGuess {
    /// Counts the words at a text's beginning.
    pub fn add(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(LOOKED_AT)];
        for word in words(text) {
            let folded = fold(&text[word.range()]);
            self.words += 1;
            for language in Language::ALL {
                let counts = language != Language::Neutral && is_stop_word(&folded, language);
                self.function_words[language as usize] += u64::from(counts);
            }
        }
    }

    /// The language with most function words; `Neutral` where none has enough, or two have as many.
    pub fn language(&self) -> Language {
        let count = |language: Language| self.function_words[language as usize];
        let most = Language::ALL.into_iter().map(count).max().unwrap_or(0);
        let mut first = Language::ALL
            .into_iter()
            .filter(|&language| count(language) == most);
        match (first.next(), first.next()) {
            (Some(language), None) if most as f64 >= LEAST_SHARE * self.words as f64 => language,
            _ => Language::Neutral,
        }
    }
}

#[cfg(all(test, feature = "all-languages"))]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Language {
        let mut guess = LanguageGuess::default();
        texts.iter().for_each(|text| guess.add(text));
        guess.language()
    }

    #[test]
    fn a_few_sentences_tell_the_language() {
        for (text, expected) in [
            (
                "Die Fischer der Küste haben im Mai mehr Kabeljau gefangen als in den Jahren zuvor, und das ist für sie ein Glück.",
                Language::German,
            ),
            (
                "Les pêcheurs de la côte ont pris plus de morue au mois de mai que dans les années précédentes.",
                Language::French,
            ),
            (
                "Los pescadores de la costa han capturado más bacalao en mayo que en los años anteriores.",
                Language::Spanish,
            ),
            (
                "Rannikon kalastajat ovat saaneet toukokuussa enemmän turskaa kuin aiempina vuosina, ja se on heille hyvä asia, mutta ei kaikille.",
                Language::Finnish,
            ),
            (
                "Kustens fiskare har fångat mer torsk i maj än under de senaste åren, och det är bra för dem som inte har något annat.",
                Language::Swedish,
            ),
            (
                "Рыбаки на побережье поймали в мае больше трески, чем в прошлые годы, и это для них хорошо.",
                Language::Russian,
            ),
        ] {
            assert_eq!(of(&[text]), expected, "{text}");
        }
    }

    #[test]
    fn most_texts_decide_and_lists_of_names_are_in_no_language() {
        let english = "It is the first of the ships that have come to the harbour since the storm.";
        let german = "Es ist das erste Schiff, das seit dem Sturm in den Hafen kam.";
        assert_eq!(of(&[english, german, english]), Language::English);
        assert_eq!(of(&["libqt5-core 5.15 amd64", "zlib1g dev"]), Language::Neutral);
        assert_eq!(of(&["漁師は五月に鱈を多く獲った。"]), Language::Neutral);
        assert_eq!(of(&["", "  "]), Language::Neutral);
        // English, Dutch and German say `in`.
        assert_eq!(
            of(&["Cocoa prices in London.", "Cocoa in Ghana."]),
            Language::Neutral
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(of(&[&"é".repeat(LOOKED_AT)]), Language::Neutral);
    }
}
