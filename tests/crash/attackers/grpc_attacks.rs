//! Attacks on core's port.

use std::{convert::Infallible, error::Error, io, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::StreamBody;
use hyper::{Request, body::Frame, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncReadExt as _;

use super::attack::{Attack, Attacker, Connection, Reads, ping};
use crate::attacks::{
    DATA, EMPTY_MESSAGE, END_HEADERS, END_STREAM, HEADERS, NO_WINDOW, PREFACE, SETTINGS,
    WINDOW_UPDATE, call, frame, stream_ids,
};

/// More than core has open.
const MANY: usize = 4_500;
const SECOND: Duration = Duration::from_secs(1);

const HEALTH: &str = "/grpc.health.v1.Health/Check";
const KEYS: &str = "/delivery.v1.Tokens/ListPublicKeys";
const TOKEN: &str = "/delivery.v1.Tokens/IssueToken";
const GET_TASK: &str = "/delivery.v1.Tasks/GetTask";
const LIST: &str = "/delivery.v1.Deliveries/ListDeliveries";

/// `page_size: 100`, as a gRPC message.
const PAGE: &[u8] = &[0, 0, 0, 0, 2, 8, 100];

/// The largest flow-control window, for each stream.
const LARGE_WINDOW: &[u8] = &[0, 4, 0x7f, 0xff, 0xff, 0xff];

pub(super) fn all() -> Vec<Attack> {
    vec![
        Attack::new("connects", |attacker| {
            attacker.repeat(16, Duration::ZERO, async |attacker| {
                let first = [begin(b""), complete(1, HEALTH, "", EMPTY_MESSAGE)].concat();
                let mut connection = attacker.connect(&first).await?;
                connection.stream.read_exact(&mut [0; 9]).await?;
                Ok(())
            })
        }),
        Attack::new("holds connections", |attacker| {
            let first = [begin(b""), complete(1, HEALTH, "", EMPTY_MESSAGE)].concat();
            attacker.hold(MANY, Reads::Everything, first, 20 * SECOND, ping())
        }),
        Attack::new("begins many calls", |attacker| {
            let mut first = begin(b"");
            for id in stream_ids(1_200) {
                first.extend(complete(id, GET_TASK, "", EMPTY_MESSAGE));
            }
            attacker.hold(250, Reads::Everything, first, SECOND, ping())
        }),
        Attack::new("does not send messages", |attacker| {
            let first = unfinished(TOKEN, "");
            attacker.hold(8, Reads::Everything, first, SECOND, Vec::new())
        }),
        Attack::new("does not read keys", |attacker| {
            let first = unread(KEYS, "", EMPTY_MESSAGE);
            attacker.hold(30, Reads::Nothing, first, SECOND, ping())
        }),
        Attack::new("requests keys and tokens", |attacker| {
            let first = begin(LARGE_WINDOW);
            attacker.send_requests(16, first, SECOND / 88, |_, number| {
                let path = if number % 2 == 0 { TOKEN } else { KEYS };
                complete(2 * number + 1, path, "", EMPTY_MESSAGE)
            })
        }),
        Attack::new("with a token, does not send messages", |attacker| {
            let first = unfinished(GET_TASK, attacker.token());
            attacker.hold(8, Reads::Everything, first, SECOND, Vec::new())
        }),
        Attack::new("with a token, does not end large messages", |attacker| {
            attacker.repeat(128, SECOND, async |attacker| {
                send_large_message(&attacker)
                    .await
                    .map_err(io::Error::other)
            })
        }),
        Attack::new("with a token, does not read lists", |attacker| {
            let first = unread(LIST, attacker.token(), PAGE);
            attacker.hold(4, Reads::Nothing, first, SECOND, ping())
        }),
        Attack::new("with a token, lists", |attacker| {
            let first = begin(LARGE_WINDOW);
            attacker.send_requests(8, first, SECOND / 20, |attacker, number| {
                complete(2 * number + 1, LIST, attacker.token(), PAGE)
            })
        }),
    ]
}

fn begin(settings: &[u8]) -> Vec<u8> {
    let large = 0x7fff_0000_u32.to_be_bytes();
    let window = frame(WINDOW_UPDATE, 0, 0, &large);
    [PREFACE, &frame(SETTINGS, 0, 0, settings), &window].concat()
}

fn complete(id: u32, path: &str, token: &str, message: &[u8]) -> Vec<u8> {
    let headers = frame(HEADERS, END_HEADERS, id, &call(path, token));
    [headers, frame(DATA, END_STREAM, id, message)].concat()
}

/// Calls of which only the beginning of the message is sent.
fn unfinished(path: &str, token: &str) -> Vec<u8> {
    let mut bytes = begin(b"");
    for id in stream_ids(1_000) {
        bytes.extend(frame(HEADERS, END_HEADERS, id, &call(path, token)));
        bytes.extend(frame(DATA, 0, id, b"\0\0\0"));
    }
    bytes
}

/// Calls on streams without a window.
fn unread(path: &str, token: &str, message: &[u8]) -> Vec<u8> {
    let mut bytes = begin(NO_WINDOW);
    for id in stream_ids(100) {
        bytes.extend(complete(id, path, token, message));
    }
    bytes
}

/// Sends all but the end of a message of 4 MiB, and waits until the call ends.
async fn send_large_message(attacker: &Attacker) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Connection { stream, open } = attacker.connect(b"").await?;
    let _open = open;
    let (mut client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let length = [&[0][..], &(4_u32 << 20).to_be_bytes()].concat();
    let parts = [
        vec![Bytes::from(length)],
        vec![Bytes::from(vec![0; 64 << 10]); 63],
    ]
    .concat();
    let frames = stream::iter(parts).map(|part| Ok::<_, Infallible>(Frame::data(part)));
    let request = Request::post(format!("http://x{GET_TASK}"))
        .header("authorization", format!("Bearer {}", attacker.token()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(StreamBody::new(frames.chain(stream::pending())))?;
    let response = client.send_request(request).await;
    connection.abort();
    Ok(response.map(drop)?)
}
