//! Texts of every form: what is read of them, and what is noted.

use proptest::{collection, prelude::*, sample};
use serde_json::json;

use super::*;
use crate::api_description::class;

fn parse_delivery(text: &[u8]) -> Result<Document, ParseError> {
    parse(text, Shape::Class(class("Delivery")))
}

#[test]
fn a_message_that_names_a_key_with_a_control_character_is_one_line() {
    for key in ["a\u{7f}", r"a\n"] {
        let error = parse_delivery(format!(r#"{{"{key}": {{x"#).as_bytes());
        let message = error.unwrap_err().to_string();
        assert!(message.ends_with(", in a\u{fffd}"), "{message:?}");
    }
}

#[test]
fn only_known_members_are_kept() {
    let pickup = [
        r#""url": {"a": 1, "a": 1}, "tags": ["a", {"b": 1}, [1], []]"#,
        r#""address": {"geo": {"latitude": 1.5, "longitude": -1e30, "x": 0}}"#,
        r#""packages": [{"type": "XL", "quantity": 2, "x": 0}]"#,
        r#""metadata": {"x": "y", "z": {"a": 1}}"#,
    ];
    let ignored = r#""x": 1e400, "x": [[["\ud800"]]], "distance": 5"#;
    let pickup = pickup.join(",");
    let text = format!(r#"{{{ignored}, "externalReference": "7", "pickup": {{{pickup}}}}}"#);

    let document = parse_delivery(text.as_bytes()).unwrap();

    assert_eq!(document.repeated, [""; 0]);
    let unknown: Vec<_> = document.unknown.iter().map(|member| &member.path).collect();
    assert_eq!(
        unknown,
        [
            "x",
            "pickup.url",
            "pickup.address.geo.x",
            "pickup.packages[0].x"
        ]
    );
    assert_eq!(
        document.value,
        json!({
            "externalReference": "7",
            "pickup": {
                "tags": ["a", {}, [null], []],
                "address": {"geo": {"latitude": 1.5, "longitude": -1e30}},
                "packages": [{"type": "XL", "quantity": 2}],
                "metadata": {"x": "y", "z": {}},
            },
        })
    );
}

#[test]
fn an_unknown_member_has_the_similar_one_of_its_class() {
    for (name, similar) in [
        ("timeslot", Some("timeSlot")),
        ("time_slot", Some("timeSlot")),
        ("Adress", Some("address")),
        ("weigth", Some("weight")),
        ("befor", Some("before")),
        ("coment", Some("comments")),
        ("status", None),
        ("x", None),
        ("price", None),
        (&"weight".repeat(100_000), None),
    ] {
        let found = Shape::Class(class("Task")).similar_member(name);
        assert_eq!(found, similar, "{name}");
    }
    for (class_name, name, similar) in [
        ("Delivery", "dropOff", "dropoff"),
        ("Delivery", "external_reference", "externalReference"),
        ("Webhook", "events", "event"),
    ] {
        let found = Shape::Class(class(class_name)).similar_member(name);
        assert_eq!(found, Some(similar), "{name}");
    }
}

#[test]
fn a_repeated_member_is_noted_once_by_its_path() {
    let dropoff = r#""dropoff": {"metadata": {"": "", "": "", "": ""}}"#;
    let pickup = r#""pickup": {"packages": [{"type": 1, "type": 2}]}"#;
    let text = format!(r#"{{"dropoff": 1, {pickup}, {dropoff}}}"#);

    let document = parse_delivery(text.as_bytes()).unwrap();

    assert_eq!(
        document.repeated,
        ["pickup.packages[0].type", "dropoff", "dropoff.metadata."]
    );
    assert_eq!(document.value["pickup"]["packages"][0]["type"], 2);
}

#[test]
fn invalid_json_is_an_error() {
    for wrong in [
        b"".as_slice(),
        b"{",
        b"{\"a\":1,}",
        b"{} {}",
        b"{'a':1}",
        b"NaN",
        b"[01]",
        b"\"\xff\"",
        b"\"\n\"",
        b"\"\\ud80\"",
        br#"{"externalReference": "\ud800"}"#,
        br#"{"\ud800": 0}"#,
        br#"{"externalReference": 1e400}"#,
        br#"{"pickup": {"weight": 1e400}}"#,
        "[".repeat(200_000).as_bytes(),
    ] {
        assert!(
            parse_delivery(wrong).is_err(),
            "{}",
            String::from_utf8_lossy(wrong)
        );
    }
}

#[test]
fn what_is_ignored_may_be_nested_to_any_depth() {
    let nested = "[".repeat(200_000) + &"]".repeat(200_000);

    for text in [format!(r#"{{"x": {nested}}}"#), nested] {
        assert!(parse_delivery(text.as_bytes()).is_ok());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn metadata_is_kept(
        members in collection::hash_map(any::<String>(), any::<String>(), 0..4),
    ) {
        let body = json!({"pickup": {"metadata": members}});

        let document = parse_delivery(body.to_string().as_bytes()).unwrap();

        prop_assert_eq!(document, Document { value: body, repeated: Vec::new(), unknown: Vec::new() });
    }

    /// One byte of a valid text is replaced.
    #[test]
    fn a_damaged_text_is_read_or_rejected_as_by_serde_json(
        value in any_json(), index in any::<sample::Index>(), byte in any::<u8>(),
    ) {
        let mut text = value.to_string().into_bytes();
        let index = index.index(text.len());
        // A number beyond the range of `f64` is rejected, which `IgnoredAny` accepts.
        prop_assume!(!byte.eq_ignore_ascii_case(&b'e'));
        text[index] = byte;

        let expected = serde_json::from_slice::<IgnoredAny>(&text).is_ok()
            && std::str::from_utf8(&text).is_ok();
        prop_assert_eq!(parse_delivery(&text).is_ok(), expected);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<Vec<u8>>()) {
        let _ = parse_delivery(&text);
    }
}
