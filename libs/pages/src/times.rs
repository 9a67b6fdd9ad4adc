//! Instants as people read them, in their language.

use std::{collections::BTreeMap, sync::LazyLock};

use jiff::Zoned;
use serde::Deserialize;

static LANGUAGES: LazyLock<BTreeMap<String, TimeTexts>> = LazyLock::new(|| {
    let texts = serde_json::from_str(include_str!("times.json"));
    texts.expect("a test parses it")
});

/// How a language writes dates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeTexts {
    /// With `{day}` and `{month}`.
    date: String,
    months: [String; 12],
}

/// Such as `2 April`, in a language by its BCP 47 tag; as ISO 8601 in an unknown one.
pub fn date(at: &Zoned, language: &str) -> String {
    let month = usize::from(at.month().unsigned_abs()).saturating_sub(1);
    let texts = LANGUAGES.get(language);
    let found = texts.and_then(|texts| Some((&texts.date, texts.months.get(month)?)));
    match found {
        Some((date, month)) => {
            let date = date.replace("{day}", &at.day().to_string());
            date.replace("{month}", month)
        }
        None => at.date().to_string(),
    }
}

/// Such as `09:30`, in every language.
pub fn time(at: &Zoned) -> String {
    format!("{:02}:{:02}", at.hour(), at.minute())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proto::language::LANGUAGES as KNOWN;

    use super::*;

    #[test]
    fn every_language_writes_a_date_with_its_months() {
        let languages: BTreeSet<_> = LANGUAGES.keys().map(String::as_str).collect();
        assert_eq!(languages, KNOWN.into_iter().collect());
        for texts in LANGUAGES.values() {
            assert!(texts.date.contains("{day}") && texts.date.contains("{month}"));
            let distinct: BTreeSet<_> = texts.months.iter().collect();
            assert_eq!(distinct.len(), 12);
        }
        let at: Zoned = "2020-04-02T09:05:59+02:00[Europe/Paris]".parse().unwrap();
        for (language, expected) in [
            ("de", "2. April"),
            ("es", "2 de abril"),
            ("nl", "2 april"),
            ("pl", "2020-04-02"),
        ] {
            assert_eq!(date(&at, language), expected);
        }
        assert_eq!(time(&at), "09:05");
    }
}
