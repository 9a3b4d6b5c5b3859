//! Gzip and zstd, told by their first bytes and never by a file's name.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How a stream of bytes is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// What the first bytes of a file say.
    pub fn of(start: &[u8]) -> Self {
        if start.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else if start.starts_with(&ZSTD_MAGIC) {
            Self::Zstd
        } else {
            Self::None
        }
    }
}

/// Unpacks `raw` if it is packed. Truncated or damaged input surfaces as an error of the reader, never as a short read.
pub(super) fn unpack(raw: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    let mut raw = BufReader::with_capacity(1 << 16, raw);
    let start = first_bytes(&mut raw)?;
    Ok(match Compression::of(&start) {
        Compression::None => Box::new(io::Cursor::new(start).chain(raw)),
        Compression::Gzip => Box::new(BufReader::with_capacity(
            1 << 17,
            MultiGzDecoder::new(io::Cursor::new(start).chain(raw)),
        )),
        Compression::Zstd => Box::new(BufReader::with_capacity(
            1 << 17,
            ZstdFrames {
                source: io::Cursor::new(start).chain(raw),
                frame: FrameDecoder::new(),
                open: false,
            },
        )),
    })
}

/// As many first bytes as it takes to tell. A pipe may deliver them one at a time, and may wait for an answer to the first.
fn first_bytes(raw: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(ZSTD_MAGIC.len());
    while start.len() < ZSTD_MAGIC.len()
        && [&GZIP_MAGIC[..], &ZSTD_MAGIC]
            .iter()
            .any(|magic| magic.starts_with(&start))
    {
        if raw.by_ref().take(1).read_to_end(&mut start)? == 0 {
            break;
        }
    }
    Ok(start)
}

/// All frames of a zstd stream one after the other, checksums verified where a frame carries one.
struct ZstdFrames<R> {
    source: R,
    frame: FrameDecoder,
    /// Whether `frame` is in the middle of one.
    open: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    /// Opens the next frame; `false` at the end of the stream.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.frame.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut self.source).take(u64::from(length)), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(damaged(error)),
            }
        }
    }

    fn verify_checksum(&self) -> io::Result<()> {
        match (
            self.frame.get_checksum_from_data(),
            self.frame.get_calculated_checksum(),
        ) {
            (Some(stored), Some(computed)) if stored != computed => {
                Err(damaged("the checksum does not fit the content"))
            }
            _ => Ok(()),
        }
    }
}

fn damaged(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.open {
                if !self.next_frame()? {
                    return Ok(0);
                }
                self.open = true;
            }
            while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                self.frame
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBytes(out.len()))
                    .map_err(damaged)?;
            }
            let copied = self.frame.read(out)?;
            if copied > 0 {
                return Ok(copied);
            }
            self.verify_checksum()?;
            self.open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read_all(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        unpack(io::Cursor::new(bytes))?.read_to_end(&mut all)?;
        Ok(all)
    }

    fn sample() -> Vec<u8> {
        (0..200_000_u32)
            .flat_map(|i| (i.wrapping_mul(2_654_435_761) >> 20).to_le_bytes())
            .collect()
    }

    #[test]
    fn plain_gzip_and_zstd_give_the_same_bytes() {
        let plain = sample();
        assert_eq!(read_all(plain.clone()).unwrap(), plain);
        assert_eq!(read_all(gzip(&plain)).unwrap(), plain);
        assert_eq!(
            read_all(compress_to_vec(plain.as_slice(), CompressionLevel::Fastest)).unwrap(),
            plain
        );
    }

    #[test]
    fn joined_members_and_frames_are_all_read() {
        assert_eq!(
            read_all([gzip(b"one "), gzip(b"two")].concat()).unwrap(),
            b"one two"
        );
        let frame = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        assert_eq!(
            read_all([frame(b"one "), skippable, frame(b"two")].concat()).unwrap(),
            b"one two"
        );
    }

    #[test]
    fn a_truncated_file_is_an_error_not_a_short_corpus() {
        let plain = sample();
        for packed in [
            gzip(&plain),
            compress_to_vec(plain.as_slice(), CompressionLevel::Fastest),
        ] {
            for cut in [5, packed.len() / 2, packed.len() - 1] {
                assert!(
                    read_all(packed[..cut].to_vec()).is_err(),
                    "cut at {cut} of {}",
                    packed.len()
                );
            }
        }
    }

    #[test]
    fn no_more_bytes_are_waited_for_than_it_takes_to_tell() {
        let told = |mut bytes: &[u8]| first_bytes(&mut bytes).unwrap().len();
        assert_eq!(told(b"\n{\"text\":"), 1);
        assert_eq!(told(&gzip(b"roses")), 3);
        assert_eq!(told(&ZSTD_MAGIC), 4);
    }

    #[test]
    fn files_shorter_than_a_magic_number_are_plain() {
        for short in [&b""[..], b"a", b"ab"] {
            assert_eq!(read_all(short.to_vec()).unwrap(), short);
        }
    }
}
