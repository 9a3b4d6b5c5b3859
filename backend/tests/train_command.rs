//! `gnnxml train` on the small corpus: what it goes on through, what it tells, what it asks for.

mod program;

use std::process::Stdio;

use gnnxml_backend::encoder::place_of;
use program::{assert_exit, command, garden, said};

#[test]
fn a_training_goes_on_when_nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("model");
    let mut child = command(folder.path())
        .args(["train", "--threads", "2", "--corpus"])
        .arg(garden())
        .arg("--out")
        .arg(&out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(out.join("manifest.json").is_file());
}

#[test]
fn texts_tell_their_language_unless_it_is_named() {
    let trained = |arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        command(folder.path())
            .args(["train", "--json-progress", "--threads", "2", "--corpus"])
            .arg(garden())
            .arg("--out")
            .arg(folder.path().join("model"))
            .args(arguments)
            .output()
            .unwrap()
    };
    for (arguments, language) in [(&[][..], "en"), (&["--language", "fi"][..], "fi")] {
        let output = trained(arguments);
        assert_exit(&output, 0);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains(&format!("as language {language};")), "{told}");
    }
    let refused = trained(&["--language", "finnish"]);
    assert_exit(&refused, 2);
    assert!(said(&refused).contains("finnish"), "{}", said(&refused));
}

#[test]
fn what_a_missing_encoder_asks_for_leads_to_a_training() {
    let folder = tempfile::tempdir().unwrap();
    let train = || {
        command(folder.path())
            .args(["train", "--preset", "balanced", "--threads", "2", "--corpus"])
            .arg(garden())
            .arg("--out")
            .arg(folder.path().join("model"))
            .output()
            .unwrap()
    };
    let refused = train();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(
        said(&refused).contains("`gnnxml encoder fetch static`"),
        "{}",
        said(&refused)
    );

    let minilm = place_of("minilm");
    if !minilm.is_dir() {
        eprintln!(
            "NOT TESTED further: {} is missing; run `gnnxml encoder fetch minilm`",
            minilm.display()
        );
        return;
    }
    let encoders = folder.path().join("cache/encoders");
    std::fs::create_dir_all(&encoders).unwrap();
    std::os::unix::fs::symlink(minilm, encoders.join("minilm")).unwrap();
    let fetch = || {
        command(folder.path())
            .args(["encoder", "fetch", "static"])
            .output()
            .unwrap()
    };
    let fetched = fetch();
    assert_exit(&fetched, 0);
    assert_exit(&train(), 0);
    // A table that is here is not made again: the model would no longer know it.
    let again = fetch();
    assert_exit(&again, 0);
    assert!(said(&again).contains("here already"), "{}", said(&again));
}
