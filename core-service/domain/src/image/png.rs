//! PNG files: a walk over the chunks, which copies those that show.

use bytes::Bytes;
use img_parts::png::PngChunk;

use super::{MAX_BYTES, MAX_PARTS, Unacceptable, check_pixels};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A kind of chunk that is kept, and the limit of its content in bytes.
struct Kind {
    name: [u8; 4],
    max_bytes: usize,
}

const fn kind(name: [u8; 4], max_bytes: usize) -> Kind {
    Kind { name, max_bytes }
}

/// Those that every program must know, and the colours. All but `IDAT` occur once.
const KINDS: [Kind; 10] = [
    kind(*b"IHDR", 13),
    kind(*b"PLTE", 3 * 256),
    kind(*b"IDAT", MAX_BYTES),
    kind(*b"IEND", 0),
    kind(*b"cHRM", 32),
    kind(*b"gAMA", 4),
    kind(*b"iCCP", MAX_BYTES),
    kind(*b"sBIT", 4),
    kind(*b"sRGB", 1),
    kind(*b"tRNS", 256),
];

/// The file without metadata.
pub(super) fn read(content: Bytes) -> Result<Vec<u8>, Unacceptable> {
    let mut kept = Vec::with_capacity(content.len());
    let mut rest = content;
    if !rest.starts_with(SIGNATURE) {
        return Err(Unacceptable::NoImage);
    }
    kept.extend_from_slice(&rest.split_to(SIGNATURE.len()));
    let mut names = Vec::new();
    for _ in 0..MAX_PARTS {
        let from_here = rest.clone();
        let chunk = PngChunk::from_bytes(&mut rest).map_err(|_| Unacceptable::NoImage)?;
        let (name, content) = (chunk.kind(), chunk.contents());
        let is_repeated = names.contains(&name);
        let is_kept = KINDS.iter().any(|kind| {
            let is_once = name == *b"IDAT" || !is_repeated;
            kind.name == name && content.len() <= kind.max_bytes && is_once
        });
        if !is_kept {
            // Without one that every program must know, the others do not show.
            if name[0].is_ascii_uppercase() {
                return Err(Unacceptable::NoImage);
            }
            continue;
        }
        if names.is_empty() {
            check_header(&chunk)?;
        }
        kept.extend_from_slice(&from_here.slice(..chunk.len()));
        if name == *b"IEND" {
            let has_pixels = names.contains(b"IDAT");
            return has_pixels.then_some(kept).ok_or(Unacceptable::NoImage);
        }
        if !is_repeated {
            names.push(name);
        }
    }
    Err(Unacceptable::NoImage)
}

fn check_header(chunk: &PngChunk) -> Result<(), Unacceptable> {
    let content = chunk.contents();
    match content.as_ref() {
        &[w3, w2, w1, w0, h3, h2, h1, h0, _, _, _, _, _] if chunk.kind() == *b"IHDR" => {
            let [width, height] = [[w3, w2, w1, w0], [h3, h2, h1, h0]].map(u32::from_be_bytes);
            check_pixels(width, height)
        }
        _ => Err(Unacceptable::NoImage),
    }
}
