//! The platform's public URL: the base of resource URLs, and the issuer and audience of tokens.

use url::Url;

const REQUIREMENT: &str = "must be an http or https URL without credentials, query or fragment, \
                           such as https://delivery.example";

/// Parses a URL that paths can be appended to.
pub fn parse(text: &str) -> Result<Url, &'static str> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .filter(|url| url.query().is_none() && url.fragment().is_none())
        .filter(|url| url.username().is_empty() && url.password().is_none())
        .ok_or(REQUIREMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_an_http_url_without_credentials_query_or_fragment() {
        for right in [
            "https://delivery.example",
            "http://127.0.0.1:8080/",
            "https://a.example/b",
        ] {
            assert!(parse(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "localhost:8080",
            "delivery.example",
            "ftp://delivery.example",
            "https://delivery.example?x=1",
            "https://delivery.example#x",
            "https://user:password@delivery.example",
        ] {
            assert_eq!(parse(wrong), Err(REQUIREMENT), "{wrong}");
        }
    }
}
