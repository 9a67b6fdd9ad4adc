//! Images of tasks, proofs of delivery or of incidents: what is accepted as one, without its metadata, and how a
//! delivery gets one.

mod jpeg;
mod png;
mod webp;

use bytes::Bytes;
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

/// Limit of the segments or chunks of an image's file: each is work for the programs that show it. Encoders write far
/// fewer, PNG's usually one for 8 kB or more.
const MAX_PARTS: usize = 2000;

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
    /// Reads an image by its content, and keeps only what shows: not Exif data, which may have the place and the device,
    /// XMP, comments, thumbnails, what is unknown, and what follows the end of the image.
    pub fn read(content: Bytes) -> Result<Self, Unacceptable> {
        if content.len() > MAX_BYTES {
            return Err(Unacceptable::TooLarge);
        }
        let (content_type, content) = match content.as_ref() {
            [0xff, 0xd8, ..] => (ContentType::Jpeg, jpeg::read(&content)?),
            [0x89, b'P', b'N', b'G', ..] => (ContentType::Png, png::read(content)?),
            [b'R', b'I', b'F', b'F', ..] => (ContentType::WebP, webp::read(&content)?),
            _ => return Err(Unacceptable::NoImage),
        };
        let content = Bytes::from(content);
        Ok(Self {
            content_type,
            hash: Sha256::digest(&content).into(),
            content,
        })
    }
}

/// Splits off the start of what is left of a file.
fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Unacceptable> {
    rest.split_off(..length).ok_or(Unacceptable::NoImage)
}

/// Like [`take`], for a field of a fixed length.
fn take_field<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Unacceptable> {
    let (field, after) = rest.split_first_chunk().ok_or(Unacceptable::NoImage)?;
    *rest = after;
    Ok(*field)
}

fn check_pixels(width: impl Into<u64>, height: impl Into<u64>) -> Result<(), Unacceptable> {
    match width.into().saturating_mul(height.into()) {
        0 => Err(Unacceptable::NoImage),
        1..=MAX_PIXELS => Ok(()),
        _ => Err(Unacceptable::TooManyPixels),
    }
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
mod tests;
