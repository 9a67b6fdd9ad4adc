//! When certificates expire: programs start with an expired one, and peers refuse it.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp, civil, tz::TimeZone};

use crate::metrics::{Registry, Sample, Sampled};

/// How long before its expiry a certificate needs renewal.
pub const EXPIRY_NOTICE: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Tags of DER (X.690 §8).
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Registers as a metric when the certificates that this process presents expire, each by its use.
pub fn register_expiry(certificates: &[(&'static str, Option<&PathBuf>)], registry: &mut Registry) {
    let files: Vec<_> = certificates
        .iter()
        .filter_map(|(name, file)| Some((*name, (*file)?.clone())))
        .collect();
    if files.is_empty() {
        return;
    }
    registry.register(
        "delivery_certificate_expiry_timestamp_seconds",
        "When a certificate that this process presents expires",
        Sampled::new(move || {
            let samples = files.iter().filter_map(|(name, file)| {
                // A file that cannot be read is reported where it is used.
                let chain = super::certificates(file).ok()?;
                #[expect(clippy::cast_precision_loss, reason = "seconds are below 2^53")]
                let seconds = not_after(chain.first()?)?.as_second() as f64;
                Some(Sample::new(&[("certificate", *name)], seconds))
            });
            samples.collect()
        }),
    );
}

/// The field `notAfter` of a certificate in DER (RFC 5280 §4.1).
pub fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (SEQUENCE, certificate, _) = element(certificate)? else {
        return None;
    };
    let (SEQUENCE, mut fields, _) = element(certificate)? else {
        return None;
    };
    let (tag, _, after_version) = element(fields)?;
    if tag == VERSION {
        fields = after_version;
    }
    // Serial number, signature algorithm and issuer.
    for _ in 0..3 {
        (_, _, fields) = element(fields)?;
    }
    let (SEQUENCE, validity, _) = element(fields)? else {
        return None;
    };
    let (_, _, end) = element(validity)?;
    let (tag, time, _) = element(end)?;
    instant(tag, time)
}

/// The tag and the content of the first element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let add = |length, byte: &u8| length << 8 | usize::from(*byte);
            (bytes.iter().fold(0, add), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 §4.1.2.5).
fn instant(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = str::from_utf8(text).ok()?;
    let century = match tag {
        UTC_TIME if text < "50" => "20",
        UTC_TIME => "19",
        GENERALIZED_TIME => "",
        _ => return None,
    };
    let written = format!("{century}{text}");
    let time = civil::DateTime::strptime("%Y%m%d%H%M%SZ", written).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate without the parts that are not read.
    fn certificate(tag: u8, end: &str) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| {
            let length = u8::try_from(content.len()).unwrap();
            [&[tag, 0x81, length], content].concat()
        };
        let time = wrap(tag, end.as_bytes());
        let validity = wrap(SEQUENCE, &[wrap(UTC_TIME, b"250101000000Z"), time].concat());
        let version = wrap(VERSION, &[2, 1, 2]);
        let (number, algorithm, issuer) = ([2, 1, 9], [SEQUENCE, 0], [SEQUENCE, 0]);
        let fields = [&*version, &number, &algorithm, &issuer, &validity].concat();
        wrap(SEQUENCE, &wrap(SEQUENCE, &fields))
    }

    #[test]
    fn the_expiry_of_a_certificate_is_read() {
        for (tag, end, expected) in [
            (UTC_TIME, "261231235959Z", "2026-12-31T23:59:59Z"),
            (UTC_TIME, "500101000000Z", "1950-01-01T00:00:00Z"),
            (GENERALIZED_TIME, "20500101000000Z", "2050-01-01T00:00:00Z"),
        ] {
            let read = not_after(&certificate(tag, end)).map(|end| end.to_string());
            assert_eq!(read.as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_truncated_or_invalid_certificate_has_no_expiry() {
        let right = certificate(UTC_TIME, "261231235959Z");
        for length in 0..right.len() {
            assert_eq!(not_after(&right[..length]), None, "{length}");
        }
        for (tag, end) in [
            (UTC_TIME, "261331235959Z"),
            (UTC_TIME, "2612312359Z"),
            (UTC_TIME, "26+231235959Z"),
            (GENERALIZED_TIME, "99999999999999Z"),
            (SEQUENCE, "261231235959Z"),
        ] {
            assert_eq!(not_after(&certificate(tag, end)), None, "{end}");
        }
    }
}
