// out = activation((x + y − mean) / √(variance + ε) · gain + shift), row by row; y only when `added`.

struct Shape {
    rows: u32,
    width: u32,
    added: u32,
    activation: u32,
    epsilon: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read> gain: array<f32>;
@group(0) @binding(4) var<storage, read> shift: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

fn value(at: u32) -> f32 {
    if (shape.added != 0u) {
        return x[at] + y[at];
    }
    return x[at];
}

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
    let first = row * shape.width;
    let count = f32(shape.width);
    var sum = 0.0;
    for (var i = lane; i < shape.width; i = i + LANES) {
        sum = sum + value(first + i);
    }
    let mean = sum_over_lanes(lane, sum) / count;
    var squares = 0.0;
    for (var i = lane; i < shape.width; i = i + LANES) {
        let off = value(first + i) - mean;
        squares = squares + off * off;
    }
    let variance = sum_over_lanes(lane, squares) / count;
    let inverse = 1.0 / sqrt(variance + shape.epsilon);
    for (var i = lane; i < shape.width; i = i + LANES) {
        let normed = (value(first + i) - mean) * inverse * gain[i] + shift[i];
        out[first + i] = activate(normed, shape.activation);
    }
}
