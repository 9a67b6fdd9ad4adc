//! Translates the messages of violations and warnings. They are made in English, where the rule is;
//! the files in `messages` have a template of each and its translations. What fills the holes of the
//! English template, such as a number or the client's text, fills those of the translation.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use serde::Deserialize;

use super::language::ENGLISH;
use crate::error::Violation;

const FILES: [&str; 7] = [
    include_str!("messages/addresses.json"),
    include_str!("messages/prices.json"),
    include_str!("messages/requests.json"),
    include_str!("messages/time_slots.json"),
    include_str!("messages/times.json"),
    include_str!("messages/values.json"),
    include_str!("messages/webhooks.json"),
];

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut catalogue = Catalogue::default();
    for file in FILES.map(Catalogue::parse) {
        catalogue.messages.extend(file.messages);
        catalogue.phrases.extend(file.phrases);
    }
    catalogue
});

/// The list of the catalogue's phrases that has the titles of errors with violations.
const TITLES: &str = "title";

/// The message of a violation or a warning with this code in another language than English, if the
/// catalogue has a template that it matches. Public for the tests of the whole platform.
pub fn translate(message: &str, code: &str, language: &str) -> Option<String> {
    let find = || CATALOGUE.translate(CATALOGUE.messages.get(code)?, message, language);
    (language != ENGLISH).then(find).flatten()
}

/// Translates the messages. Returns whether all are translated; the others stay in English.
pub(crate) fn translate_all(violations: &mut [Violation], language: &str) -> bool {
    let mut are_translated = true;
    for violation in violations {
        match translate(&violation.message, &violation.code, language) {
            Some(message) => violation.message = message,
            None => are_translated = false,
        }
    }
    are_translated
}

/// The title of an error with violations in a language.
pub(crate) fn translate_title(title: &str, language: &str) -> Option<String> {
    let find = || CATALOGUE.translate(CATALOGUE.phrases.get(TITLES)?, title, language);
    (language != ENGLISH).then(find).flatten()
}

/// The templates, in lists of which the first one that matches a text is its template.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Catalogue {
    /// By the code of the violation or the warning.
    messages: HashMap<String, Vec<Message>>,
    /// Parts of messages, by the name that holes refer to.
    phrases: HashMap<String, Vec<Message>>,
}

#[derive(Debug, Deserialize)]
struct Message {
    #[serde(rename = "en")]
    english: Template,
    /// By language.
    #[serde(flatten)]
    translations: BTreeMap<String, Template>,
}

/// A text with named holes: `{name}`.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
struct Template {
    start: String,
    holes: Vec<Hole>,
}

/// A hole of a template: `{name}` for any text, `{name:list}` for a phrase of a list, `{name:list|, }`
/// for several, with their separator.
#[derive(Debug)]
struct Hole {
    name: String,
    phrases: Option<String>,
    separator: Option<String>,
    /// The text after it, up to the next hole.
    end: String,
}

impl Catalogue {
    fn parse(file: &str) -> Self {
        serde_json::from_str(file).expect("a test parses each file")
    }

    fn translate(&self, messages: &[Message], text: &str, language: &str) -> Option<String> {
        messages.iter().find_map(|message| {
            let filled = message.english.fillings(text)?;
            let template = message.translations.get(language)?;
            let mut translated = template.start.clone();
            for hole in &template.holes {
                let (english, text) = filled.iter().find(|(other, _)| other.name == hole.name)?;
                translated.push_str(&self.fill(hole, english, text, language)?);
                translated.push_str(&hole.end);
            }
            Some(translated)
        })
    }

    /// What fills a hole of a translation, by what fills the English one.
    fn fill(&self, hole: &Hole, english: &Hole, text: &str, language: &str) -> Option<String> {
        let Some(list) = &english.phrases else {
            return Some(text.to_owned());
        };
        let phrases = self.phrases.get(list)?;
        let (Some(separator), Some(translated)) = (&english.separator, &hole.separator) else {
            return self.translate(phrases, text, language);
        };
        let parts = text.split(separator.as_str());
        let parts = parts.map(|part| self.translate(phrases, part, language));
        Some(parts.collect::<Option<Vec<_>>>()?.join(translated))
    }
}

impl Template {
    /// What fills the holes, if the text is made of this template: a text in quotation marks up to the
    /// one that closes it, any other up to the first occurrence of what follows the hole.
    fn fillings<'t>(&self, text: &'t str) -> Option<Vec<(&Hole, &'t str)>> {
        let mut rest = text.strip_prefix(self.start.as_str())?;
        let mut is_quoted = self.start.ends_with('"');
        let mut filled = Vec::with_capacity(self.holes.len());
        for (index, hole) in self.holes.iter().enumerate() {
            let length = if is_quoted {
                closing_quote(rest)?
            } else if index + 1 == self.holes.len() {
                rest.len().checked_sub(hole.end.len())?
            } else {
                rest.find(&hole.end)?
            };
            filled.push((hole, rest.get(..length)?));
            rest = rest.get(length..)?.strip_prefix(hole.end.as_str())?;
            is_quoted = hole.end.ends_with('"');
        }
        rest.is_empty().then_some(filled)
    }
}

/// The position of the quotation mark that closes a text quoted by `{:?}`.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

impl From<String> for Template {
    fn from(text: String) -> Self {
        let mut parts = text.split('{');
        let start = parts.next().unwrap_or_default().to_owned();
        let holes = parts.map(|part| {
            let (hole, end) = part.split_once('}').unwrap_or((part, ""));
            let (name, list) = hole.split_once(':').unwrap_or((hole, ""));
            let (phrases, separator) = list.split_once('|').unwrap_or((list, ""));
            let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            Hole {
                name: name.to_owned(),
                phrases: non_empty(phrases),
                separator: non_empty(separator),
                end: end.to_owned(),
            }
        });
        Self {
            start,
            holes: holes.collect(),
        }
    }
}

#[cfg(test)]
mod tests;
