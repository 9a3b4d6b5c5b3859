// A matrix's numbers, packed into words: signed bytes, halves or singles. Bytes and halves are to be multiplied with
// their row's scale.

override BITS: u32 = 8u;

// Where in its row the word with a column's number is.
fn word_of(column: u32) -> u32 {
    return column / (32u / BITS);
}

fn number_in(word: u32, column: u32) -> f32 {
    if (BITS == 8u) {
        return f32(extractBits(bitcast<i32>(word), 8u * (column % 4u), 8u));
    }
    if (BITS == 16u) {
        // A half's bits, moved to where a single has its own; the exponent of a single begins 112 lower. Plain WGSL:
        // neither `shader-f16` nor `unpack2x16float` is there on every GPU.
        let half = extractBits(bitcast<i32>(word), 16u * (column % 2u), 16u);
        return bitcast<f32>((half << 13u) & ~0x70000000) * 0x1p112f;
    }
    return bitcast<f32>(word);
}
