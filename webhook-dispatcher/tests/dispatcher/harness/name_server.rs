//! A name server with scripted answers, for the system's resolver in an isolated network.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use tokio::net::UdpSocket;

/// The record types of addresses (RFC 1035 section 3.2.2, RFC 3596 section 2.1).
pub(crate) const A: u16 = 1;
pub(crate) const AAAA: u16 = 28;

/// The length of a message's header, which precedes the question (RFC 1035 section 4.1.1).
const HEADER_LENGTH: usize = 12;

/// The number of queries for each name and record type.
pub(crate) type QueryCounts = BTreeMap<(String, u16), usize>;

pub(crate) struct NameServer(Arc<Mutex<QueryCounts>>);

impl NameServer {
    /// Starts a server that answers each query for IPv4 addresses, of any name, with the next of
    /// `answers`. Answers to other queries are empty, and no answer may be cached.
    pub(crate) async fn start(
        answers: impl IntoIterator<Item = Vec<Ipv4Addr>, IntoIter: Send + 'static>,
    ) -> Self {
        let mut answers = answers.into_iter();
        let socket = UdpSocket::bind("127.0.0.1:53").await.unwrap();
        let queries = Arc::new(Mutex::new(QueryCounts::new()));
        let count = Arc::clone(&queries);
        tokio::spawn(async move {
            let mut buf = [0; 512];
            loop {
                let (len, from) = socket.recv_from(&mut buf).await.unwrap();
                let message = &buf[..len];
                let question = Question::parse(message).expect("a query with one question");
                let addrs = if question.kind == A {
                    answers.next().expect("an answer for every query")
                } else {
                    Vec::new()
                };
                let answer = answer(message, &question, &addrs);
                let key = (question.name, question.kind);
                *count.lock().unwrap().entry(key).or_default() += 1;
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        Self(queries)
    }

    pub(crate) fn queries(&self) -> QueryCounts {
        self.0.lock().unwrap().clone()
    }
}

/// The question of a message, and its end in the message.
struct Question {
    name: String,
    kind: u16,
    end: usize,
}

impl Question {
    /// Parses a query with one question of class IN; `None` for any other message.
    fn parse(message: &[u8]) -> Option<Self> {
        let (header, mut rest) = message.split_at_checked(HEADER_LENGTH)?;
        let is_query = header[2] & 0x80 == 0;
        if !is_query || header[4..6] != [0, 1] {
            return None;
        }
        let mut labels = Vec::new();
        loop {
            let (len, remaining) = rest.split_first()?;
            let (label, remaining) = remaining.split_at_checked(usize::from(*len))?;
            rest = remaining;
            if label.is_empty() {
                break;
            }
            labels.push(std::str::from_utf8(label).ok()?);
        }
        let (kind, remaining) = rest.split_first_chunk()?;
        let ([0, 1], remaining) = remaining.split_first_chunk()? else {
            return None;
        };
        Some(Self {
            name: labels.join("."),
            kind: u16::from_be_bytes(*kind),
            end: message.len() - remaining.len(),
        })
    }
}

/// The response of a recursive server.
fn answer(message: &[u8], question: &Question, addrs: &[Ipv4Addr]) -> Vec<u8> {
    let count = u8::try_from(addrs.len()).unwrap();
    let mut answer = message[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0]);
    answer.extend(&message[HEADER_LENGTH..question.end]);
    for addr in addrs {
        // The name as a pointer to the question, type, class, TTL 0, length 4.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(addr.octets());
    }
    answer
}
