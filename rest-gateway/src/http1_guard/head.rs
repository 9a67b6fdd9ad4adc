//! Checks the head of a request: its size, target, `Host` and framing (RFC 9112 §3, §6; RFC 9113
//! §8.3.1).

use http::{
    HeaderMap, HeaderValue, Uri,
    header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING},
    uri::Authority,
};
use httparse::{EMPTY_HEADER, Status};

use crate::{error::Error, representation::error_codes as codes};

/// The maximum number of headers.
pub(crate) const MAX_HEADERS: usize = 100;
/// The maximum length of a head in bytes.
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// The maximum length of the target and of each header in a substitute.
const MAX_SUBSTITUTE: usize = MAX_HEAD / 8;
/// What HTTP/2 adds to the size of each header (RFC 9113 §6.5.2).
const HTTP2_OVERHEAD: usize = 32;

/// A request in place of one that cannot be parsed.
const UNKNOWN_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// Not HTTP.
    Malformed,
    Header {
        name: &'static str,
        /// Of the violation.
        code: &'static str,
        message: &'static str,
    },
    TargetTooLong,
    HeadersTooLarge,
}

/// The length of a body over HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Known(u64),
    Chunked,
}

/// A rejected head, and a well-formed one in its place. Its response closes the connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
    pub(crate) rejection: Rejection,
    pub(crate) substitute: Vec<u8>,
}

/// Checks the head at the beginning of `bytes`; returns its length and that of its body, or none if
/// it is incomplete.
pub(super) fn check(bytes: &[u8]) -> Result<Option<(usize, BodyLength)>, Rejected> {
    let reject = |rejection| {
        Err(Rejected {
            rejection,
            substitute: UNKNOWN_REQUEST.to_vec(),
        })
    };
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => return Ok(None),
        Ok(_) if head.path.is_none() => return reject(Rejection::TargetTooLong),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return reject(Rejection::HeadersTooLarge),
        Err(_) => return reject(Rejection::Malformed),
    };
    if Uri::try_from(head.path.unwrap_or_default()).is_err() {
        return reject(Rejection::Malformed);
    }
    let hosts = values(&head, HOST.as_str());
    let checked = check_host(hosts, None, head.version != Some(0));
    let checked = checked.and_then(|()| body_length(&head));
    checked
        .map(|body| Some((length, body)))
        .map_err(|rejection| Rejected {
            rejection,
            substitute: substitute(&head),
        })
}

/// Checks the header fields of a request over HTTP/2.
pub(crate) fn check_http2(uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
    let sizes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + HTTP2_OVERHEAD);
    if headers.len() > MAX_HEADERS || sizes.sum::<usize>() > MAX_HEAD {
        return Err(Rejection::HeadersTooLarge);
    }
    let hosts = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
    let authority = uri.authority().map(Authority::as_str);
    check_host(hosts, authority, authority.is_none())
}

/// Checks the header `Host`, of HTTP/2 beside an `:authority`. It is empty for a target without an
/// authority.
fn check_host<'h>(
    mut hosts: impl Iterator<Item = &'h [u8]>,
    authority: Option<&str>,
    is_required: bool,
) -> Result<(), Rejection> {
    let (code, message) = match (hosts.next(), hosts.next(), authority) {
        (Some(_), Some(_), _) => ("repeated", "must occur only once"),
        (None, ..) if is_required => ("required", "is required"),
        (None, ..) => return Ok(()),
        (Some(host), None, Some(authority)) => {
            if authority.as_bytes().eq_ignore_ascii_case(host) {
                return Ok(());
            }
            ("conflict", "must be equal to `:authority`")
        }
        (Some(host), None, None) => {
            let is_authority = !host.contains(&b'@') && Authority::try_from(host).is_ok();
            if host.is_empty() || is_authority {
                return Ok(());
            }
            ("malformed", "must be a host, or a host and a port")
        }
    };
    Err(Rejection::Header {
        name: "Host",
        code,
        message,
    })
}

fn body_length(head: &httparse::Request<'_, '_>) -> Result<BodyLength, Rejection> {
    let rejection = |name, code, message| Rejection::Header {
        name,
        code,
        message,
    };
    let mut lengths = values(head, CONTENT_LENGTH.as_str());
    let mut codings = values(head, TRANSFER_ENCODING.as_str());
    if let Some(coding) = codings.next() {
        let is_chunked = coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
        return if !is_chunked || head.version == Some(0) {
            let message = "must be `chunked`, once, and only in HTTP/1.1";
            Err(rejection("Transfer-Encoding", "unsupported", message))
        } else if lengths.next().is_some() {
            let message = "must not occur with `Transfer-Encoding`";
            Err(rejection("Content-Length", "conflict", message))
        } else {
            Ok(BodyLength::Chunked)
        };
    }
    let Some(first) = lengths.next() else {
        return Ok(BodyLength::Known(0));
    };
    let length = parse_length(first).filter(|_| lengths.all(|other| other == first));
    length.map(BodyLength::Known).ok_or(rejection(
        "Content-Length",
        "malformed",
        "must be the number of bytes in the body",
    ))
}

/// Digits only: `parse` would accept a sign. The limit is below that of hyper.
fn parse_length(text: &[u8]) -> Option<u64> {
    let is_digits = text.iter().all(u8::is_ascii_digit);
    let length: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    u64::try_from(length).ok().filter(|_| is_digits)
}

/// The values of a header, without leading and trailing blanks.
fn values<'h>(
    head: &'h httparse::Request<'_, '_>,
    name: &'static str,
) -> impl Iterator<Item = &'h [u8]> {
    head.headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value.trim_ascii())
}

/// A request without a body, with the headers that decide the form of the error. It is within the
/// limits of hyper, which the rejected head may exceed.
fn substitute(head: &httparse::Request<'_, '_>) -> Vec<u8> {
    let method = head.method.unwrap_or("GET");
    let path = head.path.filter(|path| path.len() < MAX_SUBSTITUTE);
    let (path, minor) = (path.unwrap_or("/"), head.version.unwrap_or(1));
    let mut text = format!("{method} {path} HTTP/1.{minor}\r\nconnection: close\r\n").into_bytes();
    for name in ["accept", "origin", "x-request-id"] {
        let value = values(head, name).next();
        if let Some(value) = value.filter(|value| value.len() < MAX_SUBSTITUTE) {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value);
            text.extend_from_slice(b"\r\n");
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Malformed => {
                Self::invalid_http("", "malformed", "the request is not well-formed HTTP")
            }
            Rejection::Header {
                name,
                code,
                message,
            } => Self::invalid_http(name, code, message),
            Rejection::TargetTooLong => Self::new(
                &codes::URI_TOO_LONG,
                format!("the request target is longer than {MAX_HEAD} bytes"),
            ),
            Rejection::HeadersTooLarge => Self::new(
                &codes::HEADERS_TOO_LARGE,
                format!("more than {MAX_HEADERS} headers, or more than {MAX_HEAD} bytes of them"),
            ),
        }
    }
}
