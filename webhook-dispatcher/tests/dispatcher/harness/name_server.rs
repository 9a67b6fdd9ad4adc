//! A name server whose answers change, where the system's resolver looks for one in a network of
//! a test's own.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use tokio::net::UdpSocket;

/// The types of records that addresses are asked for by (RFC 1035 section 3.2.2, RFC 3596
/// section 2.1).
pub(crate) const A: u16 = 1;
pub(crate) const AAAA: u16 = 28;

/// The length of a message's header, behind which its question is (RFC 1035 section 4.1.1).
const HEADER: usize = 12;

/// How often a name was asked for a type of record.
pub(crate) type Asked = BTreeMap<(String, u16), usize>;

pub(crate) struct NameServer(Arc<Mutex<Asked>>);

impl NameServer {
    /// Gives the answers in turn, one each time IPv4 addresses are asked for, whatever the name.
    /// None has addresses of another kind, and nobody may remember any.
    pub(crate) async fn start(
        answers: impl IntoIterator<Item = Vec<Ipv4Addr>, IntoIter: Send + 'static>,
    ) -> Self {
        let mut answers = answers.into_iter();
        let socket = UdpSocket::bind("127.0.0.1:53").await.unwrap();
        let asked = Arc::new(Mutex::new(Asked::new()));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut buf = [0; 512];
            loop {
                let (len, from) = socket.recv_from(&mut buf).await.unwrap();
                let message = &buf[..len];
                let question = Question::of(message).expect("a message that asks one thing");
                let addrs = if question.kind == A {
                    answers.next().expect("an answer to every question")
                } else {
                    Vec::new()
                };
                let answer = answer(message, &question, &addrs);
                let key = (question.name, question.kind);
                *count.lock().unwrap().entry(key).or_default() += 1;
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        Self(asked)
    }

    pub(crate) fn asked(&self) -> Asked {
        self.0.lock().unwrap().clone()
    }
}

/// What a message asks, and where in it that ends.
struct Question {
    name: String,
    kind: u16,
    end: usize,
}

impl Question {
    /// None unless the message is a query with one question, about the internet.
    fn of(message: &[u8]) -> Option<Self> {
        let (header, mut rest) = message.split_at_checked(HEADER)?;
        let is_query = header[2] & 0x80 == 0;
        if !is_query || header[4..6] != [0, 1] {
            return None;
        }
        let mut labels = Vec::new();
        loop {
            let (len, behind) = rest.split_first()?;
            let (label, behind) = behind.split_at_checked(usize::from(*len))?;
            rest = behind;
            if label.is_empty() {
                break;
            }
            labels.push(std::str::from_utf8(label).ok()?);
        }
        let (kind, behind) = rest.split_first_chunk()?;
        let ([0, 1], behind) = behind.split_first_chunk()? else {
            return None;
        };
        Some(Self {
            name: labels.join("."),
            kind: u16::from_be_bytes(*kind),
            end: message.len() - behind.len(),
        })
    }
}

/// The answer of a server that was to ask others and has.
fn answer(message: &[u8], question: &Question, addrs: &[Ipv4Addr]) -> Vec<u8> {
    let count = u8::try_from(addrs.len()).unwrap();
    let mut answer = message[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0]);
    answer.extend(&message[HEADER..question.end]);
    for addr in addrs {
        // The question's name, by a pointer; the type, the class, no time to live, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(addr.octets());
    }
    answer
}
