// The `count` largest numbers with their places, largest first, ties by place: one round each over a single workgroup.
// Numbers are compared as integers that sort like IEEE's total order, so nothing is lost to rounding or NaN.

struct Shape {
    length: u32,
    count: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> numbers: array<u32>;
// Place and number of each; the place is 2³²−1 where the list is shorter than asked.
@group(0) @binding(2) var<storage, read_write> best: array<vec2<u32>>;

const NOWHERE = 0xffffffffu;
var<workgroup> keys: array<u32, 64>;
var<workgroup> places: array<u32, 64>;

fn sortable(bits: u32) -> u32 {
    if ((bits & 0x80000000u) != 0u) {
        return ~bits;
    }
    return bits | 0x80000000u;
}

fn before(key: u32, place: u32, other_key: u32, other_place: u32) -> bool {
    return key > other_key || (key == other_key && place < other_place);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    var last_key = 0xffffffffu;
    var last_place = 0u;
    for (var round = 0u; round < shape.count; round = round + 1u) {
        var key = 0u;
        var place = NOWHERE;
        for (var i = lane; i < shape.length; i = i + 64u) {
            let other = sortable(numbers[i]);
            let fresh = round == 0u || before(last_key, last_place, other, i);
            if (fresh && (place == NOWHERE || before(other, i, key, place))) {
                key = other;
                place = i;
            }
        }
        keys[lane] = key;
        places[lane] = place;
        workgroupBarrier();
        for (var half = 32u; half > 0u; half = half / 2u) {
            if (lane < half) {
                let other_place = places[lane + half];
                if (other_place != NOWHERE
                    && (places[lane] == NOWHERE || before(keys[lane + half], other_place, keys[lane], places[lane]))) {
                    keys[lane] = keys[lane + half];
                    places[lane] = other_place;
                }
            }
            workgroupBarrier();
        }
        last_key = keys[0];
        last_place = places[0];
        workgroupBarrier();
        if (lane == 0u) {
            var number = 0u;
            if (last_place != NOWHERE) {
                number = numbers[last_place];
            }
            best[round] = vec2<u32>(last_place, number);
        }
    }
}
