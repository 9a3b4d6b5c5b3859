//! Words that play a part in names, dates and quantities: units, months, "Article", "Ministry".
//!
//! Looked up once a distinct word of a document.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::text::Language;

/// The parts a word can play, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Roles(u16);

impl Roles {
    /// "kg", "hours", "dollars".
    pub(super) const UNIT: Self = Self(1);
    /// "million".
    pub(super) const MAGNITUDE: Self = Self(2);
    /// "EUR", before its number.
    pub(super) const CURRENCY: Self = Self(4);
    pub(super) const MONTH: Self = Self(8);
    pub(super) const WEEKDAY: Self = Self(16);
    /// "in", "since": a year follows.
    pub(super) const BEFORE_A_YEAR: Self = Self(32);
    /// A number or letter after it makes a name: "Article 5", "Annex B".
    pub(super) const DESIGNATOR: Self = Self(64);
    /// A name that goes on with "for", "on" or "to": "Centre for …", "Convention on …".
    pub(super) const INSTITUTION: Self = Self(128);
    /// A form of address, no part of a name.
    pub(super) const TITLE: Self = Self(256);
    /// Joins the words of a name in any language: "de", "van".
    pub(super) const CONNECTOR: Self = Self(512);

    pub(super) fn has(self, role: Self) -> bool {
        self.0 & role.0 != 0
    }

    /// The roles of a folded word.
    pub(super) fn of(folded: &str, language: Language) -> Self {
        static TABLES: [OnceLock<HashMap<&'static str, Roles>>; Language::ALL.len()] =
            [const { OnceLock::new() }; Language::ALL.len()];
        TABLES[language as usize]
            .get_or_init(|| table(language))
            .get(folded)
            .copied()
            .unwrap_or_default()
    }
}

fn table(language: Language) -> HashMap<&'static str, Roles> {
    let mut table: HashMap<&'static str, Roles> = HashMap::new();
    let lists = [
        (UNITS, Roles::UNIT),
        (MAGNITUDES, Roles::MAGNITUDE),
        (CURRENCIES, Roles::CURRENCY),
        (months(language), Roles::MONTH),
        (WEEKDAYS, Roles::WEEKDAY),
        (BEFORE_A_YEAR, Roles::BEFORE_A_YEAR),
        (DESIGNATORS, Roles::DESIGNATOR),
        (INSTITUTIONS, Roles::INSTITUTION),
        (TITLES, Roles::TITLE),
        (CONNECTORS, Roles::CONNECTOR),
    ];
    for (list, role) in lists {
        for word in list.split_ascii_whitespace() {
            table.entry(word).or_default().0 |= role.0;
        }
    }
    table
}

const UNITS: &str = "mg g kg µg μg ng t ml cl l dl km m cm mm nm ha \
    gram grams gramme grammes kilogram kilograms kilogramme kilogrammes kilo kilos milligram milligrams microgram \
    micrograms litre litres liter liters millilitre millilitres milliliter milliliters hectolitre hectolitres gallon \
    gallons metre metres meter meters kilometre kilometres kilometer kilometers centimetre centimetres centimeter \
    centimeters millimetre millimetres millimeter millimeters nanometre nanometres nanometer nanometers mile miles \
    foot feet inch inches yard yards hectare hectares acre acres tonne tonnes ton tons pound pounds ounce ounces \
    barrel barrels bushel bushels second seconds minute minutes hour hours day days week weeks month months year \
    years decade decades century centuries percent pct degree degrees celsius fahrenheit kelvin volt volts watt watts \
    kw mw gw kwh mwh gwh joule joules kj mj kcal calories hz khz mhz ghz bit bits byte bytes kb mb gb tb kib mib gib \
    mbps gbps pixels dollar dollars dlr dlrs euro euros eur usd gbp ecu ecus chf jpy yen pence cent cents franc \
    francs mark marks rupee rupees yuan mmol mol mmhg bpm rpm mph kph db ppm ppb \
    jahr jahre jahren tag tage tagen stunde stunden minuten sekunden prozent tonnen grad \
    an ans année années jour jours mois heure heures pourcent año años día días meses hora horas toneladas \
    anno anni giorno giorni jaar dagen uur";
const MAGNITUDES: &str = "hundred thousand million millions billion billions trillion mln bln bn mn tn k m \
    tausend millionen milliarden milliard milliards millones miliardi milioni miljoen miljard";
const CURRENCIES: &str = "eur usd gbp ecu chf jpy cny inr aud cad sek nok dkk";
const WEEKDAYS: &str = "monday tuesday wednesday thursday friday saturday sunday \
    montag dienstag mittwoch donnerstag freitag samstag sonntag";
const BEFORE_A_YEAR: &str = "in since by until till from before after during of early late mid between circa and to \
    seit ab bis um en depuis avant après dans desde hasta nel dal durante vor nach im jahr";
const DESIGNATORS: &str = "act agenda amendment annex appendix article articles case category chapter class clause \
    decision directive exhibit figure flight form grade group highway item law level lot no note opinion order \
    paragraph part phase protocol recommendation regulation regulations resolution route rule rules schedule section \
    stage step table title treaty type version volume vitamin hepatitis influenza";
const INSTITUTIONS: &str = "act agency agreement association authority board campaign centre center centers centres \
    charter code commission committee commissioner conference convention council court declaration department \
    directive directorate framework forum foundation fund group institute law ministry minister office organisation \
    organization panel partnership programme program protocol regulation rules school secretariat service services \
    society statute summit treaty tribunal union";
const TITLES: &str = "mr mrs ms dr prof sir herr frau mme mlle sr sra dott sig";
const CONNECTORS: &str =
    "de del della des du da das dos di van von der den zu zur la le el al bin ibn ten ter";

/// The names of the months; those of English serve where the language is not known.
fn months(language: Language) -> &'static str {
    match language {
        Language::German => {
            "januar februar märz april mai juni juli august september oktober november dezember"
        }
        Language::French => {
            "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
        }
        Language::Spanish => {
            "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
        }
        Language::Italian => {
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"
        }
        Language::Dutch => {
            "januari februari maart april mei juni juli augustus september oktober november december"
        }
        Language::Portuguese => {
            "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"
        }
        _ => {
            "january february march april may june july august september october november december \
             jan feb mar apr jun jul aug sep sept oct nov dec"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_can_play_several_parts() {
        let regulation = Roles::of("regulation", Language::English);
        assert!(regulation.has(Roles::DESIGNATOR) && regulation.has(Roles::INSTITUTION));
        assert!(!regulation.has(Roles::UNIT));
    }

    #[test]
    fn months_belong_to_their_language() {
        assert!(Roles::of("janeiro", Language::Portuguese).has(Roles::MONTH));
        assert!(!Roles::of("janeiro", Language::English).has(Roles::MONTH));
    }
}
