// y = activation(step · scale · Σ w·a + b): eight-bit weights times the codes that quantise.wgsl makes, four products to
// an instruction. Σ w·a = 256 · Σ w·high + Σ w·low; integers wrap, so the sum is the reference's, bit for bit.

struct Shape {
    rows: u32,
    outputs: u32,
    // Words of one output's weights, and of one row's high bytes.
    words: u32,
    activation: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> codes: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> steps: array<f32>;
@group(0) @binding(3) var<storage, read> weights: array<u32>;
@group(0) @binding(4) var<storage, read> scales: array<f32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

const TILE = 16u;
const STRIDE = 17u;
var<workgroup> code_tile: array<vec2<u32>, 272>;
var<workgroup> weight_tile: array<u32, 272>;

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let row = group.y * TILE + local.y;
    let output = group.x * TILE + local.x;
    let loaded_output = group.x * TILE + local.y;
    var high = 0i;
    var low = 0i;
    for (var start = 0u; start < shape.words; start = start + TILE) {
        let word = start + local.x;
        var pair = vec2<u32>(0u, 0u);
        if (row < shape.rows && word < shape.words) {
            pair = codes[row * shape.words + word];
        }
        code_tile[local.y * STRIDE + local.x] = pair;
        var packed = 0u;
        if (loaded_output < shape.outputs && word < shape.words) {
            packed = weights[loaded_output * shape.words + word];
        }
        weight_tile[local.y * STRIDE + local.x] = packed;
        workgroupBarrier();
        for (var i = 0u; i < TILE; i = i + 1u) {
            let four = code_tile[local.y * STRIDE + i];
            let factors = weight_tile[local.x * STRIDE + i];
            high = high + dot4I8Packed(four.x, factors);
            low = low + dot4I8Packed(four.y, factors);
        }
        workgroupBarrier();
    }
    if (row < shape.rows && output < shape.outputs) {
        let sum = f32(high * 256 + low) * (steps[row] * scales[output]) + bias[output];
        y[row * shape.outputs + output] = activate(sum, shape.activation);
    }
}
