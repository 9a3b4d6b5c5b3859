//! Each format in, the same documents out.

use proptest::prelude::*;

use super::*;

#[test]
fn an_object_may_lack_id_and_labels_and_have_more() {
    let sample = Sample::new(
        "c.jsonl",
        "{\"text\": \"Tin.\", \"year\": 1987}\n{\"id\": 7, \"text\": \"\", \"labels\": [\"x\", \"x\"]}",
    );
    assert_eq!(
        sample.documents(),
        [document("line:1", "Tin.", &[]), document("7", "", &["x"])]
    );
}

#[test]
fn packed_corpora_are_told_by_content_not_by_name() {
    let plain = r#"{"id": "a", "text": "Tin.", "labels": ["tin"]}"#;
    let zstd =
        ruzstd::encoding::compress_to_vec(plain.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    for bytes in [plain.as_bytes().to_vec(), gzip(plain.as_bytes()), zstd] {
        assert_eq!(
            Sample::new("corpus.txt", bytes).documents(),
            [document("a", "Tin.", &["tin"])]
        );
    }
}

#[test]
fn csv_with_a_header_and_quotes() {
    let csv = "Tags,ID,Text,Note\ntin; metals,a,\"Tin, he said, \"\"rose\"\".\nAgain.\",x\n,b,Zinc fell.,y\n";
    let sample = Sample::new("corpus.csv", csv);
    assert_eq!(sample.source().format(), CorpusFormat::Csv);
    let documents = sample.documents();
    assert_eq!(
        documents[0],
        document("a", "Tin, he said, \"rose\".\nAgain.", &["tin", "metals"])
    );
    assert_eq!(documents[1], document("b", "Zinc fell.", &[]));
}

#[test]
fn title_and_body_are_joined_and_columns_can_be_chosen() {
    let csv = "uid,title,body,labels\n1,Tin,It rose.,\"[\"\"a|b\"\", \"\"c\"\"]\"\n";
    let sample = Sample::new("corpus.csv", csv);
    assert_eq!(
        sample.documents(),
        [document("1", "Tin\nIt rose.", &["a|b", "c"])]
    );
    let columns = Columns {
        text: vec!["3".into()],
        labels: Some("title".into()),
        ..Default::default()
    };
    let options = ReadOptions {
        columns,
        ..Default::default()
    };
    let chosen: Vec<_> = sample
        .source()
        .with(options)
        .open()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(chosen, [document("1", "It rose.", &["Tin"])]);
}

#[test]
fn a_column_that_is_not_there_is_named_with_those_that_are() {
    let sample = Sample::new("corpus.csv", "id,text\n1,Tin\n");
    let columns = Columns {
        labels: Some("subject".into()),
        ..Default::default()
    };
    let error = sample
        .source()
        .with(ReadOptions {
            columns,
            ..Default::default()
        })
        .open()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the columns \"id, text\", expected a column \"subject\""),
        "{error}"
    );
}

#[test]
fn tables_without_a_header_go_by_the_number_of_columns() {
    let two = Sample::new("corpus.tsv", "\"Tin rose.\ttin|metals\nZinc.\t\n");
    assert_eq!(
        two.documents()[0],
        document("line:1", "\"Tin rose.", &["tin", "metals"])
    );
    let three = Sample::new("corpus.csv", "a,Tin rose,tin\nb,Zinc fell,zinc\n");
    assert_eq!(three.documents()[1], document("b", "Zinc fell", &["zinc"]));
}

#[test]
fn a_row_with_too_few_cells_and_one_with_broken_text_are_located() {
    let bytes = [
        b"id,text,labels\n1,Tin,a\n2,Zinc\n3,caf".as_slice(),
        b"\xe9",
        b",b\n4,Lead,c\n",
    ]
    .concat();
    let sample = Sample::new("corpus.csv", bytes);
    let mut reader = sample.source().skip_bad(2).open().unwrap();
    assert_eq!(reader.by_ref().filter_map(Result::ok).count(), 2);
    let said: Vec<(u64, &str)> = reader
        .complaints()
        .iter()
        .map(|c| (c.line, c.found.as_str()))
        .collect();
    assert_eq!(said, [(3, "2 cells"), (4, "byte 0xe9 in cell 2")]);
}

#[test]
fn an_unclosed_quotation_mark_does_not_swallow_memory() {
    let csv = format!("id,text\n1,\"never closed {}", "word\n".repeat(100_000));
    let sample = Sample::new("corpus.csv", csv);
    let options = ReadOptions {
        longest_record: 50_000,
        ..Default::default()
    };
    let error = sample
        .source()
        .with(options)
        .open()
        .unwrap()
        .find_map(Result::err)
        .unwrap();
    assert!(error.to_string().contains("closing quotation mark"), "{error}");
}

#[test]
fn repository_features_become_pseudo_words() {
    let sample = Sample::new("train.txt", "3 10 5\n4,0 1:2 7:0.25\n 3:1\n2\n");
    assert_eq!(sample.source().format(), CorpusFormat::Repository);
    let expected = [
        document("1", "f1 f1 f7", &["4", "0"]),
        document("2", "f3", &[]),
        document("3", "", &["2"]),
    ];
    assert_eq!(sample.documents(), expected);
}

#[test]
fn repository_numbers_out_of_range_and_missing_lines_are_located() {
    let sample = Sample::new("train.txt", "4 10 5\n5 1:2\n0 12:1\n0 1:nan\n0 1:1\n");
    let mut reader = sample.source().skip_bad(10).open().unwrap();
    assert_eq!(reader.by_ref().filter_map(Result::ok).count(), 1);
    let said: Vec<(u64, &str)> = reader
        .complaints()
        .iter()
        .map(|c| (c.line, c.found.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (2, "\"5\" as label"),
            (3, "\"12:1\" as feature"),
            (4, "\"1:nan\" as feature")
        ]
    );
    let short = Sample::new("train.txt", "2 10 5\n1 1:1\n").error();
    assert!(
        short
            .to_string()
            .contains("the end after 1 documents, expected 2 documents"),
        "{short}"
    );
    let long = Sample::new("train.txt", "1 10 5\n1 1:1\n2 1:1\n").error();
    assert!(long.to_string().contains("one more document"), "{long}");
}

#[test]
fn texts_and_labels_side_by_side() {
    let sample = Sample::new("train_texts.txt", "Tin rose.\n\nZinc fell.\n");
    sample.beside("train_labels.txt", "tin metals\n\nzinc\n");
    let expected = [
        document("line:1", "Tin rose.", &["tin", "metals"]),
        document("line:2", "", &[]),
        document("line:3", "Zinc fell.", &["zinc"]),
    ];
    assert_eq!(sample.documents(), expected);
    // The directory will do as well.
    let documents: Vec<_> = open(sample.directory()).unwrap().map(Result::unwrap).collect();
    assert_eq!(documents, expected);
}

#[test]
fn a_bad_line_of_a_pair_leaves_the_others_in_step() {
    let sample = Sample::new("test_texts.txt", b"one\n\xff\nthree\n");
    sample.beside("test_labels.txt", "1\n2\n3\n");
    let documents: Vec<_> = sample
        .source()
        .skip_bad(1)
        .open()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        documents,
        [
            document("line:1", "one", &["1"]),
            document("line:3", "three", &["3"])
        ]
    );
}

#[test]
fn pairs_of_different_length_are_refused() {
    let sample = Sample::new("train_texts.txt", "one\ntwo\n");
    sample.beside("train_labels.txt", "1\n");
    let error = sample.error();
    assert!(
        error
            .to_string()
            .contains("the end after 1 lines, expected as many lines as"),
        "{error}"
    );
}

#[test]
fn pecos_numbers_get_their_names_from_a_list() {
    let sample = Sample::new("train.txt", "0,2\tTin rose.\n1\tZinc fell.\n");
    assert_eq!(sample.source().format(), CorpusFormat::Pecos);
    let names = sample.beside("output-labels.txt", "tin\nzinc\nmetals\n");
    let vocabulary = LabelVocabulary::read(names, "en").unwrap();
    let options = ReadOptions {
        vocabulary: Some(vocabulary.into()),
        ..Default::default()
    };
    let documents: Vec<_> = sample
        .source()
        .with(options)
        .open()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(documents[0], document("line:1", "Tin rose.", &["tin", "metals"]));
}

#[test]
fn annif_lines_and_folders() {
    let sample = Sample::new(
        "corpus.tsv",
        "Tin rose.\t<http://x/tin> <http://x/metals>\nZinc.\t\n",
    );
    assert_eq!(sample.source().format(), CorpusFormat::AnnifTsv);
    assert_eq!(sample.documents()[0].labels, ["http://x/tin", "http://x/metals"]);

    let folder = Sample::new("b.txt", "Zinc\nfell.");
    folder.beside("b.key", "zinc\nmetals\n");
    folder.beside("a.txt", "Tin rose.");
    folder.beside("a.tsv", "<http://x/tin>\ttin\n<http://x/metals>\n");
    folder.beside("c.txt", b"\xff");
    let source = CorpusSource::detect(folder.directory()).unwrap().skip_bad(1);
    assert_eq!(source.format(), CorpusFormat::AnnifFolder);
    let mut reader = source.open().unwrap();
    let documents: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(
        documents,
        [
            document("a", "Tin rose.", &["tin", "http://x/metals"]),
            document("b", "Zinc\nfell.", &["zinc", "metals"])
        ]
    );
    assert!(reader.complaints()[0].file.ends_with("c.txt"));
}

/// What a vocabulary file says, English names first.
fn vocabulary(name: &'static str, text: &str) -> Result<LabelVocabulary, CorpusError> {
    let sample = Sample::new(name, text);
    LabelVocabulary::read(sample.path(), "en")
}

const TURTLE: &str = r#"
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix x: <http://x/> .
x:tin a skos:Concept ; skos:prefLabel "tin"@en, "étain"@fr ; skos:altLabel "Sn"@en ; skos:broader x:metals .
x:metals skos:prefLabel "metals"@en ; skos:narrower x:zinc .
x:zinc skos:prefLabel "Zink"@de .
"#;

const RDF_XML: &str = r#"<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
  <skos:Concept rdf:about="http://x/tin">
    <skos:prefLabel xml:lang="en">tin</skos:prefLabel><skos:prefLabel xml:lang="fr">étain</skos:prefLabel>
    <skos:altLabel xml:lang="en">Sn</skos:altLabel><skos:broader rdf:resource="http://x/metals"/>
  </skos:Concept>
  <skos:Concept rdf:about="http://x/metals"><skos:prefLabel xml:lang="en">metals</skos:prefLabel>
    <skos:narrower rdf:resource="http://x/zinc"/></skos:Concept>
  <skos:Concept rdf:about="http://x/zinc"><skos:prefLabel xml:lang="de">Zink</skos:prefLabel></skos:Concept>
</rdf:RDF>"#;

#[test]
fn skos_in_both_notations_gives_one_vocabulary() {
    let turtle = vocabulary("v.ttl", TURTLE).unwrap();
    let xml = vocabulary("v.rdf", RDF_XML).unwrap();
    assert_eq!(turtle, xml);
    let tin = turtle.by_id("<http://x/tin>").unwrap();
    assert_eq!(
        (tin.name.as_str(), tin.alternatives.as_slice()),
        ("tin", &["Sn".to_owned()][..])
    );
    assert_eq!(turtle.by_name("Zink").unwrap().parents, ["http://x/metals"]);
    assert_eq!(turtle.parents_by_name()["tin"], ["metals"]);
}

#[test]
fn a_table_of_labels_has_names_alternatives_and_parents() {
    let text = "id\tname\talternatives\tparents\n1\ttin\tSn|stannum\t2|9\n2\tmetals\t\t\n";
    let table = vocabulary("v.tsv", text).unwrap();
    assert_eq!(table.len(), 2);
    assert_eq!(table.by_id("1").unwrap().alternatives, ["Sn", "stannum"]);
    // A parent that is not in the vocabulary has no name.
    assert_eq!(table.parents_by_name()["tin"], ["metals"]);
    let annif = vocabulary("v.tsv", "<http://x/tin>\ttin\n").unwrap();
    assert_eq!(annif.name("http://x/tin"), Some("tin"));
}

#[test]
fn a_row_cut_by_a_line_break_in_a_cell_is_put_together_again() {
    let text = "id\tname\talternatives\tparents\n1\ttin\tSn|stannum\n\t2\n2\tmetals\t\t\n";
    let table = vocabulary("v.tsv", text).unwrap();
    assert_eq!(table.len(), 2);
    assert_eq!(table.by_id("1").unwrap().alternatives, ["Sn", "stannum"]);
    assert_eq!(table.parents_by_name()["tin"], ["metals"]);
    // A row that lacks more than its id is not the rest of another one.
    let error = vocabulary("v.tsv", "id\tname\talternatives\n1\ttin\t\n\tzinc\n").unwrap_err();
    assert!(error.to_string().contains("v.tsv:3:"), "{error}");
}

#[test]
fn wrong_vocabularies_are_located() {
    let read = |text: &str| vocabulary("v.tsv", text).unwrap_err().to_string();
    assert!(
        read("id\tname\n1\ttin\n1\tzinc\n")
            .contains("v.tsv:3: found the id \"1\" a second time (first on line 2)")
    );
    assert!(read("id\tname\n1\t\n").contains("v.tsv:2:"));
    assert!(read("@prefix x: <http://x/> .\nx:a x:b \"unclosed .\n").contains("v.tsv:2"));
    assert!(read("@prefix x: <http://x/> .\nx:a x:b x:c .\n").contains("no concept with a name"));
}

#[test]
fn an_id_filter_keeps_only_what_is_listed() {
    let sample = Sample::new("c.csv", "id,text\na,1\nb,2\nc,3\n");
    let ids = IdFilter::from_file(sample.beside("ids.txt", "c\r\n\na\nz\n")).unwrap();
    assert_eq!(ids.len(), 3);
    let kept: Vec<String> = sample
        .source()
        .only(ids)
        .open()
        .unwrap()
        .map(|d| d.unwrap().id)
        .collect();
    assert_eq!(kept, ["a", "c"]);
}

proptest! {
    // Each case writes files: fewer cases than usual.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// What is written comes back, from each format that can hold it.
    #[test]
    fn documents_survive_writing_and_reading(
        texts in proptest::collection::vec("[ -~é漢🙂\"\t\n\r]{0,30}", 0..6),
        labels in proptest::collection::vec("[a-zé:\"]{1,6}( [a-z]{1,3})?", 0..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let documents: Vec<Document> = texts
            .iter()
            .enumerate()
            .map(|(number, text)| Document {
                id: format!("d{number}"),
                text: text.clone(),
                labels: super::super::document::without_repeats(labels[..number.min(labels.len())].to_vec()),
            })
            .collect();
        for name in ["c.jsonl", "c.jsonl.gz", "c.csv", "c.tsv.gz", "train_texts.txt"] {
            let path = dir.path().join(name);
            let mut writer = CorpusWriter::create(&path, WriteFormat::by_name(&path)).unwrap();
            for document in &documents {
                writer.write(document).unwrap();
            }
            prop_assert_eq!(writer.finish().unwrap(), documents.len() as u64);
            let back: Vec<Document> = open(&path).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(back.len(), documents.len(), "{}", name);
            for (back, document) in back.iter().zip(&documents) {
                match WriteFormat::by_name(&path) {
                    WriteFormat::Jsonl | WriteFormat::Csv => prop_assert_eq!(back, document),
                    WriteFormat::Tsv => {
                        prop_assert_eq!(&back.labels, &document.labels);
                        prop_assert_eq!(&back.text, &document.text.replace(['\t', '\n', '\r'], " "));
                    }
                    WriteFormat::Pairs => prop_assert_eq!(back.labels.len(), document.labels.len()),
                }
            }
        }
    }
}

#[test]
fn a_label_with_the_separator_in_it_is_not_written_to_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.tsv");
    let mut writer = CorpusWriter::create(&path, WriteFormat::Tsv).unwrap();
    let error = writer.write(&document("a", "Tin.", &["a|b"])).unwrap_err();
    assert!(error.to_string().contains("the label \"a|b\""), "{error}");
    drop(writer);
    assert!(!path.exists());
}
