//! `gnnxml bench keygraph`: reading a corpus and drawing the KeyGraph of every document, by number of threads.

use std::path::PathBuf;
use std::time::Instant;

use gnnxml_shared::keygraph::{EntityLexicon, KeyGraphBuilder, Options};
use gnnxml_shared::text::Language;

use super::bench::peak_megabytes;
use crate::data::{CorpusSource, for_each_document};

/// Arguments of `gnnxml bench keygraph`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Documents to read
    #[arg(long)]
    corpus: PathBuf,
    /// Numbers of threads to compare
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Language of the texts
    #[arg(long, default_value = "en", value_name = "TAG")]
    language: Language,
}

/// What one worker saw.
#[derive(Default)]
struct Seen {
    documents: usize,
    bytes: usize,
    vertices: usize,
    edges: usize,
    seconds: f64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let source = CorpusSource::detect(&args.corpus)?;
    let (language, lexicon, options) = (args.language, EntityLexicon::default(), Options::default());
    say!(
        "threads\tdocuments\tMB of text\tvertices\tedges\tseconds\tdocuments/s\tms a KeyGraph on its thread\tpeak MB"
    )?;
    for &threads in &args.threads {
        let started = Instant::now();
        let workers = for_each_document(
            &mut source.open()?,
            threads,
            || {
                (
                    KeyGraphBuilder::new(language, &lexicon, &options),
                    Seen::default(),
                )
            },
            |(builder, seen), _place, document| {
                let drawing = Instant::now();
                let graph = builder.build(&document.text);
                seen.seconds += drawing.elapsed().as_secs_f64();
                seen.documents += 1;
                seen.bytes += document.text.len();
                seen.vertices += graph.vertices().len();
                seen.edges += graph.edges().len();
            },
        )?;
        let seconds = started.elapsed().as_secs_f64();
        let all = workers.iter().fold(Seen::default(), |all, (_, seen)| Seen {
            documents: all.documents + seen.documents,
            bytes: all.bytes + seen.bytes,
            vertices: all.vertices + seen.vertices,
            edges: all.edges + seen.edges,
            seconds: all.seconds + seen.seconds,
        });
        let documents = all.documents.max(1) as f64;
        say!(
            "{threads}\t{}\t{:.1}\t{}\t{}\t{seconds:.2}\t{:.0}\t{:.3}\t{}",
            all.documents,
            all.bytes as f64 / 1e6,
            all.vertices,
            all.edges,
            documents / seconds,
            1e3 * all.seconds / documents,
            peak_megabytes(),
        )?;
    }
    Ok(())
}
