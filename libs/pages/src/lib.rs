//! What the pages of every program share: the headers of HTML, files at URLs with their hash, colours, and times in
//! the reader's language. A page's own template, style sheet and script are where it is served.

mod file;
mod headers;
mod text;
mod times;

pub use file::{CACHE_OF_VERSION, File};
pub use headers::{HTML, add_headers};
pub use text::without_controls;
pub use times::{date, time};

/// A style sheet with the colours of all pages, in the light and in the dark, as custom properties.
pub const COLOURS: &str = include_str!("colours.css");
