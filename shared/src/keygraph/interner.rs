//! Strings as numbers, for one document: no allocation a word, ids in order of first appearance.

/// Multiply-and-rotate over eight bytes at a time. Good enough for words, and far quicker than a keyed hash;
/// a document that forces collisions only slows itself down.
fn hash(bytes: &[u8]) -> u32 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        state = (state.rotate_left(5) ^ word).wrapping_mul(K);
    }
    let mut tail = [0u8; 8];
    tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    state = (state.rotate_left(5) ^ u64::from_le_bytes(tail)).wrapping_mul(K);
    (state ^ (state >> 32)) as u32
}

/// A table of strings. Emptying it keeps its memory for the next document.
#[derive(Clone, Debug, Default)]
pub(super) struct Interner {
    bytes: String,
    /// End of each string in `bytes`, and its hash.
    entries: Vec<(usize, u32)>,
    /// Open addressing, power of two; 0 is free, otherwise id + 1.
    slots: Vec<u32>,
}

impl Interner {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.slots.fill(0);
        // One huge document must not make every later small one pay for its table.
        if self.slots.len() > 1 << 16 {
            self.slots = Vec::new();
            self.bytes = String::new();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, id: u32) -> &str {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.entries[id - 1].0 };
        &self.bytes[start..self.entries[id].0]
    }

    /// The number of a string: the next free one if it is new.
    pub(super) fn intern(&mut self, string: &str) -> u32 {
        if (self.entries.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let hash = hash(string.as_bytes());
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != 0 {
            let id = self.slots[slot] - 1;
            if self.entries[id as usize].1 == hash && self.get(id) == string {
                return id;
            }
            slot = (slot + 1) & mask;
        }
        let id = self.entries.len() as u32;
        self.bytes.push_str(string);
        self.entries.push((self.bytes.len(), hash));
        self.slots[slot] = id + 1;
        id
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(256);
        self.slots.clear();
        self.slots.resize(size, 0);
        for (id, (_, hash)) in self.entries.iter().enumerate() {
            let mut slot = *hash as usize & (size - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = id as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_a_number_and_numbers_follow_first_appearance() {
        let mut interner = Interner::default();
        let words: Vec<String> = (0..5_000).map(|i| format!("word{}", i * 7919 % 3_001)).collect();
        let mut seen: Vec<&str> = Vec::new();
        for word in &words {
            let id = interner.intern(word);
            if id as usize == seen.len() {
                seen.push(word);
            }
            assert_eq!(seen[id as usize], word);
            assert_eq!(interner.get(id), word);
        }
        assert_eq!(interner.len(), 3_001);
        interner.clear();
        assert_eq!(interner.intern("new"), 0);
        assert_eq!(interner.get(0), "new");
    }
}
