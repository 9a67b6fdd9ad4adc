//! Checks that the messages in responses have translations.

use super::Response;

/// Fails if a violation or a warning in an English response has no translation, unless the message was too
/// long and has lost its end.
#[track_caller]
pub(crate) fn check(response: &Response) {
    if !["", "en"].contains(&response.header("content-language")) {
        return;
    }
    let lists = ["violations", "warnings"].map(|list| response.json[list].as_array());
    for violation in lists.into_iter().flatten().flatten() {
        let text = |member: &str| violation[member].as_str().map(str::to_owned);
        let (Some(code), Some(message)) = (text("code"), text("message")) else {
            panic!("not a violation: {violation}");
        };
        let translated = rest_gateway::translate_message(&message, &code, "de");
        assert!(
            translated.is_some() || message.ends_with('…'),
            "representation/messages of the gateway has no template of {code} for {message:?}"
        );
    }
}
