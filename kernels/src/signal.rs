//! One value from a callback to a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

struct Slot<T> {
    value: Option<T>,
    waiting: Option<Waker>,
}

/// The future's end.
pub(crate) struct Receiver<T>(Arc<Mutex<Slot<T>>>);

/// The callback's end.
pub(crate) struct Sender<T>(Arc<Mutex<Slot<T>>>);

/// Both ends.
pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Arc::new(Mutex::new(Slot {
        value: None,
        waiting: None,
    }));
    (Sender(slot.clone()), Receiver(slot))
}

impl<T> Sender<T> {
    pub(crate) fn send(self, value: T) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.value = Some(value);
        let waiting = slot.waiting.take();
        drop(slot);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// The value, if it is there already.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).value.take()
    }
}

impl<T> Future for Receiver<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                slot.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
