//! What is wrong is said with file, line, what was found and what was expected; nothing panics, nothing is lost.

use proptest::prelude::*;

use super::*;

const GOOD: &str = r#"{"id": "a", "text": "Cocoa rose.", "labels": ["topic:cocoa"]}"#;

/// Asserts where a complaint is and that it speaks of the right things.
fn assert_complaint(error: &CorpusError, line: u64, found: &str, expected: &str) {
    let complaint = error
        .complaint()
        .unwrap_or_else(|| panic!("no complaint in {error}"));
    assert_eq!(complaint.line, line, "{complaint}");
    assert!(complaint.found.contains(found), "{complaint}");
    assert!(complaint.expected.contains(expected), "{complaint}");
    assert!(complaint.file.ends_with("corpus.jsonl"), "{complaint}");
    assert!(error.is_the_callers());
}

/// A good line, then the given one: the complaint must be about line 2.
fn second_line(line: impl AsRef<[u8]>) -> CorpusError {
    let mut bytes = [GOOD.as_bytes(), b"\n"].concat();
    bytes.extend_from_slice(line.as_ref());
    Sample::new("corpus.jsonl", bytes).error()
}

#[test]
fn a_line_that_is_not_json() {
    assert_complaint(&second_line("cocoa rose"), 2, "\"cocoa rose\"", "an object");
}

#[test]
fn a_line_that_ends_too_early() {
    assert_complaint(
        &second_line(r#"{"id": "b", "text": "Co"#),
        2,
        "ends inside",
        "the rest",
    );
}

#[test]
fn json_that_is_no_object() {
    assert_complaint(&second_line("[1, 2]"), 2, "a list", "an object");
}

#[test]
fn a_list_of_the_right_values_is_no_document() {
    assert_complaint(&second_line(r#"["b", "Tin.", []]"#), 2, "a list", "an object");
}

#[test]
fn an_object_without_a_text() {
    assert_complaint(
        &second_line(r#"{"id": "b", "labels": []}"#),
        2,
        "no field \"text\"",
        "a text",
    );
}

#[test]
fn a_text_that_is_a_number() {
    assert_complaint(
        &second_line(r#"{"id": "b", "text": 5}"#),
        2,
        "the number 5 as \"text\"",
        "a string",
    );
}

#[test]
fn a_number_as_label() {
    let line = r#"{"id": "b", "text": "Tin.", "labels": ["tin", 7]}"#;
    assert_complaint(&second_line(line), 2, "the number 7 as label 2", "a label name");
}

#[test]
fn a_string_instead_of_a_list_of_labels() {
    let line = r#"{"id": "b", "text": "Tin.", "labels": "tin"}"#;
    assert_complaint(
        &second_line(line),
        2,
        "the string \"tin\" as \"labels\"",
        "a list",
    );
}

#[test]
fn an_empty_label() {
    let line = r#"{"id": "b", "text": "Tin.", "labels": ["tin", " "]}"#;
    assert_complaint(
        &second_line(line),
        2,
        "an empty label at position 2",
        "a label name",
    );
}

#[test]
fn an_id_that_stood_before() {
    assert_complaint(
        &second_line(GOOD),
        2,
        "the id \"a\" a second time",
        "no other document",
    );
}

#[test]
fn an_empty_id() {
    assert_complaint(
        &second_line(r#"{"id": "", "text": "Tin."}"#),
        2,
        "an empty id",
        "an id",
    );
}

#[test]
fn a_field_twice() {
    assert_complaint(
        &second_line(r#"{"text": "Tin.", "text": "Zinc."}"#),
        2,
        "duplicate field",
        "an object",
    );
}

#[test]
fn broken_utf_8() {
    let error = second_line(b"{\"id\": \"b\", \"text\": \"caf\xe9\"}");
    assert_complaint(&error, 2, "byte 0xe9 at column 25", "UTF-8");
}

#[test]
fn utf_16() {
    let bytes: Vec<u8> = std::iter::once(0xfeff)
        .chain(GOOD.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let sample = Sample::new("corpus.jsonl", bytes);
    assert_complaint(&sample.error(), 1, "UTF-16", "UTF-8");
}

#[test]
fn raw_nuls_between_json_are_refused_and_escaped_ones_kept() {
    assert_complaint(&second_line("\0\0{}"), 2, "no JSON at column 1", "an object");
    let sample = Sample::new("corpus.jsonl", r#"{"id": "b", "text": "a\u0000b"}"#);
    assert_eq!(sample.documents()[0].text, "a\0b");
}

#[test]
fn carriage_returns_a_byte_order_mark_and_blank_lines_do_no_harm() {
    let bytes = format!(
        "\u{feff}{GOOD}\r\n\r\n   \n{}\r\n",
        GOOD.replace("\"a\"", "\"b\"")
    );
    let documents = Sample::new("corpus.jsonl", bytes).documents();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[1], document("b", "Cocoa rose.", &["topic:cocoa"]));
}

#[test]
fn a_truncated_gzip_file_says_so_after_the_documents_that_were_whole() {
    use std::fmt::Write;
    let mut plain = String::new();
    let mut noise = 1_u32;
    for number in 0..2000 {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        writeln!(
            plain,
            r#"{{"id": "{number}", "text": "word {noise}", "labels": []}}"#
        )
        .unwrap();
    }
    let packed = gzip(plain.as_bytes());
    let sample = Sample::new("corpus.jsonl", &packed[..packed.len() - 20]);
    // No budget helps: what is missing is not one record.
    let mut reader = sample.source().skip_bad(100).open().unwrap();
    let good = reader.by_ref().take_while(Result::is_ok).count();
    assert!(good > 1000, "{good}");
    assert!(reader.next().is_none());
    assert_complaint(&sample.error(), good as u64 + 1, "truncated", "the rest");
}

#[test]
fn damaged_gzip_data() {
    let mut packed = gzip(GOOD.repeat(50).as_bytes());
    let middle = packed.len() / 2;
    packed[middle] ^= 0xff;
    let error = Sample::new("corpus.jsonl", packed).error();
    assert!(error.is_the_callers(), "{error}");
}

#[test]
fn a_line_beyond_the_limit_is_refused_and_the_next_is_read() {
    let long = format!(r#"{{"id": "b", "text": "{}"}}"#, "x".repeat(5000));
    let last = r#"{"id": "c", "text": "Zinc."}"#;
    let sample = Sample::new("corpus.jsonl", format!("{GOOD}\n{long}\n{last}"));
    let options = ReadOptions {
        longest_record: 1000,
        skip_bad: 1,
        ..Default::default()
    };
    let mut reader = sample.source().with(options).open().unwrap();
    let ids: Vec<String> = reader.by_ref().map(|document| document.unwrap().id).collect();
    assert_eq!(ids, ["a", "c"]);
    assert_eq!(reader.complaints()[0].found, "a line of 5024 bytes");
}

#[test]
fn within_the_budget_bad_lines_are_left_out_counted_and_kept() {
    let text = format!("{GOOD}\nnot json\n{GOOD}\n{}", GOOD.replace("\"a\"", "\"b\""));
    let sample = Sample::new("corpus.jsonl", text);
    let mut reader = sample.source().skip_bad(2).open().unwrap();
    let ids: Vec<String> = reader.by_ref().map(|document| document.unwrap().id).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(reader.skipped(), 2);
    let lines: Vec<u64> = reader
        .complaints()
        .iter()
        .map(|complaint| complaint.line)
        .collect();
    assert_eq!(lines, [2, 3]);
}

#[test]
fn beyond_the_budget_the_stream_ends_with_an_error() {
    let sample = Sample::new("corpus.jsonl", format!("{GOOD}\n1\n2\n3\n{GOOD}"));
    let mut reader = sample.source().skip_bad(2).open().unwrap();
    assert!(reader.next().unwrap().is_ok());
    let error = reader.next().unwrap().unwrap_err();
    assert!(
        matches!(error, CorpusError::TooManyBad { skipped: 2, .. }),
        "{error}"
    );
    assert_complaint(&error, 4, "the number 3", "an object");
    assert!(reader.next().is_none());
}

#[test]
fn no_more_complaints_are_kept_than_a_person_can_read() {
    let sample = Sample::new("corpus.jsonl", format!("{GOOD}\n{}", "wrong\n".repeat(500)));
    let mut reader = sample.source().skip_bad(1000).open().unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!(
        (reader.skipped(), reader.complaints().len()),
        (500, COMPLAINTS_KEPT)
    );
}

#[test]
fn a_missing_file_is_the_callers_fault() {
    let error = open("no/such/corpus.jsonl").unwrap_err();
    assert!(error.is_the_callers());
    assert!(error.to_string().contains("no/such/corpus.jsonl"));
}

#[test]
fn an_empty_file_is_an_empty_corpus() {
    for empty in ["", "\n\n", "\u{feff}"] {
        assert!(Sample::new("corpus.jsonl", empty).documents().is_empty());
    }
}

#[test]
fn prose_is_no_corpus() {
    let error = Sample::new("letter", "Dear Sir\n").error();
    assert!(
        error
            .to_string()
            .contains("found \"Dear Sir\", expected a corpus"),
        "{error}"
    );
}

#[test]
fn a_long_found_text_is_shown_in_part_and_printable() {
    let error = second_line(format!("\u{7}{}", "x".repeat(10_000)));
    let message = error.to_string();
    assert!(message.len() < 400 && !message.contains('\u{7}'), "{message}");
}

proptest! {
    // Each case writes files: fewer cases than usual.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every line is either a document or one complaint, whatever the bytes.
    #[test]
    fn no_bytes_break_the_reader(
        lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8),
        name in proptest::sample::select(vec!["corpus.jsonl", "a.csv", "a.tsv"]),
    ) {
        let sample = Sample::new(name, lines.join(&b'\n'));
        for format in CorpusFormat::ALL {
            if format != CorpusFormat::AnnifFolder
                && let Ok(reader) = CorpusSource::of_format(sample.path(), format).skip_bad(100).open()
            {
                for document in reader {
                    let _ = document;
                }
            }
        }
    }
}

#[test]
fn a_repeated_id_can_be_kept_and_is_still_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("twice.jsonl");
    let line = |text: &str| format!("{{\"id\":\"a\",\"text\":\"{text}\",\"labels\":[\"l\"]}}\n");
    std::fs::write(&path, line("one") + &line("two")).unwrap();
    let source = CorpusSource::detect(&path).unwrap().keep_repeated_ids();
    let mut reader = source.open().unwrap();
    let texts: Vec<String> = reader.by_ref().map(|document| document.unwrap().text).collect();
    assert_eq!(texts, ["one", "two"]);
    let (complaint, count) = reader.repeated().unwrap();
    assert_eq!(count, 1);
    assert!(complaint.to_string().contains("twice.jsonl:2"), "{complaint}");
}
