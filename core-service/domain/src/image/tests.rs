use img_parts::{
    jpeg::JpegSegment,
    png::PngChunk,
    riff::{RiffChunk, RiffContent},
};

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
const JFIF: Part = (b"\xe0", b"JFIF\0\x01\x02\0\0\x48\0\x48\0\0");
const ADOBE: Part = (b"\xee", b"Adobe\0\x64\0\0\0\0\x01");
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
        jpeg_of(&[SOF, SOS], b""),
        jpeg_of(&[SOF, SOS], b"\xff\xd9"),
        jpeg_of(&[SOF, SOS], b"\xff\xff\xff\xd9"),
        jpeg_of(&[SOF, SOS, SOS], b"pixels\xff\xd9"),
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
fn of_a_jpeg_only_known_segments_are_kept() {
    let end = b"pixels\xff\xd9";
    let sent = jpeg_of(
        &[
            (b"\xe0", b"JFIF\0\x01\x02\0\0\x48\0\x48\x01\x01at home"),
            (b"\xe0", b"JFXX\0\x10at home"),
            (b"\xe0", b"II\x1a\0\0\0HEAPCCDRat home"),
            JFIF,
            (b"\xee", b"Adobe\0\x64\0\0\0\0\x01at home"),
            (b"\xee", b"Ducky"),
            ADOBE,
            COLOURS,
            COLOURS,
            (b"\xf0", b"at home"),
            (b"\xfd", b"at home"),
            (b"\xdb", b"quantization"),
            SOF,
            (b"\xc4", b"Huffman"),
            (b"\xdd", b"\0\x01"),
            SOS,
        ],
        end,
    );

    let read = ImageFile::read(sent).unwrap();

    let kept: [Part; 8] = [
        JFIF,
        ADOBE,
        COLOURS,
        (b"\xdb", b"quantization"),
        SOF,
        (b"\xc4", b"Huffman"),
        (b"\xdd", b"\0\x01"),
        SOS,
    ];
    assert_eq!(read.content, jpeg_of(&kept, end));
}

#[test]
fn of_a_jpeg_metadata_between_and_after_its_scans_are_left_out() {
    let scan = b"px\xff\0\xff\xd0px";
    let exif: Part = (b"\xe1", b"Exif\0\0at\xff\xd9home");
    let comment: Part = (b"\xfe", b"at home");
    let tables: Part = (b"\xc4", b"Huffman");
    let lines: Part = (b"\xdc", b"\0\x01");
    // Segments without the start of a file.
    let segments = |parts: &[Part], end: &[u8]| jpeg_of(parts, end).slice(2..);
    let after_scan = segments(&[lines, exif, comment, JFIF, ADOBE, tables, SOS], scan);
    let at_end = segments(&[exif], b"more\xff\xd9a film");
    let sent = jpeg_of(&[SOF, SOS], &[scan, &*after_scan, &*at_end].concat());

    let read = ImageFile::read(sent).unwrap();

    let after_scan = segments(&[tables, SOS], scan);
    let kept = jpeg_of(&[SOF, SOS], &[scan, &*after_scan, b"\xff\xd9"].concat());
    assert_eq!(read.content, kept);
}

#[test]
fn of_a_png_known_chunks_are_kept_once_and_only_of_the_length_that_they_have() {
    let colours: Part = (b"gAMA", b"\0\0\xb1\x8f");
    let palette: Part = (b"PLTE", b"rgb");
    let sent = png_of(&[
        IHDR,
        (b"sRGB", b"at home"),
        colours,
        colours,
        palette,
        IDAT,
        IDAT,
        IEND,
    ]);

    let read = ImageFile::read(sent).unwrap();

    let kept = png_of(&[IHDR, colours, palette, IDAT, IDAT, IEND]);
    assert_eq!(read.content, kept);
    let unknown: [Part; 3] = [IHDR, (b"IEND", b"at home"), (b"HOME", b"at home")];
    for critical in unknown {
        let refused = ImageFile::read(png_of(&[IHDR, IDAT, critical, IEND]));
        assert_eq!(refused, Err(Unacceptable::NoImage));
    }
}

#[test]
fn of_a_webp_the_first_of_each_known_chunk_is_kept() {
    let extended: Part = (b"VP8X", b"\x30\0\0\0\0\0\0\0\0\0");
    let lossy: Part = (b"VP8 ", b"\0\0\0\x9d\x01\x2a\x01\0\x01\0px");
    let (profile, alpha): (Part, Part) = ((b"ICCP", b"profile"), (b"ALPH", b"alpha"));
    let sent = webp_of(&[
        (b"VP8X", b"\x3e\x01\x01\x01\0\0\0\0\0\0at home"),
        profile,
        (b"ICCP", b"at home"),
        alpha,
        (b"ALPH", b"at home"),
        lossy,
        (b"VP8 ", b"at home"),
    ]);

    let read = ImageFile::read(sent).unwrap();

    assert_eq!(read.content, webp_of(&[extended, profile, alpha, lossy]));
    // The simple format has nothing but pixels.
    let read = ImageFile::read(webp_of(&[profile, lossy])).unwrap();
    assert_eq!(read.content, webp_of(&[lossy]));
}

#[test]
fn a_file_of_very_many_parts_is_not_accepted() {
    let end = jpeg_of(&[SOF, SOS], b"pixels\xff\xd9").slice(2..);
    let jpeg = |count| [b"\xff\xd8", &*b"\xff\xdb\0\x02".repeat(count), &*end].concat();
    let png = |count| png_of(&[&[IHDR], &*vec![IDAT; count], &[IEND]].concat());
    let webp = |count| webp_of(&[&[LOSSLESS], &*vec![(&b"home"[..], &b""[..]); count]].concat());
    for (few, many) in [
        (jpeg(900).into(), jpeg(1_000_000).into()),
        (png(900), png(100_000)),
        (webp(900), webp(100_000)),
    ] {
        assert!(ImageFile::read(few).is_ok());
        assert_eq!(ImageFile::read(many), Err(Unacceptable::NoImage));
    }
}

#[test]
fn the_limit_of_pixels_is_that_of_the_pixels_which_are_shown() {
    const LARGE: Part = (b"\xc0", b"\x08\xff\xff\xff\xff\x01\x01\x11\0");
    const LARGE_LOSSLESS: Part = (b"VP8L", b"\x2f\xff\xff\xff\x0f\0");
    let end = b"pixels\xff\xd9";
    let of_another_size: Part = (b"VP8X", b"\0\0\0\0\0\0\0\0\0\0");
    for (image, why) in [
        (jpeg_of(&[LARGE, SOS], end), Unacceptable::TooManyPixels),
        (jpeg_of(&[SOF, LARGE, SOS], end), Unacceptable::NoImage),
        (jpeg_of(&[SOF, SOS, LARGE, SOS], end), Unacceptable::NoImage),
        // The number of lines is that of a later segment.
        (
            jpeg_of(&[(b"\xc0", b"\x08\0\0\0\x01\x01\x01\x11\0"), SOS], end),
            Unacceptable::NoImage,
        ),
        (webp_of(&[LARGE_LOSSLESS]), Unacceptable::TooManyPixels),
        (
            webp_of(&[of_another_size, LARGE_LOSSLESS]),
            Unacceptable::TooManyPixels,
        ),
        (
            webp_of(&[(b"VP8X", b"\0\0\0\0\x01\0\0\0\0\0"), LOSSLESS]),
            Unacceptable::NoImage,
        ),
        (
            webp_of(&[LOSSLESS, (b"VP8 ", b"\0\0\0\x9d\x01\x2a\x01\0\x01\0px")]),
            Unacceptable::NoImage,
        ),
    ] {
        assert_eq!(ImageFile::read(image.clone()), Err(why), "{image:?}");
    }
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
