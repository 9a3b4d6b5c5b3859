//! Numbers in as few bits as their frequencies allow: rANS (Duda, 2013), one pass forward to read.
//!
//! ```text
//! table     f_s: how often symbol s comes, of TOTAL; c_s: Σ of f before it
//! encode    x ← ⌊x / f_s⌋·TOTAL + c_s + x mod f_s            last symbol first; words of 16 bits leave while x is too large
//! decode    slot = x mod TOTAL names s;  x ← f_s·⌊x / TOTAL⌋ + slot − c_s;   a word comes in while x is too small
//! ```
//!
//! A number below [`PLAIN`] is a symbol of its own; a larger one gives its length and first two bits as a symbol and the others as they are.
//! A decoder that runs out of words goes on with noughts and says so at the end: its caller bounds how much it asks for.

use std::cmp::Ordering;

use super::BundleError;
use super::wire::{Reader, Writer};

const TOTAL_BITS: u32 = 11;
const TOTAL: u32 = 1 << TOTAL_BITS;
/// A state is at least this; below, a word comes in.
const LOWEST: u32 = 1 << 16;
/// Numbers that are symbols themselves.
const PLAIN: u32 = 16;
/// Bits of a larger number that are part of its symbol, after its highest.
const LEADING: u32 = 2;
/// Bits that are taken as they are at a time.
const CHUNK: u32 = 15;
/// Symbols of a number: 16 plain ones, then four for each length of 5 to 32 bits; twice as many with a sign.
const SYMBOLS: usize = 2 * (PLAIN + (28 << LEADING)) as usize;

/// A number as symbol, further bits, and how many those are.
fn split(number: u32) -> (u8, u32, u32) {
    if number < PLAIN {
        return (number as u8, 0, 0);
    }
    let length = number.ilog2();
    let rest = length - LEADING;
    let symbol = PLAIN + ((length - PLAIN.ilog2()) << LEADING) + ((number >> rest) & ((1 << LEADING) - 1));
    (symbol as u8, number & ((1 << rest) - 1), rest)
}

/// f_s of one kind of number, up to the last symbol that comes; they sum to [`TOTAL`], or to nothing where there is no such number.
type Frequencies = Vec<u32>;

/// Scales counts to [`TOTAL`]; what comes at all keeps a part.
fn scaled(counts: &[u32; SYMBOLS]) -> Frequencies {
    let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let known = SYMBOLS - counts.iter().rev().take_while(|&&count| count == 0).count();
    let share = |&count: &u32| {
        let share = (u64::from(count) * u64::from(TOTAL) / all.max(1)) as u32;
        if count == 0 { 0 } else { share.max(1) }
    };
    let mut shares: Frequencies = counts[..known].iter().map(share).collect();
    // What rounding left over or took too much is the commonest symbol's, which feels it least.
    while let Some(commonest) = shares.iter().copied().enumerate().max_by_key(|share| share.1) {
        let sum: u32 = shares.iter().sum();
        match sum.cmp(&TOTAL) {
            Ordering::Equal => break,
            Ordering::Less => shares[commonest.0] += TOTAL - sum,
            Ordering::Greater => shares[commonest.0] -= (sum - TOTAL).min(commonest.1 / 2),
        }
    }
    shares
}

/// Numbers on their way into a part, each of a kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoder {
    /// Kind, symbol, further bits, how many those are.
    numbers: Vec<(u8, u8, u32, u32)>,
}

impl Encoder {
    /// Takes the next number.
    pub(super) fn number(&mut self, kind: usize, number: u32) {
        let (symbol, rest, bits) = split(number);
        self.numbers.push((kind as u8, symbol, rest, bits));
    }

    /// Takes the next number and a sign, which share a symbol.
    pub(super) fn signed(&mut self, kind: usize, number: u32, negative: bool) {
        let (symbol, rest, bits) = split(number);
        self.numbers
            .push((kind as u8, symbol << 1 | u8::from(negative), rest, bits));
    }

    /// Writes the words. Every symbol must have been counted by `tables`.
    pub(super) fn write(&self, tables: &Tables, part: &mut Writer) {
        let places: Vec<Vec<(u32, u32)>> = tables
            .shares
            .iter()
            .map(|shares| {
                let starts = shares
                    .iter()
                    .scan(0, |sum, share| Some(std::mem::replace(sum, *sum + share)));
                starts.zip(shares.iter().copied()).collect()
            })
            .collect();
        let mut state = LOWEST;
        let mut words: Vec<u16> = Vec::new();
        let mut step = |start: u32, share: u32, total_bits: u32| {
            let ceiling = (u64::from(LOWEST >> total_bits) << 16) * u64::from(share);
            if u64::from(state) >= ceiling {
                words.push(state as u16);
                state >>= 16;
            }
            state = ((state / share) << total_bits) + start + state % share;
        };
        for &(kind, symbol, rest, bits) in self.numbers.iter().rev() {
            if bits > CHUNK {
                step(rest >> CHUNK, 1, bits - CHUNK);
            }
            if bits > 0 {
                let low = bits.min(CHUNK);
                step(rest & ((1 << low) - 1), 1, low);
            }
            let (start, share) = places[kind as usize][symbol as usize];
            step(start, share, TOTAL_BITS);
        }
        words.push(state as u16);
        words.push((state >> 16) as u16);
        let bytes: Vec<u8> = words.iter().rev().flat_map(|word| word.to_le_bytes()).collect();
        part.u8s(&bytes);
    }
}

/// How often which symbol of which kind comes.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    shares: Vec<Frequencies>,
    /// [`TOTAL`] slots a kind: symbol, share − 1, place of the slot in its share.
    slots: Vec<u32>,
}

impl Tables {
    /// The tables that suit these numbers best.
    pub(super) fn of<'e>(kinds: usize, encoders: impl IntoIterator<Item = &'e Encoder>) -> Self {
        let mut counts = vec![[0_u32; SYMBOLS]; kinds];
        for &(kind, symbol, ..) in encoders.into_iter().flat_map(|encoder| &encoder.numbers) {
            counts[kind as usize][symbol as usize] += 1;
        }
        Self {
            shares: counts.iter().map(scaled).collect(),
            slots: Vec::new(),
        }
    }

    pub(super) fn write(&self, part: &mut Writer) {
        for shares in &self.shares {
            part.count(shares.len());
            for &share in shares {
                part.varint(u64::from(share));
            }
        }
    }

    pub(super) fn read(part: &mut Reader<'_>, kinds: usize) -> Result<Self, BundleError> {
        let mut slots = vec![0_u32; kinds << TOTAL_BITS];
        for table in slots.chunks_exact_mut(TOTAL as usize) {
            let symbols = part.count(1, "symbols")?;
            if symbols > SYMBOLS {
                return Err(part.bad("symbols", symbols, &format!("at most {SYMBOLS}")));
            }
            let mut start = 0;
            for symbol in 0..symbols as u32 {
                let share = part.varint("frequency")?;
                if share > u64::from(TOTAL - start) {
                    return Err(part.bad("frequency", share, &format!("at most {} more", TOTAL - start)));
                }
                for place in 0..share as u32 {
                    table[(start + place) as usize] = symbol << 24 | (share as u32 - 1) << TOTAL_BITS | place;
                }
                start += share as u32;
            }
            if start != TOTAL && symbols > 0 {
                return Err(part.bad("sum of frequencies", start, &TOTAL.to_string()));
            }
        }
        Ok(Self {
            shares: Vec::new(),
            slots,
        })
    }
}

/// Reads what an [`Encoder`] wrote, in the same order of kinds.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    slots: &'a [u32],
    words: Vec<u16>,
    /// The next word; beyond the last when one was asked for that was not there.
    at: usize,
    state: u32,
}

impl<'a> Decoder<'a> {
    /// Takes the words off a part.
    pub(super) fn new(part: &mut Reader<'a>, tables: &'a Tables) -> Result<Self, BundleError> {
        let words = part.u8s("coded numbers")?;
        let ([a, b, c, d, words @ ..], true) = (words, words.len().is_multiple_of(2)) else {
            return Err(part.bad(
                "coded numbers",
                words.len(),
                "an even number of bytes, at least four",
            ));
        };
        Ok(Self {
            slots: &tables.slots,
            words: (words.chunks_exact(2))
                .map(|two| u16::from_le_bytes([two[0], two[1]]))
                .collect(),
            at: 0,
            state: u32::from_le_bytes([*c, *d, *a, *b]),
        })
    }

    /// The next number, which is of this kind.
    #[inline]
    pub(super) fn number(&mut self, kind: usize) -> u32 {
        // Half of all symbols have no sign; a damaged table may name one of the others.
        let symbol = self.symbol(kind) & (SYMBOLS / 2 - 1) as u32;
        self.unfold(symbol)
    }

    /// The next number with its sign.
    #[inline]
    pub(super) fn signed(&mut self, kind: usize) -> (u32, bool) {
        let symbol = self.symbol(kind);
        (self.unfold(symbol >> 1), symbol & 1 == 1)
    }

    #[inline]
    fn symbol(&mut self, kind: usize) -> u32 {
        let slot = self.slots[kind << TOTAL_BITS | (self.state & (TOTAL - 1)) as usize];
        let share = (slot >> TOTAL_BITS & (TOTAL - 1)) + 1;
        // Never beyond 2³²: share ≤ TOTAL, and the slot's place is below its share.
        self.state = share * (self.state >> TOTAL_BITS) + (slot & (TOTAL - 1));
        self.refill();
        slot >> 24
    }

    #[inline]
    fn unfold(&mut self, symbol: u32) -> u32 {
        if symbol < PLAIN {
            return symbol;
        }
        let rest = ((symbol - PLAIN) >> LEADING) + PLAIN.ilog2() - LEADING;
        let leading = 1 << LEADING | symbol & ((1 << LEADING) - 1);
        let low = self.bits(rest.min(CHUNK));
        let high = if rest > CHUNK { self.bits(rest - CHUNK) } else { 0 };
        leading << rest | high << CHUNK | low
    }

    #[inline]
    fn bits(&mut self, count: u32) -> u32 {
        let bits = self.state & ((1 << count) - 1);
        self.state >>= count;
        self.refill();
        bits
    }

    /// Without a branch: whether a word is due is as good as random.
    #[inline]
    fn refill(&mut self) {
        let due = self.state < LOWEST;
        let word = self.words.get(self.at).copied().unwrap_or(0);
        let filled = self.state << 16 | u32::from(word);
        self.state = if due { filled } else { self.state };
        self.at += usize::from(due);
    }

    /// Checks that the words are used up and brought the state back to where the encoder began.
    pub(super) fn finish(self, part: &Reader<'_>) -> Result<(), BundleError> {
        if self.at != self.words.len() || self.state != LOWEST {
            let found = if self.at > self.words.len() {
                "fewer"
            } else {
                "others"
            };
            return Err(part.bad("coded numbers", found, "the ones that were written"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: usize = 3;

    fn coded(numbers: &[(usize, u32, Option<bool>)]) -> Vec<u8> {
        let mut encoder = Encoder::default();
        for &(kind, number, sign) in numbers {
            match sign {
                None => encoder.number(kind, number),
                Some(negative) => encoder.signed(kind, number, negative),
            }
        }
        let tables = Tables::of(KINDS, [&encoder]);
        let mut part = Writer::new(*b"TEST");
        tables.write(&mut part);
        encoder.write(&tables, &mut part);
        part.finish()
    }

    #[test]
    fn a_number_is_split_into_symbol_and_bits_and_no_two_alike() {
        for number in (0..3000).chain([1 << 20, u32::MAX / 3, u32::MAX]) {
            let (symbol, rest, bits) = split(number);
            assert!(
                (symbol as usize) < SYMBOLS / 2 && u64::from(rest) < 1_u64 << bits,
                "{number}"
            );
            assert!(number == 0 || split(number - 1) != (symbol, rest, bits));
        }
    }

    #[test]
    fn common_numbers_take_less_than_a_bit() {
        let numbers: Vec<_> = (0..8000).map(|i| (0, u32::from(i % 20 == 0), None)).collect();
        let bytes = coded(&numbers).len();
        // Entropy: 0.286 bits a number.
        assert!(bytes < 330, "{bytes} bytes");
    }

    proptest! {
        #[test]
        fn numbers_of_any_kind_and_size_come_back(
            numbers in proptest::collection::vec((0..KINDS, 0..33_u32, any::<u32>(), any::<bool>()), 0..300),
        ) {
            // Kind 2 is signed; sizes are spread over all lengths.
            let numbers: Vec<(usize, u32, Option<bool>)> = numbers
                .into_iter()
                .map(|(kind, bits, number, sign)| {
                    (kind, number.checked_shr(bits).unwrap_or(0), (kind == 2).then_some(sign))
                })
                .collect();
            let bytes = coded(&numbers);
            let mut part = Reader::new("t", &bytes, *b"TEST").unwrap();
            let tables = Tables::read(&mut part, KINDS).unwrap();
            let mut decoder = Decoder::new(&mut part, &tables).unwrap();
            for (kind, number, sign) in numbers {
                let found = match sign {
                    None => (decoder.number(kind), None),
                    Some(_) => {
                        let (number, negative) = decoder.signed(kind);
                        (number, Some(negative))
                    }
                };
                prop_assert_eq!(found, (number, sign));
            }
            decoder.finish(&part).unwrap();
            part.finish().unwrap();
        }

        #[test]
        fn any_bytes_are_decoded_or_refused_without_a_panic(
            tail in proptest::collection::vec(any::<u8>(), 0..300),
            whole in any::<bool>(),
        ) {
            // True tables before false words, or nothing true at all.
            let mut bytes = if whole { coded(&[(0, 5, None), (0, 900, None), (1, 70_000, None), (2, 3, Some(true))]) } else { coded(&[]) };
            let cut = bytes.len() - bytes.len().min(tail.len());
            bytes.truncate(cut.max(10));
            bytes.extend(tail);
            let mut part = Reader::new("t", &bytes, *b"TEST").unwrap();
            if let Ok(tables) = Tables::read(&mut part, KINDS) && let Ok(mut decoder) = Decoder::new(&mut part, &tables) {
                for round in 0..1000 {
                    decoder.number(round % 2);
                    decoder.signed(2);
                }
                let _ = decoder.finish(&part);
            }
        }
    }
}
