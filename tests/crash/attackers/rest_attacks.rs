//! Attacks on the REST API.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::attack::{Attack, Reads, ping};
use crate::attacks::{
    END_HEADERS, END_STREAM, HEADERS, NO_WINDOW, PREFACE, SETTINGS, authorization, frame, get,
    stream_ids,
};

/// More than a gateway has open.
const MANY: usize = 8_700;
const SECOND: Duration = Duration::from_secs(1);

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("connects", |attacker| {
            attacker.repeat(16, Duration::ZERO, async |attacker| {
                let first = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                let mut connection = attacker.connect(first).await?;
                connection.stream.read_to_end(&mut Vec::new()).await?;
                Ok(())
            })
        }),
        Attack::new("holds connections", |attacker| {
            let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
            attacker.hold(
                MANY,
                Reads::Everything,
                request.clone(),
                20 * SECOND,
                request,
            )
        }),
        Attack::new("sends heads slowly", |attacker| {
            let first = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ".to_vec();
            attacker.hold(2_000, Reads::Everything, first, SECOND, b"a".to_vec())
        }),
        Attack::new("sends bodies slowly", |attacker| {
            let first = b"POST /oauth2/token HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n";
            attacker.hold(
                2_000,
                Reads::Everything,
                first.to_vec(),
                SECOND,
                vec![b'a'; 1024],
            )
        }),
        Attack::new("begins many requests", |attacker| {
            let first = begin(b"", &get(b"/healthz"), 190);
            attacker.hold(600, Reads::Everything, first, SECOND, ping())
        }),
        Attack::new("does not read documents", |attacker| {
            let first = unread(b"/api/docs.jsonld", "");
            attacker.hold(30, Reads::Nothing, first, SECOND, ping())
        }),
        Attack::new("does not read documents over HTTP/1", |attacker| {
            let first = b"GET /api/docs.jsonld HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
            attacker.hold(100, Reads::Nothing, first, SECOND, Vec::new())
        }),
        Attack::new("requests keys and tokens", |attacker| {
            attacker.send_requests(16, Vec::new(), SECOND / 88, |_, number| {
                match number % 3 {
                    0 => "GET /oauth2/jwks HTTP/1.1\r\nHost: x\r\n\r\n",
                    1 => "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n",
                    _ => {
                        "POST /oauth2/token HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YTpi\r\n\
                         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 29\r\n\r\n\
                         grant_type=client_credentials"
                    }
                }
                .into()
            })
        }),
        Attack::new("with a token, does not read lists", |attacker| {
            let first = unread(b"/api/deliveries?itemsPerPage=100", attacker.token());
            attacker.hold(4, Reads::Nothing, first, SECOND, ping())
        }),
        Attack::new("with a token, lists", |attacker| {
            attacker.send_requests(8, Vec::new(), SECOND / 20, |attacker, _| {
                let token = attacker.token();
                let path = "/api/deliveries?itemsPerPage=100";
                format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n")
                    .into()
            })
        }),
        Attack::new("with a token, sends many tags", |attacker| {
            attacker.send_requests(8, Vec::new(), SECOND / 10, |attacker, _| {
                let token = attacker.token();
                let body = format!(r#"{{"dropoff":{{"tags":"{}"}}}}"#, "a ".repeat(500_000));
                format!(
                    "POST /api/deliveries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
                .into()
            })
        }),
    ]
}

/// A connection whose streams have no window: its preface, and a request on each of a hundred streams.
fn unread(path: &[u8], token: &str) -> Vec<u8> {
    let mut headers = get(path);
    if !token.is_empty() {
        headers.extend(authorization(token));
    }
    begin(NO_WINDOW, &headers, 100)
}

/// A connection with these settings and as many requests.
fn begin(settings: &[u8], headers: &[u8], requests: u32) -> Vec<u8> {
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, settings)].concat();
    for id in stream_ids(requests) {
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, id, headers));
    }
    bytes
}
