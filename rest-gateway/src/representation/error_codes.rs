//! The table of error codes: the values of `code` in an error body and the texts of the page at
//! its `type`. `violation_codes` lists the codes in `violations`.

use http::StatusCode;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ErrorCode {
    pub(crate) code: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) title: &'static str,
    /// What happened.
    pub(crate) meaning: &'static str,
    /// Why it happened.
    pub(crate) cause: &'static str,
    /// What to do about it.
    pub(crate) solution: &'static str,
    /// Whether the same request may succeed later.
    pub(crate) retryable: bool,
}

/// Finds an error code by its text.
pub(crate) fn find(code: &str) -> Option<&'static ErrorCode> {
    ALL.iter().copied().find(|known| known.code == code)
}

macro_rules! error_codes {
    ($($name:ident = $code:literal, $status:ident, retryable: $retryable:literal, {
        title: $title:literal,
        meaning: $meaning:literal,
        cause: $cause:literal,
        solution: $solution:literal,
    })*) => {
        $(pub(crate) static $name: ErrorCode = ErrorCode {
            code: $code,
            status: StatusCode::$status,
            title: $title,
            meaning: $meaning,
            cause: $cause,
            solution: $solution,
            retryable: $retryable,
        };)*

        /// Every error code, by ascending HTTP status.
        pub(crate) static ALL: &[&ErrorCode] = &[$(&$name),*];

        /// The codes alone.
        pub(crate) static CODES: &[&str] = &[$($code),*];
    };
}

error_codes! {
    VALIDATION_FAILED = "validation_failed", BAD_REQUEST, retryable: false, {
        title: "Invalid request",
        meaning: "The request was rejected: at least one part of it is missing, has the wrong type or has an invalid value.",
        cause: "Each entry of `violations` names an invalid part of the request by its `propertyPath` and says what is wrong.",
        solution: "Correct every listed part and send the request again. `violations` is complete.",
    }
    PRICE_NOT_CALCULATED = "price_not_calculated", BAD_REQUEST, retryable: false, {
        title: "No price for this delivery",
        meaning: "The store's price list has no price for the delivery.",
        cause: "The store has no price list, no rule of it matches, or the price is too large or below zero; \
                `calculation` gives the reason for each rule, or says that there is no list.",
        solution: "Change the delivery (distance, time, packages), or ask the platform's operator to complete the store's price list.",
    }
    PRICE_MISMATCH = "price_mismatch", BAD_REQUEST, retryable: false, {
        title: "Price of another delivery",
        meaning: "No delivery was created: the price in `retailPrice` was calculated for a different delivery.",
        cause: "Each entry of `violations` names a part that differs from the priced delivery. Contacts, comments and metadata may differ.",
        solution: "Send the delivery that the price was calculated for, or calculate a new price.",
    }
    UNAUTHENTICATED = "unauthenticated", UNAUTHORIZED, retryable: false, {
        title: "Not authenticated",
        meaning: "The request has no valid credentials.",
        cause: "The access token is missing or not accepted.",
        solution: "Get an access token from `/oauth2/token` and send it as `Authorization: Bearer <access_token>`.",
    }
    TOKEN_MISSING = "token_missing", UNAUTHORIZED, retryable: false, {
        title: "No access token",
        meaning: "The request has no access token, and the resource requires one.",
        cause: "The header `Authorization` is missing or does not have the form `Bearer <access_token>`.",
        solution: "Get an access token from `/oauth2/token` and send it as `Authorization: Bearer <access_token>`.",
    }
    TOKEN_INVALID = "token_invalid", UNAUTHORIZED, retryable: false, {
        title: "Access token not accepted",
        meaning: "The access token was not issued by this platform for this API, or its client has been disabled, or the API secret that it was issued for is no longer valid.",
        cause: "The token was altered, truncated, or issued by another platform.",
        solution: "Get a new access token from `/oauth2/token` and send it unchanged.",
    }
    TOKEN_EXPIRED = "token_expired", UNAUTHORIZED, retryable: false, {
        title: "Access token expired",
        meaning: "The access token has expired.",
        cause: "More than its `expires_in` seconds have passed since it was issued.",
        solution: "Get a new access token from `/oauth2/token`, preferably shortly before the old one expires.",
    }
    INSUFFICIENT_SCOPE = "insufficient_scope", FORBIDDEN, retryable: false, {
        title: "Scope missing",
        meaning: "The access token does not permit this operation.",
        cause: "The token was issued without the scope that `WWW-Authenticate` names.",
        solution: "Request that scope from `/oauth2/token`. If it is rejected, ask the platform's operator to grant it to your client.",
    }
    NO_STORE = "no_store", FORBIDDEN, retryable: false, {
        title: "Client without a store",
        meaning: "The operation applies to a store, and your client has no store.",
        cause: "The client belongs to the platform, not to a store.",
        solution: "Use the credentials of a store's client.",
    }
    NOT_FOUND = "not_found", NOT_FOUND, retryable: false, {
        title: "Not found",
        meaning: "The resource does not exist or is not yours.",
        cause: "The path or the id is wrong, the resource does not exist or was deleted, or it belongs to another store or client.",
        solution: "Use the `@id` of resources unchanged, as the API returned it.",
    }
    METHOD_NOT_ALLOWED = "method_not_allowed", METHOD_NOT_ALLOWED, retryable: false, {
        title: "Method not allowed",
        meaning: "The resource does not support this method.",
        cause: "The method of the request is not listed in the `Allow` header of the response.",
        solution: "Use one of the methods in `Allow`.",
    }
    NOT_ACCEPTABLE = "not_acceptable", NOT_ACCEPTABLE, retryable: false, {
        title: "Not acceptable",
        meaning: "The resource has no representation that the request accepts. The request was not executed.",
        cause: "The header `Accept` excludes both `application/ld+json` and `application/json`.",
        solution: "Accept `application/ld+json`.",
    }
    REQUEST_TIMEOUT = "request_timeout", REQUEST_TIMEOUT, retryable: true, {
        title: "Request timed out",
        meaning: "The body of the request did not arrive in time. The request was not executed.",
        cause: "The connection is slow (less than 1 KiB in 3 s) or was interrupted, or the body is shorter than its `Content-Length`.",
        solution: "Send the request again.",
    }
    CONFLICT = "conflict", CONFLICT, retryable: false, {
        title: "Conflict",
        meaning: "The state of the resource does not permit this operation.",
        cause: "The state changed before this request; `detail` says how.",
        solution: "Read the resource and decide again.",
    }
    TASK_DONE = "task_done", CONFLICT, retryable: false, {
        title: "Task done",
        meaning: "The delivery has started or is completed, so it can no longer be cancelled.",
        cause: "At least one of its tasks was done before this request.",
        solution: "Read the delivery to see its progress, and arrange any change with the courier.",
    }
    DELIVERY_CANCELLED = "delivery_cancelled", CONFLICT, retryable: false, {
        title: "Delivery cancelled",
        meaning: "The delivery is cancelled, so it and its tasks can no longer change.",
        cause: "The delivery was cancelled before this request.",
        solution: "If the delivery is needed after all, create a new one.",
    }
    PRICE_EXPIRED = "price_expired", CONFLICT, retryable: false, {
        title: "Price expired",
        meaning: "No delivery was created: the price in `retailPrice` has expired.",
        cause: "The request arrived after the price's `expiresAt`.",
        solution: "Calculate the price again and have the customer confirm it.",
    }
    PRICE_USED = "price_used", CONFLICT, retryable: false, {
        title: "Price used",
        meaning: "No delivery was created: the price in `retailPrice` can be used once, and another delivery has used it.",
        cause: "The order was sent twice, or the price was used for two orders; `detail` names the delivery that used it.",
        solution: "Read that delivery: it may be the one you want. Otherwise calculate a new price.",
    }
    EXTERNAL_REFERENCE_TAKEN = "external_reference_taken", CONFLICT, retryable: false, {
        title: "External reference taken",
        meaning: "The request was rejected: the store already has a delivery with this `externalReference`, which `existing` names.",
        cause: "The delivery was created earlier, perhaps by a request whose response was lost. A cancelled delivery keeps its reference.",
        solution: "Read the delivery at `existing`. For another delivery, choose another reference.",
    }
    IDEMPOTENCY_KEY_IN_USE = "idempotency_key_in_use", CONFLICT, retryable: true, {
        title: "Idempotency key in use",
        meaning: "Another request with this `Idempotency-Key` is still in progress.",
        cause: "The request was sent again before its first response was ready.",
        solution: "Wait for the seconds in `Retry-After`, then send the same request with the same key again: it gets the response of the first.",
    }
    WEBHOOK_DISABLED = "webhook_disabled", CONFLICT, retryable: false, {
        title: "Webhook disabled",
        meaning: "The webhook is disabled, so it receives no notifications.",
        cause: "Your client or the platform's operator disabled the webhook, or its receiver answered 410 or failed for days; `disabledReason` says which.",
        solution: "Enable the webhook (`POST` to its `/enable`), then send the request again.",
    }
    WEBHOOK_DISABLED_BY_OPERATOR = "webhook_disabled_by_operator", CONFLICT, retryable: false, {
        title: "Webhook disabled by the operator",
        meaning: "The webhook stays disabled: the platform's operator disabled it.",
        cause: "The operator disabled the webhook, for example because of complaints about its requests.",
        solution: "Ask the platform's operator to enable the webhook.",
    }
    TOO_MANY_ATTEMPTS = "too_many_attempts", CONFLICT, retryable: false, {
        title: "Too many attempts",
        meaning: "The notification is not sent again: it has been sent too often.",
        cause: "A notification is attempted 100 times at most, its retries included.",
        solution: "Read the event from the event log, or the delivery itself.",
    }
    EVENTS_EXPIRED = "events_expired", GONE, retryable: false, {
        title: "Events expired",
        meaning: "Some events after the number in `after` are no longer stored, so the list would have a gap.",
        cause: "Events are stored for a limited time, by default 30 days, and the requested ones are older.",
        solution: "List your deliveries to get their current state, then list the events without `after`, from the oldest stored one.",
    }
    PRECONDITION_FAILED = "precondition_failed", PRECONDITION_FAILED, retryable: false, {
        title: "Precondition failed",
        meaning: "The precondition in `If-Match` cannot be met. The request was not executed.",
        cause: "`If-Match` compares strong entity tags, and all of this API are weak, so only `If-Match: *` can be met.",
        solution: "Send the request without `If-Match`. To read a resource only if it has changed, send its `ETag` as `If-None-Match`.",
    }
    PAYLOAD_TOO_LARGE = "payload_too_large", PAYLOAD_TOO_LARGE, retryable: false, {
        title: "Body too large",
        meaning: "The body of the request is too large. The request was not executed.",
        cause: "The body exceeds the limit that `detail` names.",
        solution: "Send a smaller body.",
    }
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, retryable: false, {
        title: "Media type not supported",
        meaning: "The API does not support the media type of the body. The request was not executed.",
        cause: "`Content-Type` is missing, or is neither `application/ld+json` nor `application/json` in UTF-8, or the body is compressed.",
        solution: "Send JSON with `Content-Type: application/ld+json`.",
    }
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused", UNPROCESSABLE_ENTITY, retryable: false, {
        title: "Idempotency key used for another request",
        meaning: "The request was rejected: a different request with this `Idempotency-Key` succeeded in the last 7 days.",
        cause: "The two requests differ in their path or in at least one byte of their bodies.",
        solution: "To repeat a request, send it unchanged. For a new request, use a new key, such as a random UUID.",
    }
    TOO_MANY_REQUESTS = "too_many_requests", TOO_MANY_REQUESTS, retryable: true, {
        title: "Too many requests",
        meaning: "A rate limit or quota is exhausted.",
        cause: "The requests exceeded the limit that `detail` names.",
        solution: "Wait for the seconds in `Retry-After`, then send requests at a lower rate.",
    }
    TOO_MANY_WEBHOOKS = "too_many_webhooks", TOO_MANY_REQUESTS, retryable: false, {
        title: "Too many webhooks",
        meaning: "Your client has reached the maximum number of webhooks.",
        cause: "Webhooks stay registered until they are deleted.",
        solution: "Delete webhooks that you no longer need.",
    }
    TOO_MANY_DELIVERIES = "too_many_deliveries", TOO_MANY_REQUESTS, retryable: true, {
        title: "Too many deliveries",
        meaning: "Your store has used up its quota of deliveries, or of their bytes. The request was not executed.",
        cause: "The platform's operator limits how many deliveries, or bytes of them, a store creates in 24 hours; cancelled ones count.",
        solution: "Wait for the seconds in `Retry-After`, or ask the platform's operator for a higher quota.",
    }
    HEADERS_TOO_LARGE = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, retryable: false, {
        title: "Headers too large",
        meaning: "The request has too many headers, or they are too large. The request was not executed.",
        cause: "The headers exceed a limit that `detail` names.",
        solution: "Send fewer and shorter headers.",
    }
    INTERNAL = "internal", INTERNAL_SERVER_ERROR, retryable: false, {
        title: "Internal error",
        meaning: "The platform failed to process the request.",
        cause: "A defect in the platform; it is logged with the `requestId`.",
        solution: "Report the `requestId` to the platform's operator. Before you repeat a request that creates a resource, check whether it exists.",
    }
    OVERLOADED = "overloaded", SERVICE_UNAVAILABLE, retryable: true, {
        title: "Overloaded",
        meaning: "The platform is at capacity. The request was not executed.",
        cause: "Too many requests, or too many large bodies, arrived at the same time.",
        solution: "Wait for the seconds in `Retry-After`, then send the request again.",
    }
    UNAVAILABLE = "unavailable", SERVICE_UNAVAILABLE, retryable: true, {
        title: "Unavailable",
        meaning: "A part of the platform is unreachable.",
        cause: "A service is starting, shutting down, or has failed.",
        solution: "Wait for the seconds in `Retry-After`, then send the request again. A request that creates a resource is safe to repeat with the same `Idempotency-Key`; without a key, check first whether the resource exists.",
    }
    DEADLINE_EXCEEDED = "deadline_exceeded", GATEWAY_TIMEOUT, retryable: true, {
        title: "Deadline exceeded",
        meaning: "The response was not ready in time. The request may or may not have been executed.",
        cause: "A part of the platform is slow or does not respond.",
        solution: "Send the request again. A request that creates a resource is safe to repeat with the same `Idempotency-Key`; without a key, check first whether the resource exists.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_by_its_exact_text() {
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
