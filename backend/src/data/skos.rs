//! SKOS concept schemes as label vocabularies: prefLabel, altLabel, broader and narrower.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use oxrdf::{NamedOrBlankNode, Term, Triple};
use oxrdfxml::{RdfXmlParseError, RdfXmlParser};
use oxttl::{TurtleParseError, TurtleParser};

use super::error::CorpusError;
use super::lines::broken_input;
use super::vocabulary::{LabelVocabulary, VocabularyEntry};

const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";
const RDFS_LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";

/// What is known of one concept while the triples go by.
#[derive(Debug, Default)]
struct Concept {
    /// (how welcome, language, name); the least of them becomes the name.
    names: Vec<(u8, String, String)>,
    alternatives: Vec<(bool, String)>,
    parents: Vec<String>,
}

pub(super) fn read_turtle(
    path: &Path,
    input: Box<dyn BufRead + Send>,
    language: &str,
) -> Result<LabelVocabulary, CorpusError> {
    let mut concepts = BTreeMap::new();
    for triple in TurtleParser::new().for_reader(input) {
        let triple = triple.map_err(|error| match error {
            TurtleParseError::Io(error) => broken_input(path, 0, error),
            TurtleParseError::Syntax(error) => CorpusError::file(
                path,
                error.location().start.line + 1,
                error.message().to_owned(),
                "Turtle",
            ),
        })?;
        take(&mut concepts, triple, language);
    }
    finish(path, concepts)
}

pub(super) fn read_rdf_xml(
    path: &Path,
    input: Box<dyn BufRead + Send>,
    language: &str,
) -> Result<LabelVocabulary, CorpusError> {
    let mut concepts = BTreeMap::new();
    for triple in RdfXmlParser::new().for_reader(input) {
        let triple = triple.map_err(|error| match error {
            RdfXmlParseError::Io(error) => broken_input(path, 0, error),
            RdfXmlParseError::Syntax(error) => CorpusError::file(path, 0, error.to_string(), "RDF/XML"),
        })?;
        take(&mut concepts, triple, language);
    }
    finish(path, concepts)
}

/// Adds what one triple says.
fn take(concepts: &mut BTreeMap<String, Concept>, triple: Triple, language: &str) {
    let NamedOrBlankNode::NamedNode(subject) = triple.subject else {
        return;
    };
    let predicate = triple.predicate.as_str();
    let property = predicate.strip_prefix(SKOS);
    match (property, triple.object) {
        (Some("prefLabel"), Term::Literal(name)) => {
            let tag = name.language().unwrap_or("").to_owned();
            let welcome = welcome(&tag, language);
            concepts.entry(subject.into_string()).or_default().names.push((
                welcome,
                tag,
                name.value().to_owned(),
            ));
        }
        (None, Term::Literal(name)) if predicate == RDFS_LABEL => {
            let tag = name.language().unwrap_or("").to_owned();
            // Only where there is no prefLabel at all.
            let welcome = 10 + welcome(&tag, language);
            concepts.entry(subject.into_string()).or_default().names.push((
                welcome,
                tag,
                name.value().to_owned(),
            ));
        }
        (Some("altLabel"), Term::Literal(name)) => {
            let ours = welcome(name.language().unwrap_or(""), language) < 2;
            concepts
                .entry(subject.into_string())
                .or_default()
                .alternatives
                .push((ours, name.value().to_owned()));
        }
        (Some("broader"), Term::NamedNode(parent)) => {
            concepts
                .entry(subject.into_string())
                .or_default()
                .parents
                .push(parent.into_string());
        }
        (Some("narrower"), Term::NamedNode(child)) => {
            concepts
                .entry(child.into_string())
                .or_default()
                .parents
                .push(subject.into_string());
        }
        _ => {}
    }
}

/// 0 for the language asked for, 1 for none, 2 for any other.
fn welcome(tag: &str, language: &str) -> u8 {
    let primary = tag.split('-').next().unwrap_or("");
    if primary.eq_ignore_ascii_case(language) {
        0
    } else if tag.is_empty() {
        1
    } else {
        2
    }
}

/// Concepts with a name become entries, in the order of their URIs.
fn finish(path: &Path, concepts: BTreeMap<String, Concept>) -> Result<LabelVocabulary, CorpusError> {
    let entries: Vec<VocabularyEntry> = concepts
        .into_iter()
        .filter_map(|(id, mut concept)| {
            let (_, _, name) = concept.names.into_iter().min()?;
            concept.parents.sort();
            concept.parents.dedup();
            let mut alternatives: Vec<String> = concept
                .alternatives
                .into_iter()
                .filter(|(ours, _)| *ours)
                .map(|(_, name)| name)
                .collect();
            alternatives.sort();
            alternatives.dedup();
            Some(VocabularyEntry {
                id,
                name,
                alternatives,
                parents: concept.parents,
            })
        })
        .collect();
    if entries.is_empty() {
        return Err(CorpusError::file(
            path,
            0,
            "no concept with a name",
            "skos:prefLabel of at least one concept",
        ));
    }
    LabelVocabulary::checked(path, entries)
}
