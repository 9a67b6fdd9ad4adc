//! Properties of the reader of address files for any bytes, which `fuzz` checks.

use std::io::Read;

use super::{ImportStats, reader};

/// The same addresses are read if the bytes arrive in parts. Each address has a street and a town,
/// and every line is counted at most once.
pub fn address_file(input: &[u8]) {
    let whole = read(input);
    assert_eq!(read(InParts(input)), whole);
    let Ok((addresses, stats)) = whole else {
        return;
    };
    assert_eq!(addresses.len() as u64, stats.imported);
    let skipped: u64 = stats.skipped.values().map(|skipped| skipped.lines).sum();
    // The line ends of a compressed file are not visible here. `\r` and `\n` both end a line.
    if !input.starts_with(&[0x1f, 0x8b]) {
        let line_ends = input.iter().filter(|byte| b"\r\n".contains(byte)).count() as u64;
        assert!(stats.imported + skipped <= line_ends + 1);
    }
}

/// The addresses, and what was counted; or why the file was rejected.
fn read(file: impl Read) -> Result<(Vec<String>, ImportStats), String> {
    let mut addresses = Vec::new();
    let mut stats = ImportStats::default();
    reader::read("file", file, "FR", &mut stats, |address| {
        for part in [address.street, address.town] {
            assert!(!part.trim().is_empty());
        }
        addresses.push(format!(
            "{} {} {} {} {:?}",
            address.street, address.postcode, address.town, address.country, address.point
        ));
        Ok(true)
    })
    .map_err(|error| error.to_string())?;
    Ok((addresses, stats))
}

/// Reads three bytes at a time.
struct InParts<'a>(&'a [u8]);

impl Read for InParts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = buffer.len().min(3);
        self.0.read(&mut buffer[..length])
    }
}
