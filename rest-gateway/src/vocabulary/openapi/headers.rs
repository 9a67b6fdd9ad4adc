//! The headers of answers.

use serde_json::{Value, json};

/// Every header that answers refer to.
pub(super) fn all() -> Value {
    let text = |about: &str, required: bool| {
        json!({
            "description": about,
            "required": required,
            "schema": {"type": "string"},
        })
    };
    let seconds = json!({
        "description": "After how many seconds to come back.",
        "required": true,
        "schema": {"type": "integer", "minimum": 1},
    });
    let mut seconds_at_times = seconds.clone();
    seconds_at_times["required"] = json!(false);
    json!({
        "Allow": text("The methods that the resource has.", true),
        "Cache-Control": text("Whether the answer may be kept.", true),
        "Content-Language": text("The language of its labels.", false),
        "ETag": text("What this state of the resource is called; send it as `If-None-Match` to be told of changes alone.", true),
        "Idempotent-Replayed": text("`true` if this is the answer to an earlier request with the same `Idempotency-Key`.", false),
        "Link": text("Where the Hydra documentation is.", true),
        "Location": text("The address of the new resource, in full.", true),
        "RateLimit": text("What is left of your budgets, if there are limits (draft-ietf-httpapi-ratelimit-headers).", false),
        "RateLimit-Policy": text("What your budgets are.", false),
        "Retry-After": seconds,
        "Retry-After-At-Times": seconds_at_times,
        "WWW-Authenticate": text("How to authenticate, or which scope is missing (RFC 6750).", true),
        "X-Request-Id": text("What this request is called in our logs; name it when you ask for help.", true),
    })
}

/// References to these headers, and those that every answer has.
pub(super) fn of_an_answer(names: &[&str]) -> Value {
    ["Link", "RateLimit", "RateLimit-Policy", "X-Request-Id"]
        .iter()
        .chain(names)
        .map(|name| {
            let reference = json!({"$ref": format!("#/components/headers/{name}")});
            let name = name.strip_suffix("-At-Times").unwrap_or(name);
            (name.to_owned(), reference)
        })
        .collect()
}
