//! Tests the dispatcher as a black box, between a fake core and receivers on real sockets.
#![cfg(test)]

mod address_guard;
mod bad_receivers;
mod connections;
mod cores;
mod dns_rebinding;
mod hanging_receivers;
mod harness;
mod http2;
mod renewal;
mod sending;
mod shutdown;
mod stream;
mod test_send;
mod timeouts;
mod tls;
