//! The binary form of a part: magic, version, kind, then fields; little endian, lengths before contents.
//!
//! [`Writer`] and [`Reader`] are mirror images. A reader knows how many bytes are left and checks every count against
//! them before it allocates, so a part that claims four billion entries in twenty bytes costs nothing.

use super::BundleError;
use super::error::{QUOTED, cut};

const MAGIC: [u8; 4] = *b"GXML";
const WIRE_VERSION: u16 = 1;

/// Builds a part.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Starts a part of this kind (four letters, such as `b"LABL"`).
    pub fn new(kind: [u8; 4]) -> Self {
        let mut bytes = Vec::with_capacity(1024);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&WIRE_VERSION.to_le_bytes());
        bytes.extend_from_slice(&kind);
        Self { bytes }
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn f32(&mut self, value: f32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// LEB128: seven bits a byte, small numbers in one byte.
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub fn count(&mut self, value: usize) {
        self.varint(value as u64);
    }

    pub fn string(&mut self, value: &str) {
        self.count(value.len());
        self.bytes.extend_from_slice(value.as_bytes());
    }

    pub fn i8s(&mut self, values: &[i8]) {
        self.count(values.len());
        self.bytes.extend_from_slice(bytemuck::cast_slice(values));
    }

    pub fn u8s(&mut self, values: &[u8]) {
        self.count(values.len());
        self.bytes.extend_from_slice(values);
    }

    pub fn f32s(&mut self, values: &[f32]) {
        self.count(values.len());
        for value in values {
            self.f32(*value);
        }
    }

    /// Noughts, so that the part has at least this many bytes.
    pub fn fill(&mut self, least: usize) {
        let missing = least.saturating_sub(self.bytes.len());
        self.u8s(&vec![0; missing]);
    }

    /// Strictly ascending numbers as the gaps between them.
    ///
    /// # Panics
    /// When the numbers do not ascend: the caller's mistake, not the reader's.
    pub fn ascending(&mut self, values: &[u32]) {
        self.count(values.len());
        let mut floor = 0;
        for &value in values {
            assert!(value >= floor, "ascending() was given {value} after {floor}");
            self.varint(u64::from(value - floor));
            floor = value.wrapping_add(1);
        }
    }
}

/// Reads a part, field by field, in the order it was written.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    part: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Opens a part and checks its magic, version and kind.
    pub fn new(part: &'a str, bytes: &'a [u8], kind: [u8; 4]) -> Result<Self, BundleError> {
        let mut reader = Self { part, bytes, at: 0 };
        let magic = reader.take(4, "magic")?;
        if magic != MAGIC {
            return Err(reader.value(0, "magic", format!("{magic:02x?}"), "GXML"));
        }
        let version = reader.take(2, "version")?;
        let version = u16::from_le_bytes([version[0], version[1]]);
        if version != WIRE_VERSION {
            return Err(reader.value(4, "version", version.to_string(), &WIRE_VERSION.to_string()));
        }
        let found = reader.take(4, "kind")?;
        if found != kind {
            let found = String::from_utf8_lossy(found).into_owned();
            return Err(reader.value(6, "kind", found, &String::from_utf8_lossy(&kind)));
        }
        Ok(reader)
    }

    /// Checks that nothing is left.
    pub fn finish(self) -> Result<(), BundleError> {
        let extra = self.bytes.len() - self.at;
        if extra == 0 {
            Ok(())
        } else {
            Err(BundleError::Trailing {
                part: self.part.into(),
                extra,
            })
        }
    }

    /// An error about the value just read.
    pub fn bad(&self, what: &'static str, found: impl std::fmt::Display, expected: &str) -> BundleError {
        self.value(self.at, what, found.to_string(), expected)
    }

    fn value(&self, at: usize, what: &'static str, found: String, expected: &str) -> BundleError {
        BundleError::Value {
            part: self.part.into(),
            at,
            what,
            found: cut(&found, QUOTED),
            expected: cut(expected, QUOTED),
        }
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], BundleError> {
        let left = self.bytes.len() - self.at;
        if length > left {
            return Err(BundleError::Truncated {
                part: self.part.into(),
                at: self.bytes.len(),
                wanted: (length - left) as u64,
                what,
            });
        }
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, BundleError> {
        Ok(self.take(1, what)?[0])
    }

    pub fn f32(&mut self, what: &'static str) -> Result<f32, BundleError> {
        let four = self.take(4, what)?;
        Ok(f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
    }

    pub fn varint(&mut self, what: &'static str) -> Result<u64, BundleError> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8(what)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                if shift == 63 && byte > 1 {
                    break;
                }
                return Ok(value);
            }
        }
        Err(self.value(
            start,
            what,
            "a number of more than 64 bits".into(),
            "at most ten bytes",
        ))
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, BundleError> {
        let start = self.at;
        let value = self.varint(what)?;
        u32::try_from(value).map_err(|_| self.value(start, what, value.to_string(), "below 2^32"))
    }

    /// A number from 1 to `most`.
    pub fn number(&mut self, most: usize, what: &'static str) -> Result<usize, BundleError> {
        let start = self.at;
        let value = self.varint(what)?;
        if value == 0 || value > most as u64 {
            return Err(self.value(start, what, value.to_string(), &format!("from 1 to {most}")));
        }
        Ok(value as usize)
    }

    /// A count of things that take at least `each` bytes: never more than what is left can hold.
    pub fn count(&mut self, each: usize, what: &'static str) -> Result<usize, BundleError> {
        let count = self.varint(what)?;
        let left = (self.bytes.len() - self.at) as u64;
        let needed = count.saturating_mul(each.max(1) as u64);
        if needed > left {
            return Err(BundleError::Truncated {
                part: self.part.into(),
                at: self.bytes.len(),
                wanted: needed - left,
                what,
            });
        }
        Ok(count as usize)
    }

    pub fn string(&mut self, what: &'static str) -> Result<&'a str, BundleError> {
        let length = self.count(1, what)?;
        let start = self.at;
        std::str::from_utf8(self.take(length, what)?)
            .map_err(|error| self.value(start, what, error.to_string(), "UTF-8"))
    }

    pub fn i8s(&mut self, what: &'static str) -> Result<&'a [i8], BundleError> {
        Ok(bytemuck::cast_slice(self.u8s(what)?))
    }

    pub fn u8s(&mut self, what: &'static str) -> Result<&'a [u8], BundleError> {
        let length = self.count(1, what)?;
        self.take(length, what)
    }

    /// Mirror of [`Writer::fill`].
    pub fn fill(&mut self) -> Result<(), BundleError> {
        self.u8s("filling").map(|_| ())
    }

    /// Finite floats only: a NaN in a weight would silence every score it touches.
    pub fn f32s(&mut self, what: &'static str) -> Result<Vec<f32>, BundleError> {
        let count = self.count(4, what)?;
        let start = self.at;
        let raw = self.take(4 * count, what)?;
        let values: Vec<f32> = raw
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
            .collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(bad) => Err(self.value(start + 4 * bad, what, values[bad].to_string(), "a finite number")),
            None => Ok(values),
        }
    }

    /// Mirror of [`Writer::ascending`], every number below `limit`.
    pub fn ascending(&mut self, limit: u32, what: &'static str) -> Result<Vec<u32>, BundleError> {
        let count = self.count(1, what)?;
        let mut values = Vec::with_capacity(count);
        let mut floor = 0_u64;
        for _ in 0..count {
            let start = self.at;
            let value = floor.saturating_add(self.varint(what)?);
            if value >= u64::from(limit) {
                return Err(self.value(start, what, value.to_string(), &format!("below {limit}")));
            }
            values.push(value as u32);
            floor = value + 1;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::new(*b"TEST");
        writer.u8(7);
        writer.varint(u64::MAX);
        writer.string("Grüße");
        writer.i8s(&[-128, 0, 127]);
        writer.f32s(&[1.5, -0.25]);
        writer.ascending(&[0, 1, 5, 4_000_000_000]);
        let bytes = writer.finish();
        let mut reader = Reader::new("test", &bytes, *b"TEST").unwrap();
        assert_eq!(reader.u8("a").unwrap(), 7);
        assert_eq!(reader.varint("b").unwrap(), u64::MAX);
        assert_eq!(reader.string("c").unwrap(), "Grüße");
        assert_eq!(reader.i8s("d").unwrap(), &[-128, 0, 127]);
        assert_eq!(reader.f32s("e").unwrap(), &[1.5, -0.25]);
        assert_eq!(
            reader.ascending(u32::MAX, "f").unwrap(),
            &[0, 1, 5, 4_000_000_000]
        );
        reader.finish().unwrap();
    }

    #[test]
    fn a_count_beyond_what_is_left_allocates_nothing() {
        let mut writer = Writer::new(*b"TEST");
        writer.varint(u64::MAX / 2);
        let bytes = writer.finish();
        let mut reader = Reader::new("test", &bytes, *b"TEST").unwrap();
        assert!(matches!(
            reader.f32s("weights"),
            Err(BundleError::Truncated { .. })
        ));
    }

    #[test]
    fn another_kind_or_magic_is_refused_by_name() {
        let bytes = Writer::new(*b"TEST").finish();
        let fault = Reader::new("labels", &bytes, *b"LABL").unwrap_err().to_string();
        assert_eq!(fault, "labels: kind at byte 6: found TEST, expected LABL");
        assert!(Reader::new("labels", b"PK\x03\x04\x01\x00TEST", *b"TEST").is_err());
        assert!(Reader::new("labels", b"", *b"TEST").is_err());
    }

    #[test]
    fn a_nan_weight_is_refused() {
        let mut writer = Writer::new(*b"TEST");
        writer.f32s(&[0.0, f32::NAN]);
        let bytes = writer.finish();
        assert!(Reader::new("t", &bytes, *b"TEST").unwrap().f32s("w").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = Writer::new(*b"TEST").finish();
            bytes.extend(tail);
            let mut reader = Reader::new("t", &bytes, *b"TEST").unwrap();
            while reader.ascending(1000, "ids").and_then(|_| reader.f32s("w").map(|_| ())).and_then(|()| reader.string("s").map(|_| ())).is_ok() {}
        }

        #[test]
        fn ascending_numbers_survive(mut values in proptest::collection::btree_set(any::<u32>(), 0..100)) {
            values.remove(&u32::MAX);
            let values: Vec<u32> = values.into_iter().collect();
            let mut writer = Writer::new(*b"TEST");
            writer.ascending(&values);
            let bytes = writer.finish();
            prop_assert_eq!(Reader::new("t", &bytes, *b"TEST").unwrap().ascending(u32::MAX, "ids").unwrap(), values);
        }
    }
}
