//! How the tracking pages of a store look: its logo and its colour.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use imagesize::ImageType;
use sha2::{Digest as _, Sha256};

use crate::image::{ContentType, ImageFile};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brand {
    pub colour: Option<Colour>,
    /// That of its [`Logo`].
    pub logo_version: Option<String>,
}

/// The number of one of the colours whose contrast on the pages is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(u32);

impl Colour {
    /// The pages have this many.
    pub const LAST: u32 = 12;

    pub fn new(number: u32) -> Result<Self, String> {
        if (1..=Self::LAST).contains(&number) {
            Ok(Self(number))
        } else {
            let last = Self::LAST;
            Err(format!(
                "{number} is not the number of a colour: give 1 to {last}, or 0 for the platform's own"
            ))
        }
    }

    pub fn number(self) -> u32 {
        self.0
    }
}

/// A PNG or WebP image that browsers can show. No SVG, which can contain scripts and links.
#[derive(Clone, PartialEq, Eq)]
pub struct Logo(Vec<u8>);

impl Logo {
    pub const MAX_BYTES: usize = 100_000;

    /// In pixels, of width and height: more would only cost the reader's memory.
    pub const MAX_SIDE: usize = 2_000;

    /// Checks the content, as that of other images, and keeps what shows; a name or a declared type proves nothing.
    pub fn parse(content: Vec<u8>) -> Result<Self, String> {
        if content.len() > Self::MAX_BYTES {
            return Err(format!("is larger than {} bytes", Self::MAX_BYTES));
        }
        let no_image = || "is not a whole PNG or WebP image".to_owned();
        let file = ImageFile::read(content.into()).map_err(|_| no_image())?;
        if file.content_type == ContentType::Jpeg {
            return Err(no_image());
        }
        let size = imagesize::blob_size(&file.content).map_err(|_| no_image())?;
        if size.width.max(size.height) > Self::MAX_SIDE {
            return Err(format!(
                "has {} × {} pixels: each side must have 1 to {}",
                size.width,
                size.height,
                Self::MAX_SIDE
            ));
        }
        Ok(Self(file.content.into()))
    }

    pub fn media_type(&self) -> &'static str {
        match imagesize::image_type(&self.0) {
            Ok(ImageType::Webp) => "image/webp",
            _ => "image/png",
        }
    }

    pub fn content(&self) -> &[u8] {
        &self.0
    }

    /// A digest of the content: what browsers keep under one version never changes.
    pub fn version(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(&self.0)[..12])
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use img_parts::png::PngChunk;

    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        let header = [&size[..], b"\x08\x02\0\0\0"].concat();
        let chunks = [(*b"IHDR", &*header), (*b"IDAT", b"pixels"), (*b"IEND", b"")];
        let chunks = chunks.map(|(kind, content)| {
            let chunk = PngChunk::new(kind, Bytes::copy_from_slice(content));
            chunk.encoder().bytes()
        });
        [b"\x89PNG\r\n\x1a\n", &*chunks.concat()].concat()
    }

    /// Lossless; its header has 14 bits for each side less one.
    fn webp(width: u32, height: u32) -> Vec<u8> {
        let sides = (width - 1) | ((height - 1) << 14);
        let parts: [&[u8]; 3] = [
            b"RIFF\x12\0\0\0WEBPVP8L\x05\0\0\0\x2f",
            &sides.to_le_bytes(),
            b"\0",
        ];
        parts.concat()
    }

    #[test]
    fn a_logo_is_a_whole_image_of_bounded_size() {
        for (content, media_type) in [(png(1, 2000), "image/png"), (webp(2000, 1), "image/webp")] {
            for sent in [content.clone(), [&*content, b"<script>"].concat()] {
                let logo = Logo::parse(sent).unwrap();
                assert_eq!((logo.media_type(), logo.content()), (media_type, &*content));
            }
        }
        let no_image = "is not a whole PNG or WebP image";
        let cut = |content: Vec<u8>| content[..content.len() - 1].to_vec();
        for (content, error) in [
            (vec![], no_image),
            (
                b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec(),
                no_image,
            ),
            (b"GIF89a\x01\0\x01\0".to_vec(), no_image),
            (b"\xff\xd8\xff\xe0\0\x10JFIF".to_vec(), no_image),
            (b"\x89PNG\r\n\x1a\n".to_vec(), no_image),
            (b"RIFF\0\0\0\0".to_vec(), no_image),
            (b"RIFF\x07\0\0\0WEBPVP8".to_vec(), no_image),
            (cut(png(1, 1)), no_image),
            (cut(webp(1, 1)), no_image),
            (png(0, 1), no_image),
            (
                png(1, 2001),
                "has 1 × 2001 pixels: each side must have 1 to 2000",
            ),
            (
                webp(2001, 1),
                "has 2001 × 1 pixels: each side must have 1 to 2000",
            ),
            (vec![0; 100_001], "is larger than 100000 bytes"),
        ] {
            assert_eq!(Logo::parse(content).err().as_deref(), Some(error));
        }
    }

    #[test]
    fn each_content_has_its_version() {
        let version = |content| Logo::parse(content).unwrap().version();
        assert_eq!(version(png(1, 1)), version(png(1, 1)));
        assert_ne!(version(png(1, 1)), version(png(1, 2)));
        assert_eq!(version(png(1, 1)).len(), 16);
    }

    #[test]
    fn a_colour_is_one_of_twelve() {
        for number in [1, 12] {
            assert_eq!(Colour::new(number).map(Colour::number), Ok(number));
        }
        for wrong in [0, 13, u32::MAX] {
            assert_eq!(
                Colour::new(wrong),
                Err(format!(
                    "{wrong} is not the number of a colour: give 1 to 12, or 0 for the platform's own"
                ))
            );
        }
    }
}
