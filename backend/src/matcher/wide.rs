//! The fused pass compiled once more for the vector units this machine turns out to have.
//!
//! Rust never contracts a product and a sum into one rounding by itself, so both versions give the same numbers.
#![allow(unsafe_code)] // Calls into functions that ask for AVX2, after asking the machine.

use super::batch::Shard;
use super::gin::{Network, Tape, Workspace, shard_backward, shard_forward, shard_logits};
use super::radam::{RAdam, Step, StepFactors};

/// `$wide` is `$plain` with the widest vectors there are.
macro_rules! widened {
    ($wide:ident = $plain:path, ($($name:ident: $kind:ty),*) $(-> $result:ty)?) => {
        #[allow(clippy::too_many_arguments)]
        pub(super) fn $wide($($name: $kind),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                #[target_feature(enable = "avx2")]
                fn with_avx2($($name: $kind),*) $(-> $result)? {
                    $plain($($name),*)
                }
                // SAFETY: the machine has AVX2, as just asked.
                return unsafe { with_avx2($($name),*) };
            }
            $plain($($name),*)
        }
    };
}

widened!(shard_forward_wide = shard_forward, (
    network: Network<'_>,
    shard: &Shard,
    first_pair: usize,
    tapes: &mut Vec<Tape>,
    readouts: &mut [&mut [f32]]
));

widened!(shard_backward_wide = shard_backward, (
    network: Network<'_>,
    shard: &Shard,
    tapes: &[Tape],
    dreadouts: &mut [&mut [f32]],
    space: &mut Workspace,
    gradient: &mut [f32],
    embedded: &mut [&mut [f32]]
));

widened!(shard_logits_wide = shard_logits, (
    network: Network<'_>,
    shard: &Shard,
    tapes: &mut Vec<Tape>
) -> Vec<f32>);

widened!(update_wide = RAdam::update_by, (
    radam: &RAdam,
    weights: &mut [f32],
    gradient: &[f32],
    moments: (&mut [f32], &mut [f32]),
    rates: &[f32],
    step: Step,
    factors: StepFactors
));
