//! Screenshots made small: PNG with a palette of at most 256 colours, as text and flat surfaces need no more.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};

use anyhow::{Context as _, Result, bail, ensure};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";
/// A screenshot is no larger on either side.
const LONGEST_SIDE: u32 = 1 << 14;

type Colour = [u8; 3];

/// The same picture with a palette. Takes what browsers write: 8 bits, RGB or RGBA, not interlaced.
pub fn with_palette(png: &[u8]) -> Result<Vec<u8>> {
    let (width, height, pixels) = decode(png)?;
    let (palette, indices) = quantise(&pixels);
    encode(width, height, &palette, &indices)
}

fn decode(png: &[u8]) -> Result<(u32, u32, Vec<Colour>)> {
    let mut rest = png
        .strip_prefix(SIGNATURE)
        .context("not a PNG: its signature is missing")?;
    let (mut head, mut packed) = (None, Vec::new());
    while rest.len() >= 12 {
        let length = u32::from_be_bytes(rest[..4].try_into()?) as usize;
        ensure!(rest.len() >= 12 + length, "a PNG chunk is cut off");
        let (kind, data) = (&rest[4..8], &rest[8..8 + length]);
        match kind {
            b"IHDR" => {
                ensure!(length == 13, "the PNG's head has {length} bytes; expected 13");
                let side =
                    |at: usize| -> Result<u32> { Ok(u32::from_be_bytes(data[at..at + 4].try_into()?)) };
                let (width, height) = (side(0)?, side(4)?);
                ensure!(
                    (1..=LONGEST_SIDE).contains(&width) && (1..=LONGEST_SIDE).contains(&height),
                    "the PNG is {width} × {height}; expected at most {LONGEST_SIDE} a side"
                );
                let channels = match (data[8], data[9], data[12]) {
                    (8, 2, 0) => 3,
                    (8, 6, 0) => 4,
                    (depth, colour, interlace) => bail!(
                        "a PNG of depth {depth}, colour type {colour}, interlace {interlace}; expected 8, 2 or 6, 0"
                    ),
                };
                head = Some((width, height, channels));
            }
            b"IDAT" => packed.extend_from_slice(data),
            _ => {}
        }
        rest = &rest[12 + length..];
    }
    let (width, height, channels) = head.context("the PNG has no head")?;
    let stride = width as usize * channels;
    let expected = (stride + 1) * height as usize;
    let mut rows = Vec::with_capacity(expected);
    ZlibDecoder::new(&packed[..])
        .take(expected as u64)
        .read_to_end(&mut rows)?;
    ensure!(rows.len() == expected, "the PNG's rows are cut off");
    let mut above = vec![0u8; stride];
    let mut pixels = Vec::with_capacity(width as usize * height as usize);
    for row in rows.chunks_exact(stride + 1) {
        let mut line = row[1..].to_vec();
        unfilter(row[0], &mut line, &above, channels)?;
        pixels.extend(
            line.chunks_exact(channels)
                .map(|pixel| [pixel[0], pixel[1], pixel[2]]),
        );
        above = line;
    }
    Ok((width, height, pixels))
}

/// Undoes a row's prediction in place.
fn unfilter(filter: u8, line: &mut [u8], above: &[u8], channels: usize) -> Result<()> {
    for at in 0..line.len() {
        let left = if at >= channels { line[at - channels] } else { 0 };
        let corner = if at >= channels { above[at - channels] } else { 0 };
        let up = above[at];
        let guess = match filter {
            0 => 0,
            1 => left,
            2 => up,
            3 => u8::midpoint(left, up),
            4 => paeth(left, up, corner),
            other => bail!("PNG row filter {other}; expected 0 to 4"),
        };
        line[at] = line[at].wrapping_add(guess);
    }
    Ok(())
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let (l, u, c) = (i16::from(left), i16::from(up), i16::from(corner));
    let estimate = l + u - c;
    let distance = |value: i16| (estimate - value).abs();
    if distance(l) <= distance(u) && distance(l) <= distance(c) {
        left
    } else if distance(u) <= distance(c) {
        up
    } else {
        corner
    }
}

/// Median cut: the box of colours with the widest side is halved until there are 256.
fn quantise(pixels: &[Colour]) -> (Vec<Colour>, Vec<u8>) {
    let mut counts: HashMap<Colour, u64> = HashMap::new();
    for pixel in pixels {
        *counts.entry(*pixel).or_default() += 1;
    }
    let mut colours: Vec<(Colour, u64)> = counts.into_iter().collect();
    colours.sort_unstable();
    let spread = |group: &[(Colour, u64)], axis: usize| {
        let values = || group.iter().map(|(colour, _)| colour[axis]);
        values().max().unwrap_or(0) - values().min().unwrap_or(0)
    };
    let widest = |group: &[(Colour, u64)]| {
        (0..3)
            .max_by_key(|&axis| spread(group, axis))
            .map_or((0, 0), |axis| (spread(group, axis), axis))
    };
    let mut groups = vec![colours];
    while groups.len() < 256 {
        let Some(index) = (0..groups.len())
            .filter(|&index| groups[index].len() > 1)
            .max_by_key(|&index| widest(&groups[index]).0)
        else {
            break;
        };
        let mut group = groups.swap_remove(index);
        let axis = widest(&group).1;
        group.sort_unstable_by_key(|(colour, _)| (colour[axis], *colour));
        let far = group.split_off(group.len() / 2);
        groups.extend([group, far]);
    }
    let mut palette = Vec::new();
    let mut place = HashMap::new();
    for (index, group) in groups.iter().enumerate() {
        // The colour seen most stands for its box: flat surfaces keep theirs exactly.
        let chosen = group
            .iter()
            .max_by_key(|(_, count)| *count)
            .map_or([0; 3], |one| one.0);
        palette.push(chosen);
        place.extend(group.iter().map(|(colour, _)| (*colour, index as u8)));
    }
    let indices = pixels.iter().map(|pixel| place[pixel]).collect();
    (palette, indices)
}

fn encode(width: u32, height: u32, palette: &[Colour], indices: &[u8]) -> Result<Vec<u8>> {
    let mut png = SIGNATURE.to_vec();
    let mut head = Vec::with_capacity(13);
    head.extend(width.to_be_bytes());
    head.extend(height.to_be_bytes());
    head.extend([8, 3, 0, 0, 0]);
    chunk(&mut png, *b"IHDR", &head);
    chunk(&mut png, *b"PLTE", palette.as_flattened());
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    for row in indices.chunks_exact(width as usize) {
        packer.write_all(&[0])?;
        packer.write_all(row)?;
    }
    chunk(&mut png, *b"IDAT", &packer.finish()?);
    chunk(&mut png, *b"IEND", &[]);
    Ok(png)
}

fn chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let mut checksum = flate2::Crc::new();
    checksum.update(&kind);
    checksum.update(data);
    png.extend(kind);
    png.extend(data);
    png.extend(checksum.sum().to_be_bytes());
}
