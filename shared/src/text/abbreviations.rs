//! Words whose full stop does not end a sentence.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Language;

/// What the full stop after a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Something always follows in the same sentence: "Dr.", "e.g.".
    Never,
    /// A number or a letter may follow in the same sentence: "No. 5", "Art. 3", "Dec. 24".
    BeforeNumber,
    /// May end a sentence or not; only the next word tells: "Inc.", "U.S.".
    Perhaps,
    /// An ordinary word.
    Ends,
}

/// Titles, ranks and Latin that European languages share.
const SHARED: &str = "cf dr e.g eg i.e ie ibid op mag mt phd prof resp st viz vs ca approx";
const SHARED_NUMBERED: &str = "abb abs app art bd cap cl ed eq eqn fig figs fol gl lit nr p para pos pp ref sec sect sig tab vol vols ver";
const SHARED_PERHAPS: &str = "al co corp etc inc jr ltd sr llc plc bros assn dept univ est";

const ENGLISH: &str = "adm attn brig capt cdr cmdr col cpl fr gen gov hon lt maj messrs mgr mlle mme mr mrs ms msgr \
    pres pvt rep revd rev sen sgt sens reps gens supt esp incl al.s asst";
const ENGLISH_NUMBERED: &str =
    "jan feb mar apr jun jul aug sep sept oct nov dec no nos ch chap arts cit ex lect pt pts reg stat";
const ENGLISH_PERHAPS: &str =
    "a.m p.m ave blvd rd ft in min max hr hrs sec yr yrs mon tue tues wed thu thur thurs fri sat sun";

const GERMAN: &str = "bzw bspw d.h ggf hl hr fr inkl insb sog u.a usw.a z.b z.t zzgl evtl vgl geb gest str dipl ing frl \
    o.ä s.o s.u st u.u einschl ausschl zb";
const GERMAN_NUMBERED: &str = "ziff kap lfd anm aufl jan feb mär apr jun jul aug sept okt nov dez";
const FRENCH: &str = "m mm mme mlle mgr me av c.-à-d p.ex env boul";
const FRENCH_NUMBERED: &str = "n no chap janv févr avr juil sept oct nov déc al";
const SPANISH: &str = "sr sra sres srta d dña dra ud uds ee.uu p.ej av avda gral excmo";
const SPANISH_NUMBERED: &str = "núm pág págs cap ene abr ago sept dic";
const ITALIAN: &str = "sig sigg sig.ra dott dott.ssa avv ing arch on sen es egr gent";
const ITALIAN_NUMBERED: &str = "pag pagg n artt co lett";
const PORTUGUESE: &str = "sr sra srs dra exmo ex av eng d";
const PORTUGUESE_NUMBERED: &str = "núm pág págs cap inc n";
const DUTCH: &str = "dhr mevr mw ir ing drs mr d.w.z bijv o.a t.a.v m.b.t i.v.m a.u.b jhr evt incl excl";
const DUTCH_NUMBERED: &str = "blz hfdst lid nrs jan febr mrt apr jun jul aug sept okt nov dec";

/// What a full stop after `folded` (given without it) means.
pub(super) fn stop_after(folded: &str, language: Language) -> Stop {
    static TABLES: [OnceLock<HashMap<&'static str, Stop>>; Language::ALL.len()] =
        [const { OnceLock::new() }; Language::ALL.len()];
    TABLES[language as usize]
        .get_or_init(|| table(language))
        .get(folded)
        .copied()
        .unwrap_or(Stop::Ends)
}

fn table(language: Language) -> HashMap<&'static str, Stop> {
    let (never, numbered, perhaps) = match language {
        Language::English => (ENGLISH, ENGLISH_NUMBERED, ENGLISH_PERHAPS),
        Language::German => (GERMAN, GERMAN_NUMBERED, "usw"),
        Language::French => (FRENCH, FRENCH_NUMBERED, ""),
        Language::Spanish | Language::Catalan => (SPANISH, SPANISH_NUMBERED, ""),
        Language::Italian => (ITALIAN, ITALIAN_NUMBERED, "ecc"),
        Language::Portuguese => (PORTUGUESE, PORTUGUESE_NUMBERED, ""),
        Language::Dutch => (DUTCH, DUTCH_NUMBERED, "enz"),
        _ => ("", "", ""),
    };
    let mut table = HashMap::new();
    // A language's own meaning of a word goes before the shared one.
    for (list, stop) in [
        (never, Stop::Never),
        (numbered, Stop::BeforeNumber),
        (perhaps, Stop::Perhaps),
        (SHARED, Stop::Never),
        (SHARED_NUMBERED, Stop::BeforeNumber),
        (SHARED_PERHAPS, Stop::Perhaps),
    ] {
        for word in list.split_ascii_whitespace() {
            table.entry(word).or_insert(stop);
        }
    }
    table
}
