// y = activation(x Wᵀ + b): activations and sums in single precision, weights as numbers.wgsl has them (one scale an
// output). A workgroup computes a tile of 16 rows by 16 outputs, 16 inputs at a time.

struct Shape {
    rows: u32,
    inputs: u32,
    outputs: u32,
    // Words of one output's weights.
    words: u32,
    activation: u32,
    // 0: no bias.
    biased: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const TILE = 16u;
// One more than the tile: neighbouring invocations read different banks.
const STRIDE = 17u;
var<workgroup> x_tile: array<f32, 272>;
var<workgroup> w_tile: array<f32, 272>;

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let row = group.y * TILE + local.y;
    let output = group.x * TILE + local.x;
    let loaded_output = group.x * TILE + local.y;
    var sum = 0.0;
    for (var start = 0u; start < shape.inputs; start = start + TILE) {
        let input = start + local.x;
        var value = 0.0;
        if (row < shape.rows && input < shape.inputs) {
            value = x[row * shape.inputs + input];
        }
        x_tile[local.y * STRIDE + local.x] = value;
        var factor = 0.0;
        if (loaded_output < shape.outputs && input < shape.inputs) {
            factor = number_in(weights[loaded_output * shape.words + word_of(input)], input);
        }
        w_tile[local.y * STRIDE + local.x] = factor;
        workgroupBarrier();
        for (var i = 0u; i < TILE; i = i + 1u) {
            sum = sum + x_tile[local.y * STRIDE + i] * w_tile[local.x * STRIDE + i];
        }
        workgroupBarrier();
    }
    if (row < shape.rows && output < shape.outputs) {
        if (BITS < 32u) {
            sum = sum * scales[output];
        }
        if (shape.biased != 0u) {
            sum = sum + bias[output];
        }
        y[row * shape.outputs + output] = activate(sum, shape.activation);
    }
}
