use std::{collections::BTreeSet, slice};

use proto::language::LANGUAGES;

use super::*;
use crate::representation::error_codes::{VIOLATIONS, WARNINGS, codes};

/// Every list of the catalogue, with its name.
fn lists() -> impl Iterator<Item = (&'static String, &'static Vec<Message>)> {
    CATALOGUE.messages.iter().chain(&CATALOGUE.phrases)
}

/// A text of a template, with 1 or the first phrase of a list in each hole.
fn sample(template: &Template) -> String {
    sample_with(template, None, "")
}

/// Like [`sample`], with a text in one hole.
fn sample_with(template: &Template, position: Option<usize>, filling: &str) -> String {
    let mut text = template.start.clone();
    for (index, hole) in template.holes.iter().enumerate() {
        text += &match &hole.phrases {
            _ if Some(index) == position => filling.to_owned(),
            Some(list) => sample(&CATALOGUE.phrases[list][0].english),
            None => "1".to_owned(),
        };
        text += &hole.end;
    }
    text
}

/// The names of the holes in alphabetical order, each with its list, whether that is separated, and whether
/// the hole is in quotation marks.
fn holes(template: &Template) -> Vec<(&str, Option<&str>, bool, bool)> {
    let ends = template.holes.iter().map(|hole| &hole.end);
    let before = std::iter::once(&template.start).chain(ends);
    let mut holes: Vec<_> = template
        .holes
        .iter()
        .zip(before)
        .map(|(hole, before)| {
            let list = hole.phrases.as_deref();
            (
                &*hole.name,
                list,
                hole.separator.is_some(),
                before.ends_with('"'),
            )
        })
        .collect();
    holes.sort_unstable();
    holes
}

#[test]
fn every_code_of_a_violation_or_a_warning_has_messages() {
    let translated: BTreeSet<_> = CATALOGUE.messages.keys().map(String::as_str).collect();

    let known = codes(&VIOLATIONS).into_iter().chain(codes(&WARNINGS));
    assert_eq!(translated, known.collect());
}

#[test]
fn every_translation_has_the_holes_of_the_english_text() {
    let mut languages = LANGUAGES.to_vec();
    languages.retain(|language| *language != ENGLISH);
    languages.sort_unstable();
    for (list, messages) in lists() {
        for message in messages {
            let translated: Vec<_> = message.translations.keys().collect();
            assert_eq!(translated, languages, "{list}: {:?}", message.english);
            for (language, translation) in &message.translations {
                let expected = holes(&message.english);
                assert_eq!(holes(translation), expected, "{list} in {language}");
            }
        }
    }
}

#[test]
fn no_list_is_in_two_files() {
    let files = FILES.map(Catalogue::parse);
    let count: usize = files
        .iter()
        .map(|file| file.messages.len() + file.phrases.len())
        .sum();
    assert_eq!(count, lists().count());
}

#[test]
fn no_phrase_contains_itself() {
    fn check<'c>(list: &'c str, outer: &[&'c str]) {
        assert!(!outer.contains(&list), "{list} in {outer:?}");
        let outer = [outer, &[list]].concat();
        let holes = CATALOGUE.phrases[list]
            .iter()
            .flat_map(|phrase| &phrase.english.holes);
        for inner in holes.filter_map(|hole| hole.phrases.as_deref()) {
            check(inner, &outer);
        }
    }
    for list in CATALOGUE.phrases.keys() {
        check(list, &[]);
    }
}

/// The text after a hole ends what fills it; names are unique, and those of lists written correctly.
#[test]
fn holes_are_apart_and_their_lists_exist() {
    for (list, messages) in lists() {
        for Message { english, .. } in messages {
            let (_, all_but_last) = english.holes.split_last().unwrap_or((&NO_HOLE, &[]));
            assert!(
                all_but_last.iter().all(|hole| !hole.end.is_empty()),
                "{list}"
            );
            let names: BTreeSet<_> = english.holes.iter().map(|hole| &hole.name).collect();
            assert_eq!(names.len(), english.holes.len(), "{list}");
            let mut used = english
                .holes
                .iter()
                .filter_map(|hole| hole.phrases.as_ref());
            assert!(
                used.all(|used| CATALOGUE.phrases.contains_key(used)),
                "{list}"
            );
        }
    }
}

static NO_HOLE: Hole = Hole {
    name: String::new(),
    phrases: None,
    separator: None,
    end: String::new(),
};

#[test]
fn no_text_of_a_template_matches_one_before_it() {
    for (list, messages) in lists() {
        for (position, message) in messages.iter().enumerate() {
            let text = sample(&message.english);
            let first = messages.iter().position(|message| {
                let translated = CATALOGUE.translate(slice::from_ref(message), &text, "de");
                translated.is_some()
            });
            assert_eq!(first, Some(position), "{list}: {text}");
        }
    }
}

#[test]
fn every_documented_example_is_translated() {
    let examples = include_str!("../../api_description/openapi/violation_examples.json");
    let examples: BTreeMap<String, Violation> = serde_json::from_str(examples).unwrap();

    for Violation { message, code, .. } in examples.values() {
        for language in LANGUAGES {
            let is_translated = translate(message, code, language).is_some();
            assert_eq!(
                is_translated,
                language != ENGLISH,
                "{message} in {language}"
            );
        }
    }
}

#[test]
fn what_fills_a_hole_is_not_changed() {
    for (code, message, expected) in [
        (
            "out_of_range",
            "must be from 0 to 100000000 (grams), not -1",
            "muss zwischen 0 und 100000000 (Gramm) liegen, nicht -1",
        ),
        (
            "invalid_time",
            r#"understood "\", but not \"", but not "x\\"; write a time such as 2026-11-25 17:30, tomorrow 17:30 or +2h"#,
            r#""\", but not \"" verstanden, aber nicht "x\\"; zum Beispiel 2026-11-25 17:30, morgen 17:30 oder +2h schreiben"#,
        ),
        (
            "invalid_time",
            r#""mar 18:00" is Tuesday or March: write tuesday or march"#,
            r#""mar 18:00" ist Dienstag oder März: Dienstag oder März schreiben"#,
        ),
        (
            "invalid_time",
            r#""5 friday" is an hour or a day of the month beside a weekday: write 05:00 or a date such as 2026-11-25"#,
            r#""5 friday" ist eine Stunde oder ein Tag des Monats neben einem Wochentag: 05:00 oder ein Datum wie 2026-11-25 schreiben"#,
        ),
        (
            "price_not_calculated",
            "the delivery has no price: Up to 3 km: distance <= 3000 is false; Heavy: weight > 5 is true for the pickup and the dropoff, but the amount is too large",
            "die Lieferung hat keinen Preis: Up to 3 km: distance <= 3000 ist falsch; Heavy: weight > 5 ist wahr für die Abholung und die Zustellung, aber der Betrag ist zu groß",
        ),
        (
            "price_not_calculated",
            "the delivery has no price: Near: distance <= 3000 is false; Heavy: can't evaluate weight > 5000: no weight is given",
            "die Lieferung hat keinen Preis: Near: distance <= 3000 ist falsch; Heavy: weight > 5000 ist nicht auswertbar: weight ist nicht angegeben",
        ),
        (
            "slot_not_offered",
            "the slot 2020-12-25 03:00-04:00 is not offered: too late, a slot is booked at least 1 hour before it starts; no slot can be booked now",
            "das Zeitfenster 2020-12-25 03:00-04:00 wird nicht angeboten: zu spät, ein Zeitfenster wird mindestens 1 Stunde vor seinem Beginn gebucht; derzeit ist kein Zeitfenster buchbar",
        ),
        (
            "invalid_json",
            "the body is not JSON: expected `,` or `}` at line 1 column 2, in dropoff.before",
            "der Body ist kein JSON: `,` oder `}` erwartet in Zeile 1, Spalte 2, in dropoff.before",
        ),
        (
            "wrong_type",
            "must be an array or a string, not a number",
            "muss ein Array oder eine Zeichenkette sein, nicht eine Zahl",
        ),
    ] {
        assert_eq!(translate(message, code, "de").as_deref(), Some(expected));
    }
}

/// Not even if it is the text of another template, whose end or quotation marks could be mistaken for
/// those around it.
#[test]
fn what_a_client_wrote_is_not_changed() {
    const MARK: &str = "WRITTEN";
    let all: Vec<_> = lists()
        .flat_map(|(_, messages)| messages)
        .map(|message| sample(&message.english))
        .collect();
    let mut count = 0;
    for messages in CATALOGUE.messages.values() {
        for Message { english, .. } in messages {
            for position in 0..english.holes.len() {
                let message = |text: &str| sample_with(english, Some(position), text);
                let is_quoted_by = |quote| message(MARK).contains(&format!("{quote}{MARK}{quote}"));
                if !is_quoted_by('"') && !is_quoted_by('`') {
                    continue;
                }
                count += 1;
                let translate = |text: &str| CATALOGUE.translate(messages, &message(text), "de");
                let expected = translate(MARK).unwrap();
                for text in &all {
                    let quoted = format!("{text:?}");
                    let text = if is_quoted_by('"') {
                        &quoted[1..quoted.len() - 1]
                    } else {
                        text
                    };
                    let expected = expected.replace(MARK, text);
                    assert_eq!(translate(text), Some(expected), "{}", message(text));
                }
            }
        }
    }
    assert!(count > 20, "{count}");
}

/// Never a mixture of two languages.
#[test]
fn a_message_that_no_template_matches_stays_in_english() {
    for (code, message) in [
        ("required", "is required by a newer core"),
        ("a_newer_code", "is required"),
        ("wrong_type", "must be a date, not a string"),
        (
            "price_not_calculated",
            "the delivery has no price: Near: distance <= 3000 is false; Far: can't evaluate x: no such key",
        ),
    ] {
        assert_eq!(translate(message, code, "de"), None, "{message}");
    }
}

#[test]
fn a_title_is_translated_if_errors_with_violations_have_it() {
    let title = |title: &str, language| translate_title(title, language);

    assert_eq!(title("Invalid request", ENGLISH), None);
    assert_eq!(title("Not found", "de"), None);
    for (code, german) in [
        ("validation_failed", "Ungültige Anfrage"),
        ("price_mismatch", "Preis einer anderen Lieferung"),
    ] {
        let texts = crate::representation::error_codes::find(code)
            .unwrap()
            .texts();
        assert_eq!(title(&texts.title, "de").as_deref(), Some(german));
    }
}
