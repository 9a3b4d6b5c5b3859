// softmax(Q Kᵀ / √d) V for sentences that lie end to end: one workgroup a token and head. A row of `qkv` holds the
// token's query, key and value side by side.

struct Shape {
    tokens: u32,
    width: u32,
    heads: u32,
    scale: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> qkv: array<f32>;
// Of each token: where its sentence starts, and how many tokens it has.
@group(0) @binding(2) var<storage, read> sentences: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> context: array<f32>;

const LONGEST = 512u;
var<workgroup> scores: array<f32, LONGEST>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let place = group.x + group.y * grid.x;
    if (place >= shape.tokens * shape.heads) {
        return;
    }
    let token = place / shape.heads;
    let dims = shape.width / shape.heads;
    let first = (place % shape.heads) * dims;
    let start = sentences[token].x;
    let length = min(sentences[token].y, LONGEST);
    let stride = 3u * shape.width;
    let query = token * stride + first;

    var most = -3.0e38;
    for (var j = lane; j < length; j = j + LANES) {
        let key = (start + j) * stride + shape.width + first;
        var dot = 0.0;
        for (var i = 0u; i < dims; i = i + 1u) {
            dot = dot + qkv[query + i] * qkv[key + i];
        }
        scores[j] = dot;
        most = max(most, dot);
    }
    most = most_over_lanes(lane, most);
    var sum = 0.0;
    for (var j = lane; j < length; j = j + LANES) {
        let share = exp((scores[j] - most) * shape.scale);
        scores[j] = share;
        sum = sum + share;
    }
    sum = sum_over_lanes(lane, sum);
    for (var i = lane; i < dims; i = i + LANES) {
        var mixed = 0.0;
        for (var j = 0u; j < length; j = j + 1u) {
            mixed = mixed + scores[j] * qkv[(start + j) * stride + 2u * shape.width + first + i];
        }
        context[token * shape.width + first + i] = mixed / sum;
    }
}
