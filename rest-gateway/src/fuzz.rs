//! Fuzz functions: what the readers of headers must do with any bytes, and what a response says of
//! violations.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header::ACCEPT};
use serde_json::Value;

use crate::{
    rate_limits::{X_FORWARDED_FOR, last_untrusted},
    representation::{media_type::MediaType, problem::Problem},
    violations::ViolationCollector,
};

/// The lines of an input as values of a header.
fn headers(name: &HeaderName, input: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n').take(100) {
        headers.append(name, HeaderValue::from_bytes(line).ok()?);
    }
    Some(headers)
}

/// The body of the response that reports violations; null if there are none.
pub fn response_to(violations: &ViolationCollector) -> Value {
    let Err(error) = violations.check() else {
        return Value::Null;
    };
    let problem = Problem::new(&error, "7", "https://delivery.example", "fr");
    serde_json::to_value(problem).expect("a problem is JSON")
}

/// Media types: several headers are one list, and malformed ranges change nothing.
pub fn accept(input: &[u8]) {
    let Some(mut accepted) = headers(&ACCEPT, input) else {
        return;
    };
    let negotiate = |headers: &HeaderMap| {
        let resource = MediaType::of_resource(headers).ok();
        (resource, MediaType::of_error(headers))
    };
    let negotiated = negotiate(&accepted);
    let values: Result<Vec<_>, _> = accepted.iter().map(|(_, value)| value.to_str()).collect();
    if let Ok(values) = values {
        let list = HeaderValue::from_str(&values.join(" , ")).expect("made of header values");
        let joined = HeaderMap::from_iter([(ACCEPT, list)]);
        assert_eq!(negotiate(&joined), negotiated);
    }
    accepted.append(
        ACCEPT,
        HeaderValue::from_static("/, a/b/c, application/json;q=2"),
    );
    assert_eq!(negotiate(&accepted), negotiated);
}

/// The lines are the values of `X-Forwarded-For`. The client's address is the peer's or one of the
/// header; if the peer is not trusted, it is the peer's.
pub fn forwarded(input: &[u8]) {
    let trusted = ["10.0.0.0/8".parse().expect("a network")];
    let [proxy, client]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [192, 0, 2, 1].into()];
    let Some(headers) = headers(&X_FORWARDED_FOR, input) else {
        return;
    };
    assert_eq!(last_untrusted(client, &headers, &trusted), client);
    let found = last_untrusted(proxy, &headers, &trusted);
    let texts = headers.iter().map(|(_, value)| value.to_str());
    let Ok(texts) = texts.collect::<Result<Vec<_>, _>>() else {
        return;
    };
    let hops: Result<Vec<IpAddr>, _> = texts
        .iter()
        .flat_map(|text| text.split(','))
        .map(|hop| hop.trim().parse())
        .collect();
    let Ok(hops) = hops else { return };
    assert!(found == proxy || hops.iter().any(|hop| hop.to_canonical() == found));
}
