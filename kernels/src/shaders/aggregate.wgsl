// The messages of a graph layer. For keyword vertex v: m = (1+ε)·p_v + Σ_e weights[e]·p_neighbours[e] + p_text; for the
// text vertex, the row after them: m = (1+ε)·p_text + c·Σ_v p_v.

struct Shape {
    // Keyword vertices.
    vertices: u32,
    // Rows: one more when there is a text vertex.
    rows: u32,
    width: u32,
    own: f32,
    factor: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> p: array<f32>;
@group(0) @binding(2) var<storage, read> offsets: array<u32>;
@group(0) @binding(3) var<storage, read> neighbours: array<u32>;
@group(0) @binding(4) var<storage, read> weights: array<f32>;
@group(0) @binding(5) var<storage, read_write> m: array<f32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let place = (group.x + group.y * grid.x) * 64u + lane;
    if (place >= shape.rows * shape.width) {
        return;
    }
    let row = place / shape.width;
    let column = place % shape.width;
    var sum = shape.own * p[place];
    if (row == shape.vertices) {
        for (var v = 0u; v < shape.vertices; v = v + 1u) {
            sum = sum + shape.factor * p[v * shape.width + column];
        }
    } else {
        for (var e = offsets[row]; e < offsets[row + 1u]; e = e + 1u) {
            sum = sum + weights[e] * p[neighbours[e] * shape.width + column];
        }
        if (shape.rows > shape.vertices) {
            sum = sum + p[shape.vertices * shape.width + column];
        }
    }
    m[place] = sum;
}
