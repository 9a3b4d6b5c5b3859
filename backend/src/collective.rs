//! How training talks to its twins on other machines: sum a buffer over all of them, copy one to all.
//!
//! The trainer reduces gradients and the k-means its sums through [`Collective`] and nothing else, so a
//! cluster needs only another implementation. This module never decides what is reduced, and never splits
//! work: callers look at [`Collective::rank`] and [`Collective::size`] for that.
//! [`SingleProcess`] is the implementation for one machine: everything is already there.

/// A buffer to reduce or broadcast, in place.
#[derive(Debug)]
pub enum Buffer<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    U64(&'a mut [u64]),
}

impl<'a> From<&'a mut [f32]> for Buffer<'a> {
    fn from(values: &'a mut [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a mut [f64]> for Buffer<'a> {
    fn from(values: &'a mut [f64]) -> Self {
        Self::F64(values)
    }
}

impl<'a> From<&'a mut [u64]> for Buffer<'a> {
    fn from(values: &'a mut [u64]) -> Self {
        Self::U64(values)
    }
}

/// A twin could not be reached, or did not agree on what is exchanged.
#[derive(Debug, Clone, thiserror::Error)]
#[error("rank {rank} of {size} could not {operation}: {reason}")]
pub struct CollectiveError {
    pub rank: usize,
    pub size: usize,
    pub operation: &'static str,
    pub reason: String,
}

/// The processes that train one model together.
///
/// Every rank calls the same operations in the same order with buffers of the same length. A reduction
/// adds in rank order, so that its result does not depend on who was quicker.
pub trait Collective: Sync + std::fmt::Debug {
    /// Which of them this process is, from 0.
    fn rank(&self) -> usize;

    /// How many there are, at least 1.
    fn size(&self) -> usize;

    /// Replaces every rank's buffer by the element-wise sum over all ranks.
    fn all_reduce(&self, buffer: Buffer<'_>) -> Result<(), CollectiveError>;

    /// Replaces every rank's buffer by that of `root`.
    fn broadcast(&self, root: usize, buffer: Buffer<'_>) -> Result<(), CollectiveError>;

    /// The part of `0..n` that falls to this rank: contiguous, sizes differing by one at most.
    fn share(&self, n: usize) -> std::ops::Range<usize> {
        let (rank, size) = (self.rank(), self.size());
        n * rank / size..n * (rank + 1) / size
    }
}

/// One process alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SingleProcess;

impl Collective for SingleProcess {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_reduce(&self, _buffer: Buffer<'_>) -> Result<(), CollectiveError> {
        Ok(())
    }

    fn broadcast(&self, root: usize, _buffer: Buffer<'_>) -> Result<(), CollectiveError> {
        if root == 0 {
            Ok(())
        } else {
            Err(CollectiveError {
                rank: 0,
                size: 1,
                operation: "broadcast",
                reason: format!("root {root} does not exist"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_process_keeps_its_sums_and_has_all_the_work() {
        let mut sums = [1.5f32, -2.0];
        SingleProcess.all_reduce(sums.as_mut_slice().into()).unwrap();
        assert_eq!(sums, [1.5, -2.0]);
        assert_eq!(SingleProcess.share(7), 0..7);
        assert!(SingleProcess.broadcast(1, sums.as_mut_slice().into()).is_err());
    }
}
