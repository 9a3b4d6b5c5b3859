//! The fused pass compiled once more for the vector units this machine turns out to have.
//!
//! Rust never contracts a product and a sum into one rounding by itself, so both versions give the same numbers.
#![allow(unsafe_code)] // Calls into functions that ask for AVX2, after asking the machine.

use super::Losses;
use super::batch::Shard;
use super::gin::{Network, Workspace, shard_logits, shard_pass};

/// [`shard_pass`], with the widest vectors there are.
pub(super) fn shard_pass_wide(
    network: Network<'_>,
    shard: &Shard,
    first_pair: usize,
    space: &mut Workspace,
    gradient: &mut [f32],
    embedded: &mut [&mut [f32]],
) -> Losses {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has AVX2, as just asked.
        return unsafe { with_avx2(network, shard, first_pair, space, gradient, embedded) };
    }
    shard_pass(network, shard, first_pair, space, gradient, embedded)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(
    network: Network<'_>,
    shard: &Shard,
    first_pair: usize,
    space: &mut Workspace,
    gradient: &mut [f32],
    embedded: &mut [&mut [f32]],
) -> Losses {
    shard_pass(network, shard, first_pair, space, gradient, embedded)
}

/// [`shard_logits`], with the widest vectors there are.
pub(super) fn shard_logits_wide(network: Network<'_>, shard: &Shard, space: &mut Workspace) -> Vec<f32> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has AVX2, as just asked.
        return unsafe { logits_with_avx2(network, shard, space) };
    }
    shard_logits(network, shard, space)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn logits_with_avx2(network: Network<'_>, shard: &Shard, space: &mut Workspace) -> Vec<f32> {
    shard_logits(network, shard, space)
}
