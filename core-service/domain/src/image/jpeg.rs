//! JPEG files: a walk over the segments and the scans (ITU T.81, annex B), which copies those that show.

use img_parts::jpeg::markers::{
    APP0, APP2, APP14, APP15, COM, DAC, DHT, DNL, DQT, DRI, EOI, JPG, JPG0, JPG13, P, RST0, RST7,
    SOF0, SOF15, SOS, Z,
};

use super::{MAX_PARTS, Unacceptable, check_pixels, take, take_field};

/// The file without metadata.
pub(super) fn read(content: &[u8]) -> Result<Vec<u8>, Unacceptable> {
    let mut rest = content;
    let mut kept = Vec::with_capacity(content.len());
    kept.extend_from_slice(take(&mut rest, 2)?);
    let (mut has_frame, mut has_scan, mut is_in_scan) = (false, false, false);
    let mut colours = Colours::default();
    for _ in 0..MAX_PARTS {
        let before = next_marker(rest).ok_or(Unacceptable::NoImage)?;
        let compressed = take(&mut rest, before)?;
        if is_in_scan {
            // Only bytes that fill up before a marker are no data.
            if compressed.iter().all(|byte| *byte == P) {
                return Err(Unacceptable::NoImage);
            }
            kept.extend_from_slice(compressed);
        }
        let [_, marker] = take_field(&mut rest)?;
        if marker == EOI {
            kept.extend_from_slice(&[P, EOI]);
            return has_scan.then_some(kept).ok_or(Unacceptable::NoImage);
        }
        let length = usize::from(u16::from_be_bytes(take_field(&mut rest)?)).checked_sub(2);
        let content = take(&mut rest, length.ok_or(Unacceptable::NoImage)?)?;
        is_in_scan = marker == SOS;
        match marker {
            DHT | DQT | DRI | DAC => write(&mut kept, marker, content)?,
            SOS if has_frame => {
                has_scan = true;
                write(&mut kept, marker, content)?;
            }
            // Among these numbers, `JPG` is no frame.
            SOF0..=SOF15 if !has_frame && marker != JPG => {
                has_frame = true;
                check_frame(content)?;
                write(&mut kept, marker, content)?;
            }
            // They are those of the whole image only before its first scan.
            APP0..=APP15 if !has_scan => {
                if let Some(content) = colours.shown(marker, content) {
                    write(&mut kept, marker, &content)?;
                }
            }
            // The number of lines is that of the frame.
            APP0..=APP15 | COM | JPG0..=JPG13 | DNL => {}
            // A second frame, whose size may be another, or no segment of a JPEG.
            _ => return Err(Unacceptable::NoImage),
        }
    }
    Err(Unacceptable::NoImage)
}

/// Where the next segment starts. Neither an escaped byte nor a restart within a scan is one.
fn next_marker(rest: &[u8]) -> Option<usize> {
    let is_marker =
        |pair: &[u8]| matches!(pair, [P, marker] if !matches!(*marker, Z | RST0..=RST7 | P));
    rest.windows(2).position(is_marker)
}

fn write(kept: &mut Vec<u8>, marker: u8, content: &[u8]) -> Result<(), Unacceptable> {
    let length = u16::try_from(content.len() + 2).map_err(|_| Unacceptable::NoImage)?;
    kept.extend_from_slice(&[P, marker]);
    kept.extend_from_slice(&length.to_be_bytes());
    kept.extend_from_slice(content);
    Ok(())
}

fn check_frame(content: &[u8]) -> Result<(), Unacceptable> {
    let &[_, y1, y0, x1, x0, components, ..] = content else {
        return Err(Unacceptable::NoImage);
    };
    if content.len() != 6 + 3 * usize::from(components) {
        return Err(Unacceptable::NoImage);
    }
    check_pixels(u16::from_be_bytes([x1, x0]), u16::from_be_bytes([y1, y0]))
}

/// The application segments that say how colours and pixels are shown. Of each, the first is kept.
#[derive(Default)]
struct Colours {
    has_jfif: bool,
    has_adobe: bool,
    /// Of the colour profile.
    parts: u8,
}

impl Colours {
    /// What of an application segment shows, if any of it does.
    fn shown(&mut self, marker: u8, content: &[u8]) -> Option<Vec<u8>> {
        let start = content.get(..12);
        match (marker, content) {
            // The density, without the thumbnail that may follow.
            (APP0, [b'J', b'F', b'I', b'F', 0, ..]) if !self.has_jfif => {
                let density = start?;
                self.has_jfif = true;
                Some([density, &[0, 0]].concat())
            }
            // How the colours are to be transformed.
            (APP14, [b'A', b'd', b'o', b'b', b'e', ..]) if !self.has_adobe => {
                let transform = start?;
                self.has_adobe = true;
                Some(transform.to_vec())
            }
            // Part of the profile of the colours. Another segment with this marker has further images, with Exif data of
            // their own.
            (APP2, _) => {
                let &[number, _, ..] = content.strip_prefix(b"ICC_PROFILE\0")? else {
                    return None;
                };
                (self.parts.checked_add(1)? == number).then(|| {
                    self.parts = number;
                    content.to_vec()
                })
            }
            _ => None,
        }
    }
}
