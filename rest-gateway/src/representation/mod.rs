//! What bodies look like: media types, JSON and JSON-LD, collections, entity tags, compression, problems,
//! languages.

pub(crate) mod collection;
pub(crate) mod compression;
pub(crate) mod error_codes;
pub(crate) mod etag;
pub(crate) mod json;
pub(crate) mod json_ld;
pub(crate) mod language;
pub(crate) mod media_type;
pub(crate) mod messages;
pub(crate) mod problem;
