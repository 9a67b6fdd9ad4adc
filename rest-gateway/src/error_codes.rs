//! The one list of error codes: what `code` in an error body may be, and what the page at its
//! `type` says. Violations have codes of their own, explained by their messages.

use http::StatusCode;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ErrorCode {
    pub(crate) code: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) title: &'static str,
    /// What has happened.
    pub(crate) meaning: &'static str,
    /// How that comes about.
    pub(crate) cause: &'static str,
    /// What to do.
    pub(crate) cure: &'static str,
    /// Whether the same request may succeed later.
    pub(crate) retryable: bool,
}

/// The code with this text.
pub(crate) fn find(code: &str) -> Option<&'static ErrorCode> {
    ALL.iter().copied().find(|known| known.code == code)
}

macro_rules! error_codes {
    ($($name:ident = $status:ident, retryable: $retryable:literal, {
        title: $title:literal,
        meaning: $meaning:literal,
        cause: $cause:literal,
        cure: $cure:literal,
    })*) => {
        $(pub(crate) static $name: ErrorCode = ErrorCode {
            code: lower_case!($name),
            status: StatusCode::$status,
            title: $title,
            meaning: $meaning,
            cause: $cause,
            cure: $cure,
            retryable: $retryable,
        };)*

        /// Every code, in the order of their statuses.
        pub(crate) static ALL: &[&ErrorCode] = &[$(&$name),*];
    };
}

/// The code is the constant's name in lower case.
macro_rules! lower_case {
    ($name:ident) => {{
        const NAME: &str = stringify!($name);
        const BYTES: [u8; NAME.len()] = {
            let mut bytes = [0; NAME.len()];
            bytes.copy_from_slice(NAME.as_bytes());
            bytes.make_ascii_lowercase();
            bytes
        };
        match str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => NAME,
        }
    }};
}

error_codes! {
    VALIDATION_FAILED = BAD_REQUEST, retryable: false, {
        title: "The request breaks rules",
        meaning: "Nothing was done: at least one part of the request is missing, has the wrong type or a value that cannot be taken.",
        cause: "Each entry of `violations` names one part by its `propertyPath`, in the words of your request, and says what is wrong with it.",
        cure: "Correct every part that is named, all are listed at once, and send the request again.",
    }
    PRICE_NOT_CALCULATED = BAD_REQUEST, retryable: false, {
        title: "No price for this delivery",
        meaning: "The store's price list has no price for the delivery.",
        cause: "No rule of the list matches; `calculation` says for each of them why.",
        cure: "Change what the rules speak of (distance, time, packages), or have the store's price list completed.",
    }
    PRICE_MISMATCH = BAD_REQUEST, retryable: false, {
        title: "Price promised for another delivery",
        meaning: "Nothing was created: the delivery is not the one that the price in `retailPrice` was calculated for.",
        cause: "Each entry of `violations` names a part that differs from what the price was calculated from. Whom to ask for, comments and metadata may differ.",
        cure: "Send what the price was calculated for, or calculate a new price.",
    }
    UNAUTHENTICATED = UNAUTHORIZED, retryable: false, {
        title: "Not authenticated",
        meaning: "The request does not say who sends it.",
        cause: "There is no access token that can be accepted.",
        cure: "Get an access token from `/oauth2/token` and send it as `Authorization: Bearer <access_token>`.",
    }
    TOKEN_MISSING = UNAUTHORIZED, retryable: false, {
        title: "No access token",
        meaning: "The request carries no access token, and this resource needs one.",
        cause: "The header `Authorization` is missing, or is not of the form `Bearer <access_token>`.",
        cure: "Get an access token from `/oauth2/token` and send it as `Authorization: Bearer <access_token>`.",
    }
    TOKEN_INVALID = UNAUTHORIZED, retryable: false, {
        title: "Access token not accepted",
        meaning: "The access token was not issued by this platform for this API, or its client has been disabled.",
        cause: "It was altered, cut off, or comes from somewhere else.",
        cure: "Get a new access token from `/oauth2/token`, and send it whole.",
    }
    TOKEN_EXPIRED = UNAUTHORIZED, retryable: false, {
        title: "Access token expired",
        meaning: "The access token was good, but its time is over.",
        cause: "More than its `expires_in` seconds have passed since it was issued.",
        cure: "Get a new access token from `/oauth2/token`; best some time before the old one expires.",
    }
    INSUFFICIENT_SCOPE = FORBIDDEN, retryable: false, {
        title: "Scope missing",
        meaning: "The access token does not permit this.",
        cause: "It was issued without the scope that `WWW-Authenticate` names.",
        cure: "Ask `/oauth2/token` for that scope; if it is refused, have it granted to your client by the platform's operator.",
    }
    NO_STORE = FORBIDDEN, retryable: false, {
        title: "Client without a store",
        meaning: "This belongs to a store, and your client belongs to none.",
        cause: "The client is one of the platform's own programs, not a shop's.",
        cure: "Use the credentials of a shop's client.",
    }
    NOT_FOUND = NOT_FOUND, retryable: false, {
        title: "Not found",
        meaning: "There is nothing here that you may see.",
        cause: "The address is wrong, or what it named does not exist (any more), or belongs to somebody else.",
        cure: "Use the addresses (`@id`) that the API gave you, as they are.",
    }
    METHOD_NOT_ALLOWED = METHOD_NOT_ALLOWED, retryable: false, {
        title: "Method not allowed",
        meaning: "The resource exists, but not for this method.",
        cause: "The request's method is none of those that the header `Allow` of the answer lists.",
        cure: "Use one of the methods in `Allow`.",
    }
    NOT_ACCEPTABLE = NOT_ACCEPTABLE, retryable: false, {
        title: "Not acceptable",
        meaning: "The resource cannot be sent in any form that the request accepts. Nothing was done.",
        cause: "The header `Accept` excludes both `application/ld+json` and `application/json`.",
        cure: "Accept `application/ld+json`.",
    }
    REQUEST_TIMEOUT = REQUEST_TIMEOUT, retryable: true, {
        title: "Request too slow",
        meaning: "The request's body did not arrive in time. Nothing was done.",
        cause: "The connection is slow or broke off, or the body is shorter than its `Content-Length`.",
        cure: "Send the request again.",
    }
    CONFLICT = CONFLICT, retryable: false, {
        title: "Conflict",
        meaning: "The resource is in a state that does not permit this.",
        cause: "Something has happened to it before; `detail` says what.",
        cure: "Read the resource and decide anew.",
    }
    TASK_DONE = CONFLICT, retryable: false, {
        title: "Task done",
        meaning: "The delivery is under way or over, so it can no longer be cancelled.",
        cause: "At least one of its tasks was done before this request came.",
        cure: "Read the delivery to see how far it has come; what is to happen with it now is to be agreed with the courier.",
    }
    DELIVERY_CANCELLED = CONFLICT, retryable: false, {
        title: "Delivery cancelled",
        meaning: "The delivery is cancelled, so nothing can be done to it or its tasks any more.",
        cause: "It was cancelled before this request came.",
        cure: "Create a new delivery if it is wanted after all.",
    }
    PRICE_EXPIRED = CONFLICT, retryable: false, {
        title: "Price expired",
        meaning: "Nothing was created: the time for which the price in `retailPrice` was promised is over.",
        cause: "The order came after the price's `expiresAt`.",
        cure: "Calculate the price again, and have the customer agree to it.",
    }
    PRICE_USED = CONFLICT, retryable: false, {
        title: "Price used",
        meaning: "Nothing was created: the price in `retailPrice` was promised once, and a delivery has been created with it.",
        cause: "The order was sent twice, or the price was used for two orders; `detail` names the delivery that has it.",
        cure: "Read that delivery: if it is the one you want, it is there already. Otherwise calculate a new price.",
    }
    EXTERNAL_REFERENCE_TAKEN = CONFLICT, retryable: false, {
        title: "External reference taken",
        meaning: "Nothing was done: the store has a delivery with this `externalReference` already, which `existing` names.",
        cause: "The delivery was created before, perhaps by a request whose answer was lost; a cancelled one keeps its reference.",
        cure: "Read the delivery at `existing`. If another one is wanted, give it another reference.",
    }
    IDEMPOTENCY_KEY_IN_USE = CONFLICT, retryable: true, {
        title: "Idempotency key in use",
        meaning: "Another request with this `Idempotency-Key` has not ended yet.",
        cause: "The request was sent again, or twice, before its first answer was ready.",
        cure: "Wait as long as `Retry-After` says, then send the same request with the same key again: it is answered as the first was.",
    }
    WEBHOOK_DISABLED = CONFLICT, retryable: false, {
        title: "Webhook disabled",
        meaning: "The webhook is disabled, so nothing is sent to it.",
        cause: "You or the platform's operator disabled it, or its receiver answered 410 or failed for days; its `disabledReason` says which.",
        cure: "Enable it (`POST` to its `/enable`), then send the request again.",
    }
    EVENTS_EXPIRED = GONE, retryable: false, {
        title: "Events no longer kept",
        meaning: "Some of the events after that number are kept no more, so what follows cannot be told without a gap.",
        cause: "Events are kept for a time, 30 days unless the platform's operator says otherwise; the number you begin after is older.",
        cure: "List your deliveries to learn how they stand, then read the events from the oldest that is kept: without `after`.",
    }
    PAYLOAD_TOO_LARGE = PAYLOAD_TOO_LARGE, retryable: false, {
        title: "Body too large",
        meaning: "The request's body is larger than any that is taken. Nothing was done.",
        cause: "The body has more bytes than the limit that `detail` names.",
        cure: "Send less.",
    }
    UNSUPPORTED_MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE, retryable: false, {
        title: "Media type not supported",
        meaning: "The request's body is in a form that is not read here. Nothing was done.",
        cause: "`Content-Type` is missing, or is neither `application/ld+json` nor `application/json` in UTF-8, or the body is compressed.",
        cure: "Send JSON with `Content-Type: application/ld+json`.",
    }
    IDEMPOTENCY_KEY_REUSED = UNPROCESSABLE_ENTITY, retryable: false, {
        title: "Idempotency key used for another request",
        meaning: "Nothing was done: a request with this `Idempotency-Key` has succeeded in the last 7 days, and this is not the same one.",
        cause: "The bodies of the two differ in at least one byte, or their addresses do.",
        cure: "To repeat a request, send exactly what you sent. For a new request take a new key, a random UUID for instance.",
    }
    TOO_MANY_REQUESTS = TOO_MANY_REQUESTS, retryable: true, {
        title: "Too many requests",
        meaning: "You have used up what you are entitled to for now.",
        cause: "More was asked than the limit that `detail` names.",
        cure: "Wait as long as `Retry-After` says, then go on more slowly.",
    }
    TOO_MANY_WEBHOOKS = TOO_MANY_REQUESTS, retryable: false, {
        title: "Too many webhooks",
        meaning: "Your client has as many webhooks as it may have.",
        cause: "Webhooks stay registered until they are deleted.",
        cure: "Delete those you need no more.",
    }
    INTERNAL = INTERNAL_SERVER_ERROR, retryable: false, {
        title: "Internal error",
        meaning: "Something went wrong that should not have, on our side.",
        cause: "A mistake of ours; it has been logged under the `requestId`.",
        cure: "Tell the platform's operator the `requestId`. Before you repeat a request that creates something, look whether it was created.",
    }
    OVERLOADED = SERVICE_UNAVAILABLE, retryable: true, {
        title: "Overloaded",
        meaning: "There is more to do than can be done right now. Nothing was done.",
        cause: "Many requests arrived at the same time.",
        cure: "Wait as long as `Retry-After` says, then send the request again.",
    }
    UNAVAILABLE = SERVICE_UNAVAILABLE, retryable: true, {
        title: "Unavailable",
        meaning: "A part of the platform cannot be reached right now.",
        cause: "It is starting, stopping, or has failed.",
        cure: "Wait as long as `Retry-After` says, then send the request again. One that creates something is safe to repeat with the `Idempotency-Key` it had; if it had none, look first whether it was created.",
    }
    DEADLINE_EXCEEDED = GATEWAY_TIMEOUT, retryable: true, {
        title: "Took too long",
        meaning: "The answer was not ready in time; what was asked may have been done or not.",
        cause: "A part of the platform is slow or does not answer.",
        cure: "Send the request again. One that creates something is safe to repeat with the `Idempotency-Key` it had; if it had none, look first whether it was created.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_by_its_text_alone() {
        assert_eq!(find("delivery_cancelled"), Some(&DELIVERY_CANCELLED));
        assert_eq!(find("DELIVERY_CANCELLED"), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn a_code_is_its_constants_name_in_lower_case() {
        assert_eq!(UNSUPPORTED_MEDIA_TYPE.code, "unsupported_media_type");
        assert!(ALL.iter().all(|code| find(code.code) == Some(*code)));
    }
}
