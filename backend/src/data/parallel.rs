//! One pass over a corpus on all cores: a bounded channel between the reader and the workers.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::document::Document;
use super::error::CorpusError;
use super::reader::CorpusReader;

/// Documents that travel together, to spare hand-overs. At most three such batches a worker are in memory at once.
const BATCH_DOCUMENTS: usize = 16;
/// A batch is sent earlier if its texts are this long together.
const BATCH_BYTES: usize = 1 << 20;

/// The number of threads to use when nobody says: all cores.
pub fn available_threads() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Shows every document to one of `threads` workers, each with a state of its own, and returns the states.
///
/// `each` gets the document's place in the corpus, from 0. Which worker sees which document is chance: a state must
/// be one whose merge does not care, or keep the place. Memory holds a few batches, whatever the corpus' size. After an
/// error of the reader the workers finish what they have and the error is returned.
pub fn for_each_document<S: Send>(
    reader: &mut CorpusReader,
    threads: usize,
    state: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, usize, Document) + Sync,
) -> Result<Vec<S>, CorpusError> {
    if threads <= 1 {
        let mut only = state();
        for (place, document) in reader.enumerate() {
            each(&mut only, place, document?);
        }
        return Ok(vec![only]);
    }
    let (sender, receiver) = sync_channel::<(usize, Vec<Document>)>(threads);
    let next = |receiver: &Mutex<Receiver<_>>| receiver.lock().ok()?.recv().ok();
    let (state, each) = (&state, &each);
    thread::scope(|scope| {
        // The workers own the receiver: if all of them are gone, nobody waits for a place in the channel for ever.
        let receiver = Arc::new(Mutex::new(receiver));
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let receiver = Arc::clone(&receiver);
                scope.spawn(move || {
                    let mut mine = state();
                    while let Some((first, batch)) = next(&receiver) {
                        for (offset, document) in batch.into_iter().enumerate() {
                            each(&mut mine, first + offset, document);
                        }
                    }
                    mine
                })
            })
            .collect();
        drop(receiver);
        let read = feed(reader, |first, batch| sender.send((first, batch)).is_ok());
        drop(sender);
        let states = workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        read.map(|()| states)
    })
}

/// Gathers batches until the corpus ends or nobody takes them any more.
fn feed(
    reader: &mut CorpusReader,
    mut send: impl FnMut(usize, Vec<Document>) -> bool,
) -> Result<(), CorpusError> {
    let (mut first, mut bytes, mut batch) = (0, 0, Vec::with_capacity(BATCH_DOCUMENTS));
    for document in reader {
        let document = document?;
        bytes += document.text.len();
        batch.push(document);
        if batch.len() == BATCH_DOCUMENTS || bytes >= BATCH_BYTES {
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH_DOCUMENTS));
            let count = full.len();
            if !send(first, full) {
                return Ok(());
            }
            first += count;
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        send(first, batch);
    }
    Ok(())
}
