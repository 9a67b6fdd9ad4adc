//! Checks the head of a request that hyper has parsed: its `Host` and framing (RFC 9112 §3.2, §6.1;
//! RFC 9113 §8.3.1), and over HTTP/2 its size. hyper itself refuses what is not HTTP.

use http::{
    HeaderValue, Request, Version,
    header::{HOST, TRANSFER_ENCODING},
    uri::Authority,
};

use crate::{error::Error, representation::error_codes as codes};

/// The maximum number of headers, and of bytes in them. hyper applies both to HTTP/1.
pub(crate) const MAX_HEADERS: usize = 100;
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// What HTTP/2 adds to the size of each header (RFC 9113 §6.5.2).
const HTTP2_OVERHEAD: usize = 32;

/// Why a request is rejected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rejection {
    Header {
        name: &'static str,
        /// The code of the violation.
        code: &'static str,
        message: &'static str,
    },
    TooLarge,
}

/// Fails for a request that another program might read differently.
pub(crate) fn check<B>(request: &Request<B>) -> Result<(), Rejection> {
    let headers = request.headers();
    let sizes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + HTTP2_OVERHEAD);
    let is_http2 = request.version() >= Version::HTTP_2;
    if is_http2 && (headers.len() > MAX_HEADERS || sizes.sum::<usize>() > MAX_HEAD) {
        return Err(Rejection::TooLarge);
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_some_and(|coding| !is_chunked(coding)) || codings.next().is_some() {
        return Err(Rejection::Header {
            name: "Transfer-Encoding",
            code: "unsupported",
            message: "must be `chunked`, once",
        });
    }
    check_host(request).map_err(|(code, message)| Rejection::Header {
        name: "Host",
        code,
        message,
    })
}

/// Checks the header `Host`, over HTTP/2 beside an `:authority`. It is empty for a target without an
/// authority.
fn check_host<B>(request: &Request<B>) -> Result<(), (&'static str, &'static str)> {
    let authority = match request.version() {
        Version::HTTP_2 => request.uri().authority(),
        _ => None,
    };
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next(), authority) {
        (Some(_), Some(_), _) => Err(("repeated", "must occur only once")),
        (None, _, None) if request.version() > Version::HTTP_10 => Err(("required", "is required")),
        (None, ..) => Ok(()),
        (Some(host), None, Some(authority)) => {
            let is_same = authority
                .as_str()
                .as_bytes()
                .eq_ignore_ascii_case(host.as_bytes());
            is_same
                .then_some(())
                .ok_or(("conflict", "must be equal to `:authority`"))
        }
        (Some(host), None, None) => {
            let is_authority =
                !host.as_bytes().contains(&b'@') && Authority::try_from(host.as_bytes()).is_ok();
            let is_valid = host.is_empty() || is_authority;
            is_valid
                .then_some(())
                .ok_or(("malformed", "must be a host, or a host and a port"))
        }
    }
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Header {
                name,
                code,
                message,
            } => Self::invalid_http(name, code, message),
            Rejection::TooLarge => Self::new(
                &codes::HEADERS_TOO_LARGE,
                format!("more than {MAX_HEADERS} headers, or more than {MAX_HEAD} bytes of them"),
            ),
        }
    }
}
