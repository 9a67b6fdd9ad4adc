//! Counts the statements in what a client sends to PostgreSQL (protocol version 3).

/// The code of the untyped message that requests TLS, before the start-up message.
const TLS_REQUEST: u32 = 80_877_103;

/// Counts the statements of one connection.
#[derive(Default)]
pub(crate) struct StatementCounter {
    is_started: bool,
    /// The bytes of the current message's head so far.
    head: Vec<u8>,
    /// The number of bytes of its body still to come.
    body: usize,
}

impl StatementCounter {
    /// The number of statements executed by the next bytes. An empty query, by which a connection is
    /// tested, is none.
    pub(crate) fn count(&mut self, mut sent: &[u8]) -> usize {
        let mut count = 0;
        while let Some((first, rest)) = sent.split_first() {
            if self.body > 0 {
                let skipped = self.body.min(sent.len());
                self.body -= skipped;
                sent = &sent[skipped..];
                continue;
            }
            self.head.push(*first);
            sent = rest;
            // Messages have a type and a length; the first ones a length and a code.
            let (length_at, head_size) = if self.is_started { (1, 5) } else { (0, 8) };
            if self.head.len() < head_size {
                continue;
            }
            let number = |at: usize| u32::from_be_bytes(self.head[at..at + 4].try_into().unwrap());
            self.body = usize::try_from(number(length_at)).unwrap() + length_at - head_size;
            if self.is_started {
                let is_query = self.head[0] == b'Q' && self.body > b"\0".len();
                count += usize::from(is_query || self.head[0] == b'E');
            } else {
                self.is_started = number(4) != TLS_REQUEST;
            }
            self.head.clear();
        }
        count
    }
}

#[test]
fn statements_are_counted_in_chunks_of_any_size() {
    let message = |kind: &[u8], body: &[u8]| {
        let length = u32::try_from(body.len() + 4).unwrap();
        [kind, &length.to_be_bytes(), body].concat()
    };
    let sent = [
        message(b"", &TLS_REQUEST.to_be_bytes()),
        message(b"", b"\0\x03\0\0user\0delivery\0\0"),
        message(b"Q", b"BEGIN\0"),
        message(b"P", b"one\0UPDATE Q SET E = 1\0\0\0"),
        message(b"S", b""),
        message(b"B", b"\0one\0EQ"),
        message(b"E", b"\0\0\0\0\0"),
        message(b"S", b""),
        message(b"Q", b"COMMIT\0"),
        message(b"Q", b"\0"),
    ]
    .concat();
    for size in [1, 3, 7, sent.len()] {
        let mut statements = StatementCounter::default();
        let counts = sent.chunks(size).map(|chunk| statements.count(chunk));
        assert_eq!(counts.sum::<usize>(), 3, "{size} bytes at a time");
    }
}
