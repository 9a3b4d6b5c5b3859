//! The one dense product of the network, laid out so that the compiler vectorises it.

/// Output columns worked on at a time: two or four vector registers a row.
const COLUMNS: usize = 16;
/// Input rows that share a load of the weights.
const ROWS: usize = 4;

/// `out[r, o] = Σ_i x[r, i] · w[i, o]`, with `w` stored `[inputs, outputs]`.
///
/// # Panics
/// If a slice is shorter than its shape says.
pub fn matmul(x: &[f32], rows: usize, inputs: usize, w: &[f32], outputs: usize, out: &mut [f32]) {
    assert!(x.len() >= rows * inputs && w.len() >= inputs * outputs && out.len() >= rows * outputs);
    let mut row = 0;
    while row + ROWS <= rows {
        block::<ROWS>(&x[row * inputs..], inputs, w, outputs, &mut out[row * outputs..]);
        row += ROWS;
    }
    while row < rows {
        block::<1>(&x[row * inputs..], inputs, w, outputs, &mut out[row * outputs..]);
        row += 1;
    }
}

fn block<const R: usize>(x: &[f32], inputs: usize, w: &[f32], outputs: usize, out: &mut [f32]) {
    let mut column = 0;
    while column + COLUMNS <= outputs {
        let mut sums = [[0.0f32; COLUMNS]; R];
        for i in 0..inputs {
            let start = i * outputs + column;
            let weights: &[f32; COLUMNS] = w[start..start + COLUMNS].try_into().expect("a full block");
            for r in 0..R {
                let value = x[r * inputs + i];
                for c in 0..COLUMNS {
                    sums[r][c] += value * weights[c];
                }
            }
        }
        for r in 0..R {
            out[r * outputs + column..][..COLUMNS].copy_from_slice(&sums[r]);
        }
        column += COLUMNS;
    }
    for c in column..outputs {
        for r in 0..R {
            let mut sum = 0.0;
            for i in 0..inputs {
                sum += x[r * inputs + i] * w[i * outputs + c];
            }
            out[r * outputs + c] = sum;
        }
    }
}
