//! Reading ahead of work that is done in batches: what has arrived is handed over at once, and nobody waits for more.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Items at most that wait together.
const WAITING_ITEMS: usize = 256;
/// Their bytes at most, one large item aside.
const WAITING_BYTES: usize = 8 << 20;

/// Items that a thread of its own reads while others are worked on.
pub(crate) struct ReadAhead<T, E> {
    shared: Arc<Shared<T, E>>,
}

struct Shared<T, E> {
    waiting: Mutex<Waiting<T, E>>,
    changed: Condvar,
}

struct Waiting<T, E> {
    items: Vec<T>,
    bytes: usize,
    end: Option<Result<(), E>>,
}

impl<T: Send + 'static, E: Send + 'static> ReadAhead<T, E> {
    /// Begins to read. The thread is left to itself: one that waits for input ends with the process.
    pub(crate) fn new(
        mut items: impl Iterator<Item = Result<T, E>> + Send + 'static,
        bytes: impl Fn(&T) -> usize + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            waiting: Mutex::new(Waiting {
                items: Vec::new(),
                bytes: 0,
                end: None,
            }),
            changed: Condvar::new(),
        });
        let ahead = Arc::clone(&shared);
        thread::spawn(move || {
            let end = items.try_for_each(|item| {
                let item = item?;
                ahead.push(bytes(&item), item);
                Ok(())
            });
            ahead.lock().end = Some(end);
            ahead.changed.notify_all();
        });
        Self { shared }
    }

    /// What has arrived meanwhile, or else the next that does. Nothing at the end; an error comes after all that was read
    /// before it.
    pub(crate) fn next_batch(&mut self) -> Result<Vec<T>, E> {
        let nothing = |waiting: &mut Waiting<T, E>| waiting.items.is_empty() && waiting.end.is_none();
        let mut waiting = self.shared.wait_while(nothing);
        if waiting.items.is_empty() {
            return waiting.end.replace(Ok(())).unwrap_or(Ok(())).map(|()| Vec::new());
        }
        waiting.bytes = 0;
        self.shared.changed.notify_all();
        Ok(std::mem::take(&mut waiting.items))
    }
}

impl<T, E> Shared<T, E> {
    /// Adds an item as soon as there is room.
    fn push(&self, bytes: usize, item: T) {
        let mut waiting =
            self.wait_while(|waiting| waiting.items.len() >= WAITING_ITEMS || waiting.bytes >= WAITING_BYTES);
        waiting.items.push(item);
        waiting.bytes += bytes;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T, E>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl FnMut(&mut Waiting<T, E>) -> bool) -> MutexGuard<'_, Waiting<T, E>> {
        let waited = self.changed.wait_while(self.lock(), condition);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn all(mut ahead: ReadAhead<usize, String>) -> (Vec<Vec<usize>>, Result<(), String>) {
        let mut batches = Vec::new();
        loop {
            match ahead.next_batch() {
                Ok(batch) if batch.is_empty() => return (batches, Ok(())),
                Ok(batch) => batches.push(batch),
                Err(error) => return (batches, Err(error)),
            }
        }
    }

    #[test]
    fn everything_arrives_in_order_and_the_error_last() {
        let items = (0..10_000).map(Ok).chain([Err("broken".to_owned()), Ok(1)]);
        let (batches, end) = all(ReadAhead::new(items, |_| 1));
        assert!(batches.iter().all(|batch| batch.len() <= WAITING_ITEMS));
        assert_eq!(batches.concat(), (0..10_000).collect::<Vec<_>>());
        assert_eq!(end, Err("broken".to_owned()));
    }

    #[test]
    fn large_items_make_small_batches() {
        let (batches, end) = all(ReadAhead::new((0..20).map(Ok), |_| WAITING_BYTES / 2));
        assert!(batches.iter().all(|batch| batch.len() <= 2));
        assert_eq!((batches.concat().len(), end), (20, Ok(())));
    }

    #[test]
    fn what_has_arrived_does_not_wait_for_what_has_not() {
        let (sender, receiver) = channel();
        let mut ahead = ReadAhead::<_, ()>::new(receiver.into_iter().map(Ok), |_| 1);
        for question in 0..3 {
            // The next one is sent only after this one is answered.
            sender.send(question).unwrap();
            assert_eq!(ahead.next_batch(), Ok(vec![question]));
        }
        drop(sender);
        assert_eq!(ahead.next_batch(), Ok(Vec::new()));
        assert_eq!(ahead.next_batch(), Ok(Vec::new()));
    }
}
