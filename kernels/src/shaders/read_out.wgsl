// R = h_text + c · Σ_v h_v, written to one or two places of the read-outs, one a branch.

struct Shape {
    // Keyword vertices.
    vertices: u32,
    // Rows: one more when there is a text vertex.
    rows: u32,
    width: u32,
    factor: f32,
    first: u32,
    // The same as `first` when one branch reads it.
    second: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> h: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let column = (group.x + group.y * grid.x) * 64u + lane;
    if (column >= shape.width) {
        return;
    }
    var sum = 0.0;
    for (var v = 0u; v < shape.vertices; v = v + 1u) {
        sum = sum + shape.factor * h[v * shape.width + column];
    }
    if (shape.rows > shape.vertices) {
        sum = sum + h[shape.vertices * shape.width + column];
    }
    out[shape.first + column] = sum;
    out[shape.second + column] = sum;
}
