// Rounds rows of activations to the codes of the reference's eight-bit layers: a = round(x · shrink / step), one step a
// row from its largest entry. A code takes up to 15 bits; it is kept as 256 · high + low, both signed bytes, four inputs
// to a word, so that packed dot products multiply it exactly.

struct Shape {
    rows: u32,
    inputs: u32,
    // Words of a row's high bytes; its low bytes take as many.
    words: u32,
    // Largest code.
    levels: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> shrink: array<f32>;
// Of each word of a row: the high bytes, then the low ones.
@group(0) @binding(3) var<storage, read_write> codes: array<u32>;
@group(0) @binding(4) var<storage, read_write> steps: array<f32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group.x + group.y * grid.x;
    if (row >= shape.rows) {
        return;
    }
    var most = 0.0;
    for (var input = lane; input < shape.inputs; input = input + LANES) {
        most = max(most, abs(x[row * shape.inputs + input] * shrink[input]));
    }
    most = most_over_lanes(lane, most);
    var inverse = 0.0;
    if (most > 0.0) {
        inverse = shape.levels / most;
    }
    if (lane == 0u) {
        steps[row] = most / shape.levels;
    }
    for (var word = lane; word < shape.words; word = word + LANES) {
        var high = 0u;
        var low = 0u;
        for (var byte = 0u; byte < 4u; byte = byte + 1u) {
            let input = word * 4u + byte;
            if (input < shape.inputs) {
                let value = round(x[row * shape.inputs + input] * shrink[input] * inverse);
                let code = i32(clamp(value, -shape.levels, shape.levels));
                let upper = (code + 128) >> 8u;
                let lower = code - upper * 256;
                high = insertBits(high, bitcast<u32>(upper), byte * 8u, 8u);
                low = insertBits(low, bitcast<u32>(lower), byte * 8u, 8u);
            }
        }
        let at = (row * shape.words + word) * 2u;
        codes[at] = high;
        codes[at + 1u] = low;
    }
}
