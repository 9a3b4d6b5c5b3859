// What may follow a linear layer: 0 nothing, 1 ReLU, 2 GELU in its exact form, with the error function of the reference.

fn erf(x: f32) -> f32 {
    // Beyond 10 the tail is zero in single precision, and the square stays finite.
    let size = min(abs(x), 10.0);
    let t = 1.0 / (1.0 + 0.3275911 * size);
    var series = 1.0614054;
    series = series * t - 1.453152;
    series = series * t + 1.4214137;
    series = series * t - 0.28449674;
    series = series * t + 0.2548296;
    let tail = series * t * exp(-(size * size));
    return select(1.0 - tail, tail - 1.0, x < 0.0);
}

fn activate(x: f32, kind: u32) -> f32 {
    if (kind == 1u) {
        return max(x, 0.0);
    }
    if (kind == 2u) {
        return 0.5 * x * (1.0 + erf(x * 0.70710678));
    }
    return x;
}
