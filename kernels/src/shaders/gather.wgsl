// Weighted sums of table rows: out[r] = [ base[r] | Σ_e weights[e] · table[indices[e]] ], e from offsets[r] to
// offsets[r + 1]. With one index of weight 1 a row it looks embeddings up; with a vertex's sentences it is the incidence
// matrix times the sentence vectors. An index outside the table counts as a zero row.

struct Shape {
    rows: u32,
    // Columns copied from `base`.
    base: u32,
    // Columns of the table.
    width: u32,
    // Words of a table row.
    words: u32,
    // Rows of the table.
    table: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> base: array<f32>;
@group(0) @binding(2) var<storage, read> offsets: array<u32>;
@group(0) @binding(3) var<storage, read> indices: array<u32>;
@group(0) @binding(4) var<storage, read> weights: array<f32>;
@group(0) @binding(5) var<storage, read> table: array<u32>;
@group(0) @binding(6) var<storage, read> scales: array<f32>;
@group(0) @binding(7) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let place = (group.x + group.y * grid.x) * 64u + lane;
    let whole = shape.base + shape.width;
    if (place >= shape.rows * whole) {
        return;
    }
    let row = place / whole;
    let column = place % whole;
    if (column < shape.base) {
        out[place] = base[row * shape.base + column];
        return;
    }
    let at = column - shape.base;
    var sum = 0.0;
    for (var e = offsets[row]; e < offsets[row + 1u]; e = e + 1u) {
        let index = indices[e];
        if (index < shape.table) {
            let number = number_in(table[index * shape.words + word_of(at)], at);
            if (BITS < 32u) {
                sum = sum + weights[e] * scales[index] * number;
            } else {
                sum = sum + weights[e] * number;
            }
        }
    }
    out[place] = sum;
}
