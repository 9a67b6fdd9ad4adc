//! The table of violation codes: the values of `code` in `violations` and the texts of their pages.
//! `api_description/openapi/violation_examples.json` has a violation of each, recorded by an end-to-end
//! test.

/// A kind of violation or warning.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ViolationCode {
    pub(crate) code: &'static str,
    pub(crate) title: &'static str,
    /// Why a part of a request is invalid.
    pub(crate) cause: &'static str,
    /// How to correct it.
    pub(crate) solution: &'static str,
}

/// Makes a table of violation or warning codes.
macro_rules! violation_codes {
    ($($code:literal, $title:literal: $cause:literal, $solution:literal;)*) => {
        /// Every code, in alphabetical order.
        pub(crate) static ALL: &[ViolationCode] = &[$(ViolationCode {
            code: $code,
            title: $title,
            cause: $cause,
            solution: $solution,
        }),*];

        /// The codes alone.
        pub(crate) static CODES: &[&str] = &[$($code),*];

        /// Finds a code by its text.
        pub(crate) fn find(code: &str) -> Option<&'static ViolationCode> {
            ALL.iter().find(|known| known.code == code)
        }
    };
}

pub(crate) use violation_codes;

violation_codes! {
    "absurd_time", "Time out of range":
        "The time is before 2000, or more than ten years from now.",
        "Check the year, and the unit of a number: a time is a text, not a number of seconds.";
    "address_not_found", "Address not found":
        "The geocoder found no address for the text.",
        "Send house number, street, postcode and town, or the location as `latLng`.";
    "address_unclear", "Address not precise enough":
        "The geocoder understood a part of the address only; the message says which.",
        "Correct or add the part that the message names, or send the location as `latLng`.";
    "conflict", "Contradiction":
        "Two headers of the request contradict each other.",
        "Send the request with an HTTP library, which sets these headers.";
    "control_character", "Control character":
        "The text contains a control character other than a tab or a line break.",
        "Remove the control characters.";
    "differs", "Differs from the priced delivery":
        "The part differs from the delivery that the price in `retailPrice` was calculated for.",
        "Send the delivery that the price was calculated for, or calculate a new price.";
    "invalid_cursor", "Invalid cursor":
        "`cursor` is not a cursor of this list.",
        "Follow the links in `hydra:view` unchanged, or send the list without `cursor`.";
    "invalid_idempotency_key", "Invalid idempotency key":
        "The header `Idempotency-Key` is empty, longer than 255 characters, or has characters other than visible ASCII.",
        "Send a random UUID, or the order's number.";
    "invalid_instant", "Invalid instant":
        "The value is not an RFC 3339 instant.",
        "Send date, time and offset, such as `2020-04-01T00:00:00+02:00`.";
    "invalid_json", "Invalid JSON":
        "The body is not JSON in UTF-8; the message names the position.",
        "Encode the body with a JSON library.";
    "invalid_key", "Invalid key":
        "A key in `metadata` is longer than 64 characters or has a control character.",
        "Use a shorter key of printable characters.";
    "invalid_point", "Invalid location":
        "The location is not two numbers in range, latitude first; or latitude and longitude are swapped.",
        "Send `latLng` as `[latitude, longitude]`: -90 to 90, then -180 to 180.";
    "invalid_telephone", "Invalid telephone number":
        "The text is not a telephone number of the store's country or in international format.",
        "Send the number in international format, such as `+33612345678`, or null.";
    "invalid_time", "Invalid time":
        "The text is not a time, has two meanings, or names a time that does not exist.",
        "Send an instant with its offset, such as `2026-11-25T17:30:00+01:00`, or a text such as `tomorrow 13:00`.";
    "invalid_time_slot", "Invalid time slot":
        "The text is neither a time slot choice nor a date and a time range.",
        "Send the `value` of a choice, or `<YYYY-MM-DD> <HH:MM>-<HH:MM>`.";
    "invalid_url", "Invalid URL":
        "The URL is not an absolute `https` URL of a public host, or has credentials or a fragment.",
        "Send the URL of a receiver that the platform can reach over the internet.";
    "malformed", "Malformed HTTP":
        "The request is not well-formed HTTP.",
        "Send the request with an HTTP library.";
    "no_route", "No route":
        "The router found no road from the pickup to the dropoff.",
        "Check both locations: one may be on water or on another island.";
    "not_unicode", "Not Unicode":
        "A text has half of a surrogate pair (`\\ud800` to `\\udfff`), which is no character.",
        "Do not cut a text in the middle of a character.";
    "out_of_order", "Times out of order":
        "`after` is not earlier than `before`, or the pickup's `before` is later than the dropoff's.",
        "Correct the times: the pickup is before the dropoff.";
    "out_of_range", "Out of range":
        "The number is less than the minimum or greater than the maximum.",
        "Send a number in the range that the message names.";
    "outside_service_area", "Outside the service area":
        "The store does not deliver to this location.",
        "Send another address, or ask the platform's operator to extend the service area.";
    "price_expired", "Price expired":
        "The price in `retailPrice` has expired.",
        "Calculate the price again and have the customer confirm it.";
    "repeated", "Repeated":
        "A member of the body, a query parameter or a header occurs more than once.",
        "Send it once.";
    "required", "Required":
        "A required part is missing, null or empty.",
        "Send the part that `propertyPath` names.";
    "time_slot_refused", "Time slot not offered":
        "The store accepts only the time slots that it offers, and this one is not offered or is fully booked.",
        "Get the choices from `/api/time_slots/choices`, and send the `value` of one.";
    "time_slot_required", "Time slot required":
        "The store requires a time slot for the dropoff.",
        "Send the `value` of a choice of `/api/time_slots/choices` as `timeSlot`.";
    "too_deep", "Too many levels":
        "The body has too many nested objects and arrays.",
        "Send fewer levels.";
    "too_long", "Too long":
        "The text has more characters than the maximum that the message names.",
        "Send a shorter text.";
    "too_many", "Too many elements":
        "The list or map has more elements than the maximum that the message names.",
        "Send fewer elements.";
    "unknown_country", "Unknown country":
        "The text is not an ISO 3166-1 alpha-2 code.",
        "Send two letters, such as `FR`.";
    "unknown_event", "Unknown event":
        "There is no event of this name.",
        "Send one of the events that the message lists.";
    "unknown_package", "Unknown package type":
        "The store's price list has no package of this type.",
        "Send one of the types that the message lists.";
    "unknown_parameter", "Unknown query parameter":
        "The operation does not have this query parameter.",
        "Send one of the parameters that the message lists.";
    "unknown_price", "Unknown price":
        "`retailPrice` is not the `@id` of a price that was calculated for this store.",
        "Send the `@id` of the response of `/api/retail_prices/calculate` unchanged.";
    "unknown_state", "Unknown state":
        "There is no notification state of this name.",
        "Send one of the states that the message lists.";
    "unknown_value", "Unknown value":
        "The parameter has a closed set of values, and this is not one of them.",
        "Send one of the values that the message lists.";
    "unsupported", "Unsupported":
        "The transfer coding is not `chunked`.",
        "Send the body with a `Content-Length`, or with the transfer coding `chunked`.";
    "wrong_type", "Wrong type":
        "The value has another JSON type than the member, or is not a whole number.",
        "Send a value of the type that the message names.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error_codes, warning_codes};

    #[test]
    fn codes_are_sorted_and_shared_with_errors_only_where_the_meaning_is_the_same() {
        assert!(CODES.is_sorted());
        assert!(warning_codes::CODES.is_sorted());
        for code in warning_codes::CODES {
            assert_eq!((find(code), error_codes::find(code)), (None, None));
        }
        let shared: Vec<_> = CODES
            .iter()
            .filter(|code| error_codes::find(code).is_some())
            .collect();
        assert_eq!(shared, [&"conflict", &"price_expired"]);
        assert_eq!(find("too_long").map(|code| code.title), Some("Too long"));
        assert_eq!(find("TOO_LONG"), None);
    }
}
