//! Finds the heads of requests in the bytes of an HTTP/1 connection.

use httparse::{EMPTY_HEADER, Status};

use super::head::{self, BodyLength, MAX_HEAD, MAX_HEADERS, Rejected};

/// The first bytes of an HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The position in the messages of a connection.
#[derive(Debug, Default)]
pub(super) struct Messages {
    position: Position,
    /// How many heads were found, the rejected one included.
    pub(super) heads: usize,
    /// How many of the bytes that follow were examined before.
    examined: usize,
    /// Whether anything was forwarded, even an empty line: hyper takes no later preface for HTTP/2.
    is_started: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Position {
    #[default]
    Head,
    /// With the bytes left.
    Body(u64),
    ChunkSize,
    /// With the bytes left, line break included.
    Chunk(u64),
    Trailers,
    Http2,
}

/// What to do with the bytes that follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many of them can be forwarded.
    Forward(usize),
    /// The bytes are not enough to decide.
    ReadMore,
    Reject(Rejected),
    /// The body is malformed: nothing more can be forwarded, because hyper might find the next head
    /// elsewhere.
    End,
}

impl Messages {
    /// Examines the bytes that follow, at least one. Those to forward must not be passed again,
    /// the others must.
    pub(super) fn examine(&mut self, bytes: &[u8]) -> Step {
        let step = match self.position {
            Position::Body(left) | Position::Chunk(left) => Step::Forward(self.skip(bytes, left)),
            Position::Http2 => Step::Forward(bytes.len()),
            // Only a new line can complete what was incomplete.
            _ if self.examined > 0
                && bytes.len() < MAX_HEAD
                && !bytes.iter().skip(self.examined).any(|byte| *byte == b'\n') =>
            {
                Step::ReadMore
            }
            Position::Head => self.examine_head(bytes),
            Position::ChunkSize => self.examine_chunk_size(bytes),
            Position::Trailers => self.examine_trailers(bytes),
        };
        self.examined = match step {
            Step::ReadMore => bytes.len(),
            Step::Forward(_) | Step::Reject(_) | Step::End => 0,
        };
        self.is_started |= matches!(step, Step::Forward(_));
        step
    }

    fn examine_head(&mut self, bytes: &[u8]) -> Step {
        for line_break in [&b"\r\n"[..], b"\n"] {
            if bytes.starts_with(line_break) {
                return Step::Forward(line_break.len());
            }
        }
        if !self.is_started && bytes.starts_with(HTTP2_PREFACE) {
            return self.forward(bytes.len(), Position::Http2);
        }
        if !self.is_started && HTTP2_PREFACE.starts_with(bytes) {
            return Step::ReadMore;
        }
        match head::check(bytes) {
            Ok(None) => Step::ReadMore,
            Ok(Some((length, body))) => {
                self.heads += 1;
                let next = match body {
                    BodyLength::Known(0) => Position::Head,
                    BodyLength::Known(length) => Position::Body(length),
                    BodyLength::Chunked => Position::ChunkSize,
                };
                self.forward(length, next)
            }
            Err(rejected) => {
                self.heads += 1;
                Step::Reject(rejected)
            }
        }
    }

    fn examine_chunk_size(&mut self, bytes: &[u8]) -> Step {
        let (length, next) = match httparse::parse_chunk_size(bytes) {
            Ok(Status::Complete((length, 0))) => (length, Position::Trailers),
            Ok(Status::Complete((length, size))) => {
                (length, Position::Chunk(size.saturating_add(2)))
            }
            Ok(Status::Partial) if bytes.len() < MAX_HEAD => return Step::ReadMore,
            Ok(Status::Partial) | Err(_) => return Step::End,
        };
        self.forward_lines(bytes, length, next)
    }

    fn examine_trailers(&mut self, bytes: &[u8]) -> Step {
        let mut trailers = [EMPTY_HEADER; MAX_HEADERS];
        match httparse::parse_headers(bytes, &mut trailers) {
            Ok(Status::Complete((length, _))) => self.forward_lines(bytes, length, Position::Head),
            Ok(Status::Partial) if bytes.len() < MAX_HEAD => Step::ReadMore,
            Ok(Status::Partial) | Err(_) => Step::End,
        }
    }

    /// Forwards lines of a chunked body. hyper accepts a bare line feed in none of them, unlike
    /// httparse.
    fn forward_lines(&mut self, bytes: &[u8], length: usize, next: Position) -> Step {
        let mut previous = 0;
        for byte in &bytes[..length] {
            if *byte == b'\n' && previous != b'\r' {
                return Step::End;
            }
            previous = *byte;
        }
        self.forward(length, next)
    }

    fn forward(&mut self, length: usize, next: Position) -> Step {
        self.position = next;
        Step::Forward(length)
    }

    /// Skips bytes of the current body or chunk, of which `left` are left.
    fn skip(&mut self, bytes: &[u8], left: u64) -> usize {
        let length = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let left = left.saturating_sub(length as u64);
        self.position = match self.position {
            Position::Chunk(_) if left == 0 => Position::ChunkSize,
            Position::Chunk(_) => Position::Chunk(left),
            _ if left == 0 => Position::Head,
            _ => Position::Body(left),
        };
        length
    }
}

/// Examines a text in parts. Returns the forwarded bytes, the rejection, if any, and the number of
/// heads.
#[cfg(any(test, fuzzing))]
pub(crate) fn examine(text: &[u8], part: usize) -> (Vec<u8>, Option<Rejected>, usize) {
    let mut messages = Messages::default();
    let (mut forwarded, mut pending) = (Vec::new(), Vec::new());
    for part in text.chunks(part) {
        pending.extend_from_slice(part);
        while !pending.is_empty() {
            match messages.examine(&pending) {
                Step::Forward(length) => forwarded.extend(pending.drain(..length)),
                Step::ReadMore => break,
                Step::Reject(rejected) => return (forwarded, Some(rejected), messages.heads),
                Step::End => return (forwarded, None, messages.heads),
            }
        }
    }
    (forwarded, None, messages.heads)
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*, sample};

    use super::{super::head::Rejection, *};

    /// A request, as bytes.
    fn any_request() -> impl Strategy<Value = Vec<u8>> {
        let body = collection::vec(any::<u8>(), 0..40);
        (body, sample::select(vec![0, 1, 7]), any::<bool>()).prop_map(|(body, chunk, trailers)| {
            let mut text = b"POST /a HTTP/1.1\r\nHost: x\r\n".to_vec();
            if chunk == 0 {
                let length = format!("Content-Length: {}\r\n\r\n", body.len());
                return [text, length.into_bytes(), body].concat();
            }
            text.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            for data in body.chunks(chunk) {
                text.extend(format!("{:X} ;a=b\r\n", data.len()).into_bytes());
                text.extend_from_slice(data);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n");
            if trailers {
                text.extend_from_slice(b"Trailer: x\r\n");
            }
            text.extend_from_slice(b"\r\n");
            text
        })
    }

    proptest! {
        #[test]
        fn every_request_is_found_and_forwarded_unchanged(
            requests in collection::vec(any_request(), 0..5), part in 1..100_usize,
        ) {
            let text = requests.concat();

            let (forwarded, rejection, heads) = examine(&text, part);

            prop_assert_eq!(rejection, None);
            prop_assert_eq!(forwarded, text);
            prop_assert_eq!(heads, requests.len());
        }

        #[test]
        fn a_head_without_host_is_rejected_after_the_requests_before(
            requests in collection::vec(any_request(), 0..5), part in 1..100_usize,
        ) {
            let text = [requests.concat(), b"GET / HTTP/1.1\r\n\r\n".to_vec()].concat();

            let (forwarded, rejection, heads) = examine(&text, part);

            let rejection = rejection.map(|rejected| rejected.rejection);
            let names_host = matches!(rejection, Some(Rejection::Header { name: "Host", .. }));
            prop_assert!(names_host, "{rejection:?}");
            prop_assert_eq!(forwarded, requests.concat());
            prop_assert_eq!(heads, requests.len() + 1);
        }

        #[test]
        fn no_bytes_cause_a_panic(text in any::<Vec<u8>>(), part in 1..10_usize) {
            examine(&text, part);
        }
    }

    /// Parsers disagree on where these end.
    #[test]
    fn nothing_after_a_malformed_chunked_body_is_forwarded() {
        let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (valid, malformed) in [
            ("", "00000000000000005\r\nhello\r\n0\r\n\r\n"),
            ("", "5\nhello\r\n0\r\n\r\n"),
            ("", "x\r\n"),
            ("0\r\n", "X: a\n\n"),
            ("0\r\n", "X\r\n\r\n"),
        ] {
            let valid = format!("{head}{valid}");
            let text = format!("{valid}{malformed}GET / HTTP/1.1\r\n\r\n");

            let examined = examine(text.as_bytes(), 7);

            assert_eq!(examined, (valid.into_bytes(), None, 1), "{malformed:?}");
        }
    }

    #[test]
    fn http_2_is_forwarded_unexamined() {
        let text = [HTTP2_PREFACE, b"GET / HTTP/1.1\r\n\r\n"].concat();

        assert_eq!(examine(&text, 5), (text, None, 0));
    }

    /// hyper reads HTTP/1 after an empty line: nothing may pass unexamined.
    #[test]
    fn an_http_2_preface_after_an_empty_line_is_a_malformed_head() {
        let text = [b"\r\n", HTTP2_PREFACE, b"GET / HTTP/1.1\r\n\r\n"].concat();
        for part in [1, 5, text.len()] {
            let (forwarded, rejected, heads) = examine(&text, part);

            assert_eq!((forwarded.as_slice(), heads), (&b"\r\n"[..], 1));
            assert!(rejected.is_some());
        }
    }
}
