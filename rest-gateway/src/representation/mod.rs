//! What bodies look like: media types, JSON and JSON-LD, collections, problems, languages; and what happens to
//! their bytes.

pub(crate) mod collection;
pub(crate) mod error_codes;
pub(crate) mod json;
pub(crate) mod json_ld;
pub(crate) mod language;
pub(crate) mod media_type;
pub(crate) mod messages;
pub(crate) mod problem;
pub(crate) mod response_body;
