//! Back-pressure for the engine: so many at work, so many waiting, the rest is told to come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gnnxml_shared::api::ErrorCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::{Answer, Failure};

/// The door to the engine.
#[derive(Debug)]
pub(super) struct Admission {
    at_work: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
}

impl Admission {
    pub(super) fn new(at_work: usize, most_waiting: usize) -> Self {
        Self {
            at_work: Arc::new(Semaphore::new(at_work.max(1))),
            waiting: AtomicUsize::new(0),
            most_waiting,
        }
    }

    /// Waits for a place, unless too many wait already.
    pub(super) async fn enter(&self) -> Answer<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.at_work).try_acquire_owned() {
            return Ok(permit);
        }
        let _place = Waiting::new(self)?;
        self.wait().await
    }

    /// Waits for a place, however many wait.
    pub(super) async fn wait(&self) -> Answer<OwnedSemaphorePermit> {
        Arc::clone(&self.at_work)
            .acquire_owned()
            .await
            .map_err(Failure::internal)
    }
}

/// A place in the queue, given back however the wait ends.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(door: &'a Admission) -> Answer<Self> {
        if door.waiting.fetch_add(1, Ordering::Relaxed) < door.most_waiting {
            return Ok(Self(&door.waiting));
        }
        door.waiting.fetch_sub(1, Ordering::Relaxed);
        Err(Failure::new(
            ErrorCode::TooManyRequests,
            format!(
                "{} requests wait already, which is the limit `waiting_requests`: try again later, or send batches",
                door.most_waiting
            ),
        )
        .retry_after(1))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_one_too_many_is_told_to_come_back() {
        let door = Arc::new(Admission::new(1, 1));
        let inside = door.enter().await.unwrap();
        let waiting = tokio::spawn({
            let door = Arc::clone(&door);
            async move { door.enter().await.map(drop) }
        });
        while door.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let refused = door.enter().await.unwrap_err();
        assert_eq!(
            (refused.code, refused.retry_after),
            (ErrorCode::TooManyRequests, Some(1))
        );
        drop(inside);
        waiting.await.unwrap().unwrap();
        assert_eq!(door.waiting.load(Ordering::Relaxed), 0);
    }
}
