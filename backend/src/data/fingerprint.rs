//! What a corpus holds and which of it is read, as one hash: the same for the same documents, another for others.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::error::CorpusError;
use super::format::CorpusFormat;
use super::pairs::{labels_file_of, texts_file_in};
use super::source::CorpusSource;

impl CorpusSource {
    /// A hash over the corpus' files and the options that choose among its documents.
    ///
    /// Files are hashed by their bytes, folders of documents by the names, sizes and times of their files.
    pub fn fingerprint(&self) -> Result<String, CorpusError> {
        let options = self.options();
        let mut hash = Sha256::new();
        hash.update(format!(
            "{:?} {} {} {} {:?}\n",
            self.format(),
            options.skip_bad,
            options.keep_repeated_ids,
            options.longest_record,
            options.columns,
        ));
        if self.format() == CorpusFormat::Pairs {
            let texts = if self.path().is_dir() {
                texts_file_in(self.path())?
            } else {
                Some(self.path().to_owned())
            };
            if let Some(texts) = texts {
                let labels = options.labels_file.clone().or_else(|| labels_file_of(&texts));
                add_file(&mut hash, &texts)?;
                labels.map_or(Ok(()), |labels| add_file(&mut hash, &labels))?;
            }
        } else if self.path().is_dir() {
            add_folder(&mut hash, self.path())?;
        } else {
            add_file(&mut hash, self.path())?;
        }
        if let Some(ids) = &options.ids {
            for id in ids.sorted() {
                hash.update(b"\n");
                hash.update(id);
            }
        }
        for entry in options
            .vocabulary
            .iter()
            .flat_map(|vocabulary| vocabulary.entries())
        {
            hash.update(format!("\n{entry:?}"));
        }
        Ok(format!("{:x}", hash.finalize()))
    }
}

fn add_file(hash: &mut Sha256, path: &Path) -> Result<(), CorpusError> {
    let unread = |error| CorpusError::read(path, error);
    let mut file = File::open(path).map_err(unread)?;
    let mut of_file = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(unread)? {
            0 => break,
            read => of_file.update(&buffer[..read]),
        }
    }
    hash.update(of_file.finalize());
    Ok(())
}

fn add_folder(hash: &mut Sha256, path: &Path) -> Result<(), CorpusError> {
    let unread = |error| CorpusError::read(path, error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let facts = entry.metadata().map_err(unread)?;
        let modified =
            (facts.modified().ok()).and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        names.push(format!(
            "{} {} {modified:?}",
            entry.file_name().display(),
            facts.len()
        ));
    }
    names.sort_unstable();
    hash.update(names.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::reader::IdFilter;
    use super::*;

    #[test]
    fn other_documents_have_another_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let corpus = file(
            "corpus.jsonl",
            "{\"id\":\"a\",\"text\":\"x\",\"labels\":[\"l\"]}\n",
        );
        let whole = CorpusSource::detect(&corpus).unwrap();
        let only = |id: &str| whole.clone().only(IdFilter::from_iter([id.to_owned()]));
        let print = |source: &CorpusSource| source.fingerprint().unwrap();
        assert_eq!(print(&whole), print(&whole.clone()));
        assert_ne!(print(&whole), print(&only("a")));
        assert_ne!(print(&only("a")), print(&only("b")));
        assert_ne!(print(&whole), print(&whole.clone().skip_bad(1)));

        let texts = file("train_texts.txt", "cocoa rose\n");
        file("train_labels.txt", "cocoa\n");
        let pairs = CorpusSource::of_format(&texts, CorpusFormat::Pairs);
        let before = print(&pairs);
        file("train_labels.txt", "sugar\n");
        assert_ne!(print(&pairs), before);
    }
}
