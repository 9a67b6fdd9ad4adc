//! The address by which clients reach the platform: what IRIs become URLs with, and whom tokens
//! are from and for.

use url::Url;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPublicUrl;

impl std::fmt::Display for InvalidPublicUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("give an http or https address without query, such as https://delivery.example")
    }
}

impl std::error::Error for InvalidPublicUrl {}

/// Reads an address that paths can be put behind.
pub fn parse(text: &str) -> Result<Url, InvalidPublicUrl> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .filter(|url| url.query().is_none() && url.fragment().is_none())
        .filter(|url| url.username().is_empty() && url.password().is_none())
        .ok_or(InvalidPublicUrl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_put_behind_a_public_url() {
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
            assert_eq!(parse(wrong), Err(InvalidPublicUrl), "{wrong}");
        }
    }
}
