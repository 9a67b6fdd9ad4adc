//! Images of tasks, proofs of delivery or of incidents: what is accepted as one, without its metadata, and how a
//! delivery gets one.

use bytes::Bytes;
use img_parts::{
    jpeg::{Jpeg, JpegSegment, markers},
    png::{Png, PngChunk},
    riff::{RiffChunk, RiffContent},
    webp::{CHUNK_ALPH, CHUNK_ICCP, CHUNK_VP8, CHUNK_VP8L, CHUNK_VP8X, WebP},
};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::{
    delivery::Delivery,
    id::{ImageId, StoreId, TaskId},
    lifecycle::Refusal,
    named_enum::named_enum,
    task::TaskKind,
};

/// Limit of an image's file, in bytes.
pub const MAX_BYTES: usize = 5_000_000;

/// Limit of the images of a task.
pub const MAX_IMAGES: usize = 20;

/// Limit of an image's pixels: a small file may have so many that a program which shows it runs out of memory.
const MAX_PIXELS: u64 = 100_000_000;

/// In the first byte of the chunk `VP8X`: there are Exif data, XMP and an animation.
const REMOVED_WEBP_FEATURES: u8 = 0b0000_1110;

named_enum! {
    pub enum ContentType("content type", ", ") {
        Jpeg = "image/jpeg",
        Png = "image/png",
        WebP = "image/webp",
    }
}

/// An image of a task. Its file is stored elsewhere, by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub id: ImageId,
    pub store_id: StoreId,
    pub task_id: TaskId,
    pub content_type: ContentType,
    /// In bytes.
    pub size: u32,
    /// The SHA-256 of its file.
    pub hash: [u8; 32],
    /// When it arrived.
    pub created_at: Timestamp,
}

/// The file of an image, without metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    pub content_type: ContentType,
    pub content: Bytes,
    pub hash: [u8; 32],
}

/// Why a file is not accepted, in words that follow the name of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unacceptable {
    #[error("must be at most 5 MB (5000000 bytes)")]
    TooLarge,
    #[error("must be a whole JPEG, PNG or WebP image that is not animated")]
    NoImage,
    #[error("must have at most 100 million pixels")]
    TooManyPixels,
}

impl ImageFile {
    /// Reads an image by its content, and leaves out all that does not show: Exif data, which may have the place and the
    /// device, XMP, comments, and what follows the end of the image.
    pub fn read(content: Bytes) -> Result<Self, Unacceptable> {
        if content.len() > MAX_BYTES {
            return Err(Unacceptable::TooLarge);
        }
        let (content_type, content) = match content.as_ref() {
            [0xff, 0xd8, ..] => (ContentType::Jpeg, jpeg(content)?),
            [0x89, b'P', b'N', b'G', ..] => (ContentType::Png, png(content)?),
            [b'R', b'I', b'F', b'F', ..] => (ContentType::WebP, webp(content)?),
            _ => return Err(Unacceptable::NoImage),
        };
        Ok(Self {
            content_type,
            hash: Sha256::digest(&content).into(),
            content,
        })
    }
}

fn jpeg(content: Bytes) -> Result<Bytes, Unacceptable> {
    let mut image = Jpeg::from_bytes(content).map_err(|_| Unacceptable::NoImage)?;
    let (width, height) = image.dimensions().ok_or(Unacceptable::NoImage)?;
    check_pixels(width, height)?;
    image
        .segment_by_marker(markers::SOS)
        .ok_or(Unacceptable::NoImage)?;
    image.segments_mut().retain(|segment| {
        let marker = segment.marker();
        // How Adobe's colours are to be transformed, and the profile of the colours. Another segment with the marker of the
        // latter has further images, with Exif data of their own.
        let has_colours = marker == markers::APP14
            || (marker == markers::APP2 && segment.contents().starts_with(b"ICC_PROFILE\0"));
        let is_metadata =
            marker == markers::COM || (markers::APP1..=markers::APP15).contains(&marker);
        has_colours || !is_metadata
    });
    let segments = image.segments().iter().map(JpegSegment::len);
    // With the marker of the start; the rest is compressed.
    let start = 2 + segments.sum::<usize>();
    let content = image.encoder().bytes();
    let compressed = content.get(start..).unwrap_or_default();
    // Within what is compressed, this marker does not occur.
    let end = compressed
        .windows(2)
        .position(|pair| pair == [markers::P, markers::EOI]);
    let end = end.ok_or(Unacceptable::NoImage)?;
    Ok(content.slice(..start + end + 2))
}

fn png(content: Bytes) -> Result<Bytes, Unacceptable> {
    let mut image = Png::from_bytes(content).map_err(|_| Unacceptable::NoImage)?;
    let (width, height) = image.dimensions().ok_or(Unacceptable::NoImage)?;
    check_pixels(width, height)?;
    image.chunks_mut().retain(|chunk| {
        // Those that every program must know, and the colours.
        let is_critical = chunk.kind()[0].is_ascii_uppercase();
        let colours = [*b"cHRM", *b"gAMA", *b"iCCP", *b"sBIT", *b"sRGB", *b"tRNS"];
        is_critical || colours.contains(&chunk.kind())
    });
    let kinds: Vec<_> = image.chunks().iter().map(PngChunk::kind).collect();
    let is_whole = kinds.first() == Some(b"IHDR") && kinds.last() == Some(b"IEND");
    if !is_whole || !kinds.contains(b"IDAT") {
        return Err(Unacceptable::NoImage);
    }
    Ok(image.encoder().bytes())
}

fn webp(content: Bytes) -> Result<Bytes, Unacceptable> {
    let mut image = WebP::from_bytes(content).map_err(|_| Unacceptable::NoImage)?;
    let (width, height) = image.dimensions().ok_or(Unacceptable::NoImage)?;
    check_pixels(width, height)?;
    // Not the frames of an animation, without which nothing is left of one.
    let shown = [CHUNK_VP8X, CHUNK_ICCP, CHUNK_ALPH, CHUNK_VP8, CHUNK_VP8L];
    image
        .chunks_mut()
        .retain(|chunk| shown.contains(&chunk.id()));
    if !image.has_chunk(CHUNK_VP8) && !image.has_chunk(CHUNK_VP8L) {
        return Err(Unacceptable::NoImage);
    }
    let mut chunks = image.chunks_mut().iter_mut();
    let features = chunks.find(|chunk| chunk.id() == CHUNK_VP8X);
    if let Some(RiffContent::Data(data)) = features.map(RiffChunk::content_mut) {
        let mut changed = data.to_vec();
        if let Some(features) = changed.first_mut() {
            *features &= !REMOVED_WEBP_FEATURES;
        }
        *data = changed.into();
    }
    Ok(image.encoder().bytes())
}

fn check_pixels(width: impl Into<u64>, height: impl Into<u64>) -> Result<(), Unacceptable> {
    let pixels = width.into().saturating_mul(height.into());
    if pixels > MAX_PIXELS {
        return Err(Unacceptable::TooManyPixels);
    }
    Ok(())
}

impl Delivery {
    /// Adds an image to a task in any state.
    pub fn add_image(
        &mut self,
        kind: TaskKind,
        id: ImageId,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        // Nothing would erase it any more.
        if self.is_erased {
            return Err(Refusal::Erased);
        }
        let task = self.task_mut(kind);
        task.images.push(id);
        task.updated_at = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// A segment or a chunk: its marker or kind, and its content.
    type Part = (&'static [u8], &'static [u8]);

    const PIXEL: &[u8] = b"\x08\0\x01\0\x01\x01\x01\x11\0";

    fn jpeg_of(parts: &[Part], end: &[u8]) -> Bytes {
        let segments = parts.iter().map(|(marker, content)| {
            let segment = JpegSegment::new_with_contents(marker[0], Bytes::from_static(content));
            segment.encoder().bytes()
        });
        let segments: Vec<_> = segments.flatten().collect();
        [b"\xff\xd8", &*segments, end].concat().into()
    }

    fn png_of(parts: &[Part]) -> Bytes {
        let chunks = parts.iter().map(|(kind, content)| {
            let kind = (*kind).try_into().unwrap();
            PngChunk::new(kind, Bytes::from_static(content))
                .encoder()
                .bytes()
        });
        let chunks: Vec<_> = chunks.flatten().collect();
        [b"\x89PNG\r\n\x1a\n", &*chunks].concat().into()
    }

    fn webp_of(parts: &[Part]) -> Bytes {
        let chunks = parts.iter().map(|(id, content)| {
            let content = RiffContent::Data(Bytes::from_static(content));
            RiffChunk::new((*id).try_into().unwrap(), content)
        });
        let list = RiffContent::List {
            kind: Some(*b"WEBP"),
            subchunks: chunks.collect(),
        };
        RiffChunk::new(*b"RIFF", list).encoder().bytes()
    }

    const SOF: Part = (b"\xc0", PIXEL);
    const SOS: Part = (b"\xda", b"\x01\x01\0\0\x3f\0");
    const JFIF: Part = (b"\xe0", b"JFIF\0");
    const COLOURS: Part = (b"\xe2", b"ICC_PROFILE\0\x01\x01sRGB");

    const IHDR: Part = (b"IHDR", b"\0\0\0\x01\0\0\0\x01\x08\0\0\0\0");
    const IDAT: Part = (b"IDAT", b"compressed");
    const IEND: Part = (b"IEND", b"");

    const LOSSLESS: Part = (b"VP8L", b"\x2f\0\0\0\0\0");

    #[test]
    fn an_image_is_read_without_what_does_not_show() {
        let (end, trailer) = (b"pixels\xff\xd9", b"pixels\xff\xd9and a film");
        for (content_type, sent, kept) in [
            (
                ContentType::Jpeg,
                jpeg_of(
                    &[
                        JFIF,
                        (b"\xe1", b"Exif\0\0MM at home"),
                        (b"\xe1", b"http://ns.adobe.com/xap/1.0/\0at home"),
                        COLOURS,
                        (b"\xe2", b"MPF\0 at home"),
                        (b"\xed", b"Photoshop 3.0\0at home"),
                        (b"\xfe", b"at home"),
                        SOF,
                        SOS,
                    ],
                    trailer,
                ),
                jpeg_of(&[JFIF, COLOURS, SOF, SOS], end),
            ),
            (
                ContentType::Png,
                png_of(&[
                    IHDR,
                    (b"eXIf", b"MM at home"),
                    (b"sRGB", b"\0"),
                    (b"tEXt", b"where\0at home"),
                    IDAT,
                    (b"tIME", b"at noon"),
                    IEND,
                    (b"tEXt", b"where\0at home"),
                ]),
                png_of(&[IHDR, (b"sRGB", b"\0"), IDAT, IEND]),
            ),
            (
                ContentType::WebP,
                webp_of(&[
                    (b"VP8X", b"\x0c\0\0\0\0\0\0\0\0\0"),
                    LOSSLESS,
                    (b"EXIF", b"MM at home"),
                    (b"XMP ", b"at home"),
                    (b"home", b"at home"),
                ]),
                webp_of(&[(b"VP8X", b"\0\0\0\0\0\0\0\0\0\0"), LOSSLESS]),
            ),
        ] {
            let read = ImageFile::read(sent).unwrap();

            assert_eq!(read.content_type, content_type);
            assert_eq!(read.content, kept, "{content_type:?}");
            let hash: [u8; 32] = Sha256::digest(&kept).into();
            assert_eq!(read.hash, hash);
            // What was stored is stored as it is.
            assert_eq!(ImageFile::read(kept), Ok(read));
        }
    }

    #[test]
    fn what_is_no_whole_image_is_not_accepted() {
        let whole = jpeg_of(&[SOF, SOS], b"pixels\xff\xd9");
        for wrong in [
            Bytes::new(),
            Bytes::from_static(b"GIF89a\x01\0\x01\0"),
            Bytes::from_static(b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
            Bytes::from_static(b"\xff\xd8\xff"),
            whole.slice(..whole.len() - 1),
            jpeg_of(&[], b"\xff\xd9"),
            jpeg_of(&[SOF], b"\xff\xd9"),
            jpeg_of(&[SOS], b"pixels\xff\xd9"),
            png_of(&[]),
            png_of(&[IHDR, IDAT]),
            png_of(&[IHDR, IEND]),
            png_of(&[IDAT, IHDR, IEND]),
            webp_of(&[]),
            webp_of(&[(b"VP8X", b"\x02\0\0\0\0\0\0\0\0\0"), (b"ANMF", b"frame")]),
            Bytes::from_static(b"RIFF\x04\0\0\0WAVE"),
            Bytes::from_static(b"RIFF\xff\xff\xff\xffWEBP"),
        ] {
            let read = ImageFile::read(wrong.clone());
            assert_eq!(read, Err(Unacceptable::NoImage), "{wrong:?}");
        }
        let large = Bytes::from(vec![0xff; MAX_BYTES + 1]);
        assert_eq!(ImageFile::read(large), Err(Unacceptable::TooLarge));
        let wide: Part = (b"IHDR", b"\0\x01\0\0\0\x01\0\0\x08\0\0\0\0");
        let wide = ImageFile::read(png_of(&[wide, IDAT, IEND]));
        assert_eq!(wide, Err(Unacceptable::TooManyPixels));
    }

    #[test]
    fn an_erased_delivery_gets_no_image_and_loses_those_that_it_has() {
        let mut delivery = fixture::delivery(1000);
        let before = delivery.clone();
        let (id, now) = (ImageId::new(), Timestamp::UNIX_EPOCH);

        delivery.add_image(TaskKind::Dropoff, id, now).unwrap();

        assert_eq!(delivery.dropoff.images, [id]);
        assert_eq!(delivery.dropoff.updated_at, now);
        assert_eq!(delivery.pickup, before.pickup);
        delivery.dropoff.erase();
        assert_eq!(delivery.dropoff.images, []);
        delivery.is_erased = true;
        let refused = delivery.add_image(TaskKind::Dropoff, id, now);
        assert_eq!(refused, Err(Refusal::Erased));
    }
}
