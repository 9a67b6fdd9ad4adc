//! What runs by itself: numbers events, removes what has expired, deletes files of images, renews the signing keys.

pub(crate) mod image_cleanup;
pub(crate) mod key_ring;
pub(crate) mod retention;
pub(crate) mod sequencer;
