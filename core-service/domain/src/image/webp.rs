//! WebP files (RFC 9649): a walk over the chunks; the file is written again of those that show.

use std::collections::BTreeMap;

use img_parts::webp::{CHUNK_ALPH, CHUNK_ICCP, CHUNK_VP8, CHUNK_VP8L, CHUNK_VP8X};

use super::{MAX_PARTS, Unacceptable, check_pixels, take, take_field};

/// In the first byte of the chunk `VP8X`: there is a profile of the colours, and there is transparency.
const PROFILE: u8 = 0b0010_0000;
const ALPHA: u8 = 0b0001_0000;

#[derive(PartialEq, Eq)]
struct Size {
    width: u32,
    height: u32,
}

/// The file without metadata.
pub(super) fn read(content: &[u8]) -> Result<Vec<u8>, Unacceptable> {
    let chunks = chunks(content)?;
    let find = |name| chunks.get(&name).copied();
    // Not the frames of an animation, without which nothing is left of one.
    let (name, pixels, size) = match (find(CHUNK_VP8), find(CHUNK_VP8L)) {
        (Some(pixels), None) => (CHUNK_VP8, pixels, lossy_size(pixels)),
        (None, Some(pixels)) => (CHUNK_VP8L, pixels, lossless_size(pixels)),
        _ => return Err(Unacceptable::NoImage),
    };
    let size = size.ok_or(Unacceptable::NoImage)?;
    check_pixels(size.width, size.height)?;
    let mut kept = Vec::with_capacity(content.len());
    kept.extend_from_slice(b"RIFF\0\0\0\0WEBP");
    // Only with this chunk are there others than the pixels.
    if let Some(extended) = find(CHUNK_VP8X) {
        let &[features, _, _, _, w0, w1, w2, h0, h1, h2, ..] = extended else {
            return Err(Unacceptable::NoImage);
        };
        let [width, height] =
            [[w0, w1, w2, 0], [h0, h1, h2, 0]].map(|bytes| u32::from_le_bytes(bytes) + 1);
        if size != (Size { width, height }) {
            return Err(Unacceptable::NoImage);
        }
        let profile = find(CHUNK_ICCP);
        let features = (features & ALPHA) | profile.map_or(0, |_| PROFILE);
        write(
            &mut kept,
            CHUNK_VP8X,
            &[features, 0, 0, 0, w0, w1, w2, h0, h1, h2],
        )?;
        if let Some(profile) = profile {
            write(&mut kept, CHUNK_ICCP, profile)?;
        }
        if let Some(alpha) = find(CHUNK_ALPH)
            && name == CHUNK_VP8
        {
            write(&mut kept, CHUNK_ALPH, alpha)?;
        }
    }
    write(&mut kept, name, pixels)?;
    let length = length(kept.len().saturating_sub(8))?;
    if let Some(field) = kept.get_mut(4..8) {
        field.copy_from_slice(&length);
    }
    Ok(kept)
}

/// The first chunk of each name.
fn chunks(content: &[u8]) -> Result<BTreeMap<[u8; 4], &[u8]>, Unacceptable> {
    let mut file = content;
    take(&mut file, 4)?;
    let mut rest = take_counted(&mut file)?;
    if take(&mut rest, 4)? != b"WEBP" {
        return Err(Unacceptable::NoImage);
    }
    let mut chunks = BTreeMap::new();
    for _ in 0..MAX_PARTS {
        if rest.is_empty() {
            return Ok(chunks);
        }
        let name = take_field(&mut rest)?;
        let content = take_counted(&mut rest)?;
        // To an even length. The last one's is missing in some files.
        if !content.len().is_multiple_of(2) && !rest.is_empty() {
            take(&mut rest, 1)?;
        }
        chunks.entry(name).or_insert(content);
    }
    Err(Unacceptable::NoImage)
}

/// Splits off a number of bytes, and as many bytes.
fn take_counted<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Unacceptable> {
    let length = usize::try_from(u32::from_le_bytes(take_field(rest)?));
    take(rest, length.map_err(|_| Unacceptable::NoImage)?)
}

fn write(kept: &mut Vec<u8>, name: [u8; 4], content: &[u8]) -> Result<(), Unacceptable> {
    kept.extend_from_slice(&name);
    kept.extend_from_slice(&length(content.len())?);
    kept.extend_from_slice(content);
    if !content.len().is_multiple_of(2) {
        kept.push(0);
    }
    Ok(())
}

fn length(bytes: usize) -> Result<[u8; 4], Unacceptable> {
    let length = u32::try_from(bytes).map_err(|_| Unacceptable::NoImage)?;
    Ok(length.to_le_bytes())
}

/// Of the chunk `VP8 `: a key frame's header.
fn lossy_size(pixels: &[u8]) -> Option<Size> {
    let &[_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1, ..] = pixels else {
        return None;
    };
    let [width, height] =
        [[w0, w1], [h0, h1]].map(|bytes| u32::from(u16::from_le_bytes(bytes) & 0x3fff));
    Some(Size { width, height })
}

/// Of the chunk `VP8L`: two numbers of 14 bits.
fn lossless_size(pixels: &[u8]) -> Option<Size> {
    let &[0x2f, b0, b1, b2, b3, ..] = pixels else {
        return None;
    };
    let bits = u32::from_le_bytes([b0, b1, b2, b3]);
    Some(Size {
        width: (bits & 0x3fff) + 1,
        height: ((bits >> 14) & 0x3fff) + 1,
    })
}
