//! What runs by itself: numbers events, removes what has expired, renews the signing keys.

pub(crate) mod key_ring;
pub(crate) mod retention;
pub(crate) mod sequencer;
