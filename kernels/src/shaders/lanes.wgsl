// Sums and maxima over the 64 invocations of a workgroup. Every invocation must call them, with the same shape.

const LANES = 64u;
var<workgroup> lanes: array<f32, LANES>;

fn sum_over_lanes(lane: u32, value: f32) -> f32 {
    lanes[lane] = value;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half = half / 2u) {
        if (lane < half) {
            lanes[lane] = lanes[lane] + lanes[lane + half];
        }
        workgroupBarrier();
    }
    let sum = lanes[0];
    workgroupBarrier();
    return sum;
}

fn most_over_lanes(lane: u32, value: f32) -> f32 {
    lanes[lane] = value;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half = half / 2u) {
        if (lane < half) {
            lanes[lane] = max(lanes[lane], lanes[lane + half]);
        }
        workgroupBarrier();
    }
    let most = lanes[0];
    workgroupBarrier();
    return most;
}
