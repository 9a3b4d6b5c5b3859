//! The manifest: what a bundle holds, and the SHA-256 of every part.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{QUOTED, cut};
use super::{Bits, BundleError};

/// What the manifest's `format` field says.
pub const FORMAT: &str = "gnnxml-bundle";

/// The one version this code reads and writes.
pub const VERSION: u32 = 5;

/// No part is larger: a GPU binding and a phone's memory are the measure.
const MAX_PART_BYTES: u64 = 512 << 20;

/// Where a part lies and how to know that it is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRef {
    /// File name beside the manifest; holds the start of its own SHA-256, so it may be cached for ever.
    pub file: String,
    pub bytes: u64,
    pub sha256: String,
}

impl PartRef {
    /// Describes `bytes` under a content-bearing name.
    pub fn of(stem: &str, bytes: &[u8]) -> Self {
        let sha256 = sha256_hex(bytes);
        Self {
            file: part_name(stem, &sha256),
            bytes: bytes.len() as u64,
            sha256,
        }
    }

    /// Whether `bytes` are the part that was promised.
    pub fn check(&self, bytes: &[u8]) -> Result<(), BundleError> {
        if bytes.len() as u64 != self.bytes {
            return Err(BundleError::Length {
                part: self.file.clone(),
                found: bytes.len() as u64,
                expected: self.bytes,
            });
        }
        let found = sha256_hex(bytes);
        if found != self.sha256 {
            return Err(BundleError::Checksum {
                part: self.file.clone(),
                found,
                expected: cut(&self.sha256, QUOTED),
            });
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), BundleError> {
        if !is_plain_name(&self.file) {
            return Err(BundleError::UnsafeName {
                file: cut(&self.file, QUOTED),
            });
        }
        if self.bytes > MAX_PART_BYTES {
            return Err(BundleError::Length {
                part: self.file.clone(),
                found: self.bytes,
                expected: MAX_PART_BYTES,
            });
        }
        Ok(())
    }
}

/// A part that holds the rankers of a run of clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRef {
    /// The clusters whose rankers it holds, ascending.
    pub clusters: Vec<u32>,
    #[serde(flatten)]
    pub part: PartRef,
}

/// The manifest of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    /// What the model is called.
    pub name: String,
    /// BCP-47 tag of the language its texts are in.
    pub language: String,
    /// `lsa`, `static`, `bert`: what runs in the page.
    pub encoder: String,
    /// How matrices are stored: `int8` or `int4`.
    pub quantisation: String,
    pub labels: u64,
    pub clusters: u64,
    /// Documents the model was trained on.
    pub documents: u64,
    /// Figures on validation documents, in percent.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
    /// What must be said about the data and weights behind the model.
    #[serde(default)]
    pub licence_notes: Vec<String>,
    /// Parts that are fetched once, by role.
    pub core: BTreeMap<String, PartRef>,
    /// Parts that tagging does without, by role: `clusters` holds the map and the label graph.
    #[serde(default)]
    pub extra: BTreeMap<String, PartRef>,
    /// Ranker parts, fetched for matched clusters only.
    pub shards: Vec<ShardRef>,
    /// Bytes of shards a text asks for at most, but for its most probable cluster's; unlimited unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<u64>,
}

impl Manifest {
    /// Reads and checks a manifest.
    pub fn parse(json: &[u8]) -> Result<Self, BundleError> {
        /// Read first, so that another version is refused by its number and not by a missing field.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let wrong = |fault: &dyn std::fmt::Display| BundleError::json("manifest.json", fault);
        let fault = |fault: serde_json::Error| wrong(&fault);
        let head: Head = serde_json::from_slice(json).map_err(fault)?;
        if head.format != FORMAT {
            return Err(BundleError::Format {
                found: cut(&head.format, QUOTED),
                expected: FORMAT,
            });
        }
        if head.version != VERSION {
            return Err(BundleError::Version {
                found: head.version,
                expected: VERSION,
            });
        }
        let manifest: Self = serde_json::from_slice(json).map_err(fault)?;
        for part in manifest.parts() {
            part.validate()?;
        }
        if Bits::from_name(&manifest.quantisation).is_none() {
            let found = &manifest.quantisation;
            return Err(wrong(&format!(
                "`quantisation` is {found:?}, expected \"int8\" or \"int4\""
            )));
        }
        let mut claimed: Vec<u32> = manifest
            .shards
            .iter()
            .flat_map(|shard| shard.clusters.iter().copied())
            .collect();
        claimed.sort_unstable();
        let twice = claimed.windows(2).any(|pair| pair[0] == pair[1]);
        let idle = manifest.shards.iter().any(|shard| shard.clusters.is_empty());
        if twice
            || idle
            || claimed
                .last()
                .is_some_and(|&last| u64::from(last) >= manifest.clusters)
        {
            return Err(wrong(&format!(
                "`shards` must name each of the {} clusters at most once, each shard at least one",
                manifest.clusters
            )));
        }
        Ok(manifest)
    }

    /// Every part, core first: what names a file or a size is checked here, whoever reads it.
    pub fn parts(&self) -> impl Iterator<Item = &PartRef> {
        (self.core.values())
            .chain(self.extra.values())
            .chain(self.shards.iter().map(|shard| &shard.part))
    }

    /// The core part of this role.
    pub fn core_part(&self, role: &str) -> Result<&PartRef, BundleError> {
        self.core
            .get(role)
            .ok_or_else(|| BundleError::MissingPart { part: role.into() })
    }

    /// Bytes that must be there before the first text can be tagged.
    pub fn core_bytes(&self) -> u64 {
        self.core.values().map(|part| part.bytes).sum()
    }
}

/// `stem-0123456789abcdef.bin`: a name that changes with the content.
pub fn part_name(stem: &str, sha256: &str) -> String {
    format!("{stem}-{}.bin", &sha256[..16.min(sha256.len())])
}

/// Lower-case hexadecimal SHA-256.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
            hex
        })
}

/// A file name without any way out of its folder.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            format: FORMAT.into(),
            version: VERSION,
            name: "demo".into(),
            language: "en".into(),
            encoder: "lsa".into(),
            quantisation: "int8".into(),
            labels: 3,
            clusters: 2,
            documents: 10,
            metrics: BTreeMap::new(),
            licence_notes: vec![],
            core: BTreeMap::from([("labels".into(), PartRef::of("labels", b"abc"))]),
            extra: BTreeMap::from([("clusters".into(), PartRef::of("clusters", b"map"))]),
            shards: vec![ShardRef {
                clusters: vec![0, 1],
                part: PartRef::of("rankers-0", b"xyz"),
            }],
            text_bytes: Some(3),
        }
    }

    #[test]
    fn a_manifest_survives_the_round_trip() {
        let json = serde_json::to_vec(&manifest()).unwrap();
        assert_eq!(Manifest::parse(&json).unwrap(), manifest());
    }

    #[test]
    fn a_part_is_known_by_its_bytes() {
        let part = PartRef::of("labels", b"abc");
        assert_eq!(
            part.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(part.file, "labels-ba7816bf8f01cfea.bin");
        part.check(b"abc").unwrap();
        assert!(matches!(part.check(b"abd"), Err(BundleError::Checksum { .. })));
        assert!(matches!(part.check(b"ab"), Err(BundleError::Length { .. })));
    }

    #[test]
    fn another_version_is_refused_by_its_number() {
        let json = br#"{"format":"gnnxml-bundle","version":7}"#;
        assert_eq!(
            Manifest::parse(json),
            Err(BundleError::Version {
                found: 7,
                expected: VERSION
            })
        );
    }

    /// The manifest with one of its parts changed: of the core, beside it, and a shard.
    fn with_each_part(change: impl Fn(&mut PartRef)) -> [Vec<u8>; 3] {
        let places: [fn(&mut Manifest) -> &mut PartRef; 3] = [
            |manifest| manifest.core.get_mut("labels").unwrap(),
            |manifest| manifest.extra.get_mut("clusters").unwrap(),
            |manifest| &mut manifest.shards[0].part,
        ];
        places.map(|place| {
            let mut manifest = manifest();
            change(place(&mut manifest));
            serde_json::to_vec(&manifest).unwrap()
        })
    }

    #[test]
    fn a_part_outside_the_folder_is_refused_wherever_it_is_named() {
        let long = "x".repeat(1 << 20);
        for bad in [
            "../secret",
            "/etc/passwd",
            "/dev/zero",
            "a/b",
            "a\\b",
            ".hidden",
            "",
            "a\0b",
            "C:x",
            &long,
        ] {
            for json in with_each_part(|part| part.file = bad.into()) {
                let fault = Manifest::parse(&json).unwrap_err();
                assert!(matches!(fault, BundleError::UnsafeName { .. }), "{bad:?}");
                assert!(fault.to_string().len() < 300);
            }
        }
    }

    #[test]
    fn a_part_too_large_for_a_page_is_refused_wherever_it_is_named() {
        for json in with_each_part(|part| part.bytes = MAX_PART_BYTES + 1) {
            assert!(matches!(Manifest::parse(&json), Err(BundleError::Length { .. })));
        }
    }

    #[test]
    fn a_cluster_in_two_shards_or_one_that_is_not_there_or_none_is_refused() {
        for clusters in [vec![0, 0], vec![2], vec![]] {
            let mut manifest = manifest();
            manifest.shards[0].clusters = clusters;
            let json = serde_json::to_vec(&manifest).unwrap();
            assert!(matches!(Manifest::parse(&json), Err(BundleError::Json { .. })));
        }
    }
}
