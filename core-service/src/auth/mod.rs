//! Who calls, and what the caller may do: access tokens, scopes, limits per client.

pub(crate) mod access_token;
pub(crate) mod audit;
pub(crate) mod authenticator;
pub(crate) mod caller;
pub(crate) mod rate_limits;
