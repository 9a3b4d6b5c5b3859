// The two heads at once: z = α·(W_c h_c + b_c) + (1−α)·(W_r h_r + b_r), and σ(z). One workgroup a cluster.

struct Shape {
    clusters: u32,
    // Width of one read-out.
    width: u32,
    // Words of one cluster's weights.
    words: u32,
    // 1: the first head alone.
    branches: u32,
    alpha: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
// Both read-outs, one after the other; so are scales and biases.
@group(0) @binding(1) var<storage, read> read_outs: array<f32>;
@group(0) @binding(2) var<storage, read> conventional: array<u32>;
@group(0) @binding(3) var<storage, read> rebalance: array<u32>;
@group(0) @binding(4) var<storage, read> scales: array<f32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> logits: array<f32>;
@group(0) @binding(7) var<storage, read_write> probabilities: array<f32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let cluster = group.x + group.y * grid.x;
    if (cluster >= shape.clusters) {
        return;
    }
    let first = cluster * shape.words;
    var one = 0.0;
    var two = 0.0;
    for (var i = lane; i < shape.width; i = i + LANES) {
        let word = first + word_of(i);
        one = one + number_in(conventional[word], i) * read_outs[i];
        if (shape.branches > 1u) {
            two = two + number_in(rebalance[word], i) * read_outs[shape.width + i];
        }
    }
    one = sum_over_lanes(lane, one);
    two = sum_over_lanes(lane, two);
    if (lane == 0u) {
        if (BITS < 32u) {
            one = one * scales[cluster];
            two = two * scales[shape.clusters + cluster];
        }
        var z = one + bias[cluster];
        if (shape.branches > 1u) {
            z = shape.alpha * z + (1.0 - shape.alpha) * (two + bias[shape.clusters + cluster]);
        }
        logits[cluster] = z;
        probabilities[cluster] = 1.0 / (1.0 + exp(-z));
    }
}
