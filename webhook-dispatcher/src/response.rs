//! Reads a receiver's response: status, Retry-After and the beginning of the body.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use http_body_util::BodyExt;
use hyper::body::Body;

/// The maximum number of body bytes read before the connection is closed.
const MAX_READ: usize = 64 * 1024;
/// The maximum number of body bytes reported.
const MAX_REPORTED: usize = 4 * 1024;
/// The maximum Retry-After reported: more than a century, and within the range of any number type.
/// Core applies its own limit.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(u32::MAX as u64);

/// The part of a response that has arrived.
#[derive(Debug, Default)]
pub(crate) struct ReceiverResponse {
    pub status: Option<StatusCode>,
    pub retry_after: Option<Duration>,
    body: Vec<u8>,
}

impl ReceiverResponse {
    pub(crate) fn read_head(&mut self, status: StatusCode, headers: &HeaderMap, now: SystemTime) {
        self.status = Some(status);
        if !status.is_success() {
            self.retry_after = headers
                .get(RETRY_AFTER)
                .and_then(|value| parse_retry_after(value.to_str().ok()?, now));
        }
    }

    /// Reads a body to its end or to the limit.
    pub(crate) async fn read_body<B>(&mut self, mut body: B) -> Result<(), B::Error>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut read = 0;
        while read < MAX_READ {
            let Some(frame) = body.frame().await else {
                break;
            };
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            read += data.len();
            let remaining = MAX_REPORTED - self.body.len();
            self.body.extend(data.iter().take(remaining));
        }
        Ok(())
    }

    /// The reported bytes as text, within the same limit. Invalid UTF-8 and NUL, which databases
    /// reject, become U+FFFD.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.body).replace('\0', "\u{fffd}");
        text.truncate(text.floor_char_boundary(MAX_REPORTED));
        text
    }
}

/// Parses seconds or a date (RFC 9110 section 10.2.3).
fn parse_retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let is_seconds = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let wait = if is_seconds {
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    #[test]
    fn a_retry_after_is_seconds_or_a_date() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expected) in [
            ("0", Some(0)),
            ("120", Some(120)),
            ("86401", Some(86_401)),
            ("4294967296", Some(4_294_967_295)),
            ("99999999999999999999999", Some(4_294_967_295)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Some(0)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", Some(3_155_760_000)),
            ("", None),
            ("+5", None),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(
                parse_retry_after(text, now),
                expected.map(Duration::from_secs),
                "{text}"
            );
        }
    }

    #[test]
    fn retry_after_is_read_only_from_failures() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, 7.into());

        for (status, expected) in [
            (
                StatusCode::SERVICE_UNAVAILABLE,
                Some(Duration::from_secs(7)),
            ),
            (StatusCode::OK, None),
        ] {
            let mut response = ReceiverResponse::default();
            response.read_head(status, &headers, SystemTime::UNIX_EPOCH);
            assert_eq!(response.retry_after, expected);
        }
    }

    #[tokio::test]
    async fn the_beginning_of_the_body_is_reported_as_text() {
        for (body, expected) in [
            (b"thanks".to_vec(), "thanks".to_owned()),
            (b"\0\xff!".to_vec(), "\u{fffd}\u{fffd}!".to_owned()),
            (vec![b'a'; 5000], "a".repeat(4096)),
            (vec![0xff; 5000], "\u{fffd}".repeat(1365)),
        ] {
            let mut response = ReceiverResponse::default();
            let Ok(()) = response.read_body(Full::from(body)).await;
            assert_eq!(response.text(), expected);
        }
    }

    #[tokio::test]
    async fn no_more_of_a_body_in_parts_is_kept_than_is_reported() {
        let parts = (0..9).map(|_| Ok::<_, Infallible>(Frame::data(vec![b'a'; 1000].into())));
        let mut response = ReceiverResponse::default();

        let Ok(()) = response
            .read_body(StreamBody::new(stream::iter(parts)))
            .await;

        assert_eq!(response.body.len(), MAX_REPORTED);
    }

    /// The receiver may never send what follows.
    #[tokio::test]
    async fn nothing_is_read_after_the_limit() {
        let most = Frame::data(vec![b'a'; MAX_READ].into());
        let body = stream::iter([Ok(most), Err("read on")]);
        let mut response = ReceiverResponse::default();

        let read = response.read_body(StreamBody::new(body)).await;

        assert_eq!(read, Ok(()));
    }
}
