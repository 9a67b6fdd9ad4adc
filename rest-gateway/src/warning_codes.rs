//! The table of warning codes: the values of `code` in `warnings` and the texts of their pages.

use crate::violation_codes::{ViolationCode, violation_codes};

violation_codes! {
    "past_time", "Time in the past":
        "The task's time window has ended, or has begun.",
        "Check the date, unless the delivery has already been made.";
    "unknown_member", "Unknown member":
        "The API has no member of this name, so the member was ignored.",
        "Correct the name, or remove the member.";
    "vague_address", "Vague address":
        "The geocoder found only the street or the town, or chose a town because the request names none.",
        "Compare the address in the response with the intended one. Send house number, street, postcode and town, or the location as `latLng`.";
}
