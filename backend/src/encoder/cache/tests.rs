use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::encoder::Encoder;

/// Spells a text's letters into four numbers, and counts how often it is asked.
#[derive(Default)]
struct Spelling {
    encoded: AtomicUsize,
}

impl Encoder for Spelling {
    fn name(&self) -> &'static str {
        "spelling"
    }

    fn dims(&self) -> usize {
        4
    }

    fn fingerprint(&self) -> String {
        "spelling 1".into()
    }

    fn encode(&self, sentences: &[&str]) -> anyhow::Result<Vec<f32>> {
        self.encoded.fetch_add(sentences.len(), Ordering::Relaxed);
        Ok(sentences.iter().flat_map(|text| spelled(text)).collect())
    }
}

fn spelled(text: &str) -> [f32; 4] {
    let mut sums = [0.0; 4];
    for (i, byte) in text.bytes().enumerate() {
        sums[i % 4] += f32::from(byte) / 256.0;
    }
    sums
}

fn sentences(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("sentence number {i}")).collect()
}

fn check(cache: &EmbeddingCache, texts: &[String], rows: &[u32]) {
    let mut vector = [0.0; 4];
    for (text, &row) in texts.iter().zip(rows) {
        cache.read(row, &mut vector);
        for (x, y) in vector.iter().zip(spelled(text)) {
            assert!((x - y).abs() < 2e-3, "{text}: {x} is not {y}");
        }
    }
}

#[test]
fn a_second_run_encodes_nothing_and_duplicates_are_encoded_once() {
    let folder = tempfile::tempdir().unwrap();
    let encoder = Spelling::default();
    let mut texts = sentences(5000);
    texts.extend(sentences(700));
    let run = || {
        let cache = EmbeddingCache::open(folder.path(), &encoder.fingerprint(), 4).unwrap();
        let mut cached = CachedEncoder::new(&encoder, cache);
        let rows = cached.encode_all(&texts).unwrap();
        check(cached.vectors(), &texts, &rows);
        cached.report()
    };
    assert_eq!(
        run(),
        EncodeReport {
            sentences: 5700,
            duplicates: 700,
            found: 0,
            encoded: 5000
        }
    );
    assert_eq!(
        run(),
        EncodeReport {
            sentences: 5700,
            duplicates: 700,
            found: 5000,
            encoded: 0
        }
    );
    assert_eq!(encoder.encoded.load(Ordering::Relaxed), 5000);
}

#[test]
fn a_cache_cut_off_anywhere_keeps_what_came_before() {
    let folder = tempfile::tempdir().unwrap();
    let texts = sentences(40);
    let keys: Vec<TextKey> = texts.iter().map(|text| TextKey::of(text)).collect();
    let vectors: Vec<f32> = texts.iter().flat_map(|text| spelled(text)).collect();
    let mut cache = EmbeddingCache::open(folder.path(), "cut", 4).unwrap();
    cache.append(&keys, &vectors).unwrap();
    let (keys_path, rows_path) = (cache.keys_path.clone(), cache.rows_path.clone());
    drop(cache);
    let (whole_keys, whole_rows) = (
        std::fs::read(&keys_path).unwrap(),
        std::fs::read(&rows_path).unwrap(),
    );
    for cut in 0..whole_keys.len() {
        std::fs::write(&keys_path, &whole_keys[..cut]).unwrap();
        std::fs::write(&rows_path, &whole_rows).unwrap();
        let mut cache = EmbeddingCache::open(folder.path(), "cut", 4).unwrap();
        let whole = cut.saturating_sub(HEAD) / RECORD;
        assert_eq!(cache.len(), whole);
        assert!(
            keys.iter()
                .enumerate()
                .all(|(i, key)| cache.find(*key).is_some() == (i < whole))
        );
        cache.append(&keys[whole..], &vectors[whole * 4..]).unwrap();
        let rows: Vec<u32> = keys.iter().map(|key| cache.find(*key).unwrap()).collect();
        check(&cache, &texts, &rows);
    }
    for cut in 0..whole_rows.len() {
        std::fs::write(&keys_path, &whole_keys).unwrap();
        std::fs::write(&rows_path, &whole_rows[..cut]).unwrap();
        let cache = EmbeddingCache::open(folder.path(), "cut", 4).unwrap();
        assert_eq!(cache.len(), cut / 8);
    }
}

#[test]
fn a_damaged_vector_is_encoded_again() {
    let folder = tempfile::tempdir().unwrap();
    let encoder = Spelling::default();
    let texts = sentences(10);
    let open = || EmbeddingCache::open(folder.path(), &encoder.fingerprint(), 4).unwrap();
    let mut cached = CachedEncoder::new(&encoder, open());
    cached.encode_all(&texts).unwrap();
    let rows_path = cached.vectors().rows_path.clone();
    drop(cached);
    let mut bytes = std::fs::read(&rows_path).unwrap();
    bytes[3 * 8 + 1] ^= 0x40;
    std::fs::write(&rows_path, bytes).unwrap();
    let mut cached = CachedEncoder::new(&encoder, open());
    let rows = cached.encode_all(&texts).unwrap();
    assert_eq!(
        cached.report(),
        EncodeReport {
            sentences: 10,
            duplicates: 0,
            found: 9,
            encoded: 1
        }
    );
    check(cached.vectors(), &texts, &rows);
}

#[test]
fn writers_at_the_same_time_do_not_hurt_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let encoder = Spelling::default();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (folder, encoder) = (folder.path(), &encoder);
            scope.spawn(move || {
                let cache = EmbeddingCache::open(folder, &encoder.fingerprint(), 4).unwrap();
                let mut cached = CachedEncoder::new(encoder, cache);
                for round in 0..30 {
                    let texts: Vec<String> = (0..20)
                        .map(|i| format!("{} of {round}", (i * (writer + 1)) % 37))
                        .collect();
                    let rows = cached.encode_all(&texts).unwrap();
                    check(cached.vectors(), &texts, &rows);
                }
            });
        }
    });
    let cache = EmbeddingCache::open(folder.path(), &encoder.fingerprint(), 4).unwrap();
    assert!(cache.index.keys().all(|key| cache.find(*key).is_some()));
}

#[test]
fn another_width_or_a_foreign_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let cache = EmbeddingCache::open(folder.path(), "one", 4).unwrap();
    let path = cache.keys_path.clone();
    drop(cache);
    let error = EmbeddingCache::open(folder.path(), "one", 8)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("another width") && error.contains(".keys"),
        "{error}"
    );
    std::fs::write(&path, [7; 200]).unwrap();
    let error = EmbeddingCache::open(folder.path(), "one", 4)
        .unwrap_err()
        .to_string();
    assert!(error.contains("does not begin"), "{error}");
}

#[test]
fn an_encoder_that_remembers_says_the_same_again_without_encoding() {
    let folder = tempfile::tempdir().unwrap();
    let texts = sentences(50);
    let mut asked: Vec<&str> = texts.iter().map(String::as_str).collect();
    asked.extend(["sentence number 3", "", "sentence number 3"]);
    let open = || {
        let encoder = Box::new(Spelling::default());
        let cache = EmbeddingCache::open(folder.path(), &encoder.fingerprint(), 4).unwrap();
        Remembering::new(encoder, cache)
    };
    let remembering = open();
    let first = remembering.encode(&asked).unwrap();
    assert_eq!(remembering.cache_len(), 51, "each different sentence once");
    assert_eq!(remembering.encode(&asked).unwrap(), first);
    assert_eq!(remembering.cache_len(), 51, "nothing was encoded again");
    assert_eq!(open().encode(&asked).unwrap(), first, "nor after a restart");
    for (text, vector) in asked.iter().zip(first.chunks_exact(4)) {
        for (x, y) in vector.iter().zip(spelled(text)) {
            assert!((x - y).abs() < 2e-3, "{text}: {x} is not {y}");
        }
    }
}

#[test]
fn threads_share_an_encoder_that_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let encoder = Box::new(Spelling::default());
    let cache = EmbeddingCache::open(folder.path(), &encoder.fingerprint(), 4).unwrap();
    let remembering = Remembering::new(encoder, cache);
    let texts = sentences(200);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (remembering, texts) = (&remembering, &texts);
            scope.spawn(move || {
                for text in texts.iter().cycle().skip(50 * thread).take(texts.len()) {
                    let vector = remembering.encode(&[text]).unwrap();
                    assert!(
                        vector
                            .iter()
                            .zip(spelled(text))
                            .all(|(x, y)| (x - y).abs() < 2e-3)
                    );
                }
            });
        }
    });
    assert!(remembering.cache_len() >= 200);
}
