//! What bodies look like: media types, JSON and JSON-LD, collections, entity tags, problems.

pub(crate) mod collection;
pub(crate) mod error_codes;
pub(crate) mod etag;
pub(crate) mod json;
pub(crate) mod json_ld;
pub(crate) mod media_type;
pub(crate) mod problem;
