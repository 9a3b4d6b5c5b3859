//! `gnnxml keygraph` as a person types it.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use gnnxml_shared::keygraph::KeyGraph;

fn gnnxml(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gnnxml"))
        .arg("keygraph")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that refuses its arguments does not read its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("the program ends")
}

const TEXT: &[u8] = "Cocoa from Ghana is sold in London. London pays well for cocoa.\n".as_bytes();

#[test]
fn json_is_a_valid_keygraph_and_the_same_twice() {
    let first = gnnxml(&[], TEXT);
    assert!(
        first.status.success(),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    let graph: KeyGraph = serde_json::from_slice(&first.stdout).expect("a KeyGraph");
    assert!(
        graph
            .vertices()
            .iter()
            .any(|vertex| vertex.text == "London" && vertex.sentences == [0, 1])
    );
    assert_eq!(gnnxml(&["-"], TEXT).stdout, first.stdout);
}

#[test]
fn pictures_come_in_two_formats() {
    let svg = gnnxml(&["--format", "svg", "--title", "Cocoa & co"], TEXT).stdout;
    assert!(String::from_utf8(svg).expect("UTF-8").contains("Cocoa &amp; co"));
    let dot = gnnxml(&["--format", "dot"], TEXT).stdout;
    assert!(dot.starts_with(b"graph keygraph {"));
}

#[test]
fn broken_utf8_in_a_file_is_exit_2_with_the_byte() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), b"fine so far\nand then \xff").expect("written");
    let output = gnnxml(&[file.path().to_str().expect("a plain path")], b"");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("not UTF-8 at byte 21 (line 2)"), "{message}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_missing_file_and_an_unknown_language_are_exit_2() {
    let output = gnnxml(&["no-such-file.txt"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-file.txt"));
    let output = gnnxml(&["--language", "enlish"], TEXT);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("known: ar"));
}

#[test]
fn nothing_in_is_an_empty_graph_out() {
    let output = gnnxml(&[], b"");
    assert!(output.status.success());
    assert_eq!(
        output.stdout,
        b"{\"sentences\":[],\"vertices\":[],\"edges\":[]}\n"
    );
}
