//! Just enough of the tar format to read regular files out of a package, one after the other.

use std::io::{self, Read};

const BLOCK: usize = 512;

/// A tar archive read as a stream.
#[derive(Debug)]
pub(super) struct Tarball<R> {
    input: R,
    /// Bytes of the current file and its padding that are still unread.
    pending: u64,
}

/// One file; reading it ends where the file ends.
#[derive(Debug)]
pub(super) struct TarFile<'t, R> {
    name: String,
    size: u64,
    left: u64,
    tarball: &'t mut Tarball<R>,
}

impl<R: Read> Tarball<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, pending: 0 }
    }

    /// The next regular file; other entries are passed over.
    pub(super) fn next_file(&mut self) -> io::Result<Option<TarFile<'_, R>>> {
        loop {
            self.skip_pending()?;
            let mut header = [0; BLOCK];
            self.input.read_exact(&mut header)?;
            if header.iter().all(|&byte| byte == 0) {
                return Ok(None);
            }
            verify_checksum(&header)?;
            let size = octal(&header[124..136])?;
            self.pending = size.div_ceil(BLOCK as u64) * BLOCK as u64;
            let regular = matches!(header[156], 0 | b'0');
            if regular {
                let (name, prefix) = (text(&header[..100])?, text(&header[345..500])?);
                let ustar = &header[257..262] == b"ustar";
                let name = if ustar && !prefix.is_empty() {
                    format!("{prefix}/{name}")
                } else {
                    name
                };
                return Ok(Some(TarFile {
                    name,
                    size,
                    left: size,
                    tarball: self,
                }));
            }
        }
    }

    fn skip_pending(&mut self) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.input).take(self.pending), &mut io::sink())?;
        if skipped < self.pending {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.pending = 0;
        Ok(())
    }
}

impl<R> TarFile<'_, R> {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

impl<R: Read> Read for TarFile<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.tarball.input.read(&mut out[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        self.tarball.pending -= read as u64;
        Ok(read)
    }
}

/// The header's bytes add up to the number in it, its own field taken as blanks.
fn verify_checksum(header: &[u8; BLOCK]) -> io::Result<()> {
    let sum: u64 = header
        .iter()
        .enumerate()
        .map(|(at, &byte)| {
            if (148..156).contains(&at) {
                u64::from(b' ')
            } else {
                u64::from(byte)
            }
        })
        .sum();
    if octal(&header[148..156])? == sum {
        Ok(())
    } else {
        Err(broken("a tar header whose checksum is wrong"))
    }
}

fn octal(field: &[u8]) -> io::Result<u64> {
    let digits = text(field)?;
    u64::from_str_radix(digits.trim(), 8)
        .map_err(|_| broken("a tar header without a number where one belongs"))
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> io::Result<String> {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8(field[..end].to_vec()).map_err(|_| broken("a tar header that is not text"))
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An archive of regular files.
    pub(in super::super) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, content) in files {
            let mut header = [0_u8; BLOCK];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
            header[148..156].fill(b' ');
            header[156] = b'0';
            let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
            header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
            archive.extend_from_slice(&header);
            archive.extend_from_slice(content);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.extend_from_slice(&[0; 2 * BLOCK]);
        archive
    }

    #[test]
    fn files_come_out_as_they_went_in_read_or_not() {
        let long = vec![b'x'; 1300];
        let archive = tar(&[("a", b"one"), ("b", &long), ("c", b"")]);
        let mut tarball = Tarball::new(archive.as_slice());
        let mut content = Vec::new();
        tarball
            .next_file()
            .unwrap()
            .unwrap()
            .read_to_end(&mut content)
            .unwrap();
        assert_eq!(content, b"one");
        assert_eq!(tarball.next_file().unwrap().unwrap().size(), 1300); // and not read
        assert_eq!(tarball.next_file().unwrap().unwrap().name(), "c");
        assert!(tarball.next_file().unwrap().is_none());
    }

    #[test]
    fn a_cut_or_changed_archive_is_refused() {
        let archive = tar(&[("a", &[b'y'; 700])]);
        let mut cut = Tarball::new(&archive[..900]);
        let mut content = Vec::new();
        assert!(
            cut.next_file()
                .unwrap()
                .unwrap()
                .read_to_end(&mut content)
                .is_err()
        );
        let mut changed = archive.clone();
        changed[0] ^= 1;
        assert!(Tarball::new(changed.as_slice()).next_file().is_err());
    }
}
