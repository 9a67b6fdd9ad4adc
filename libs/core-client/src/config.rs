//! Settings of calls to cores: TLS files, and whether plain text is allowed.

use std::path::PathBuf;

use clap::Args;
use process::local_calls::LocalChannel;

/// The heading of these flags in `--help`.
const HEADING: &str = "Connection to cores";

/// Settings of calls to cores. All files are PEM and are read again for the next connection after
/// they change.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreConfig {
    /// Certificate authorities to trust for cores instead of the system's (PEM); repeatable.
    /// Changed files are read again for the next connection. Default: the system's. Example:
    /// `/etc/delivery/ca.pem`
    #[arg(long, env = "DELIVERY_CORE_TLS_CA", value_name = "FILE")]
    #[arg(value_delimiter = ',', global = true, help_heading = HEADING)]
    pub core_tls_ca: Vec<PathBuf>,

    /// Client certificate for cores that require one (PEM). Default: none. Example:
    /// `/etc/delivery/client.pem`
    #[arg(long, env = "DELIVERY_CORE_TLS_CERTIFICATE", value_name = "FILE")]
    #[arg(requires = "core_tls_key", global = true, help_heading = HEADING)]
    pub core_tls_certificate: Option<PathBuf>,

    /// Private key of the client certificate (PEM), readable by its owner only. Default: none.
    /// Example: `/etc/delivery/client.key`
    #[arg(long, env = "DELIVERY_CORE_TLS_KEY", value_name = "FILE")]
    #[arg(requires = "core_tls_certificate", global = true)]
    #[arg(help_heading = HEADING)]
    pub core_tls_key: Option<PathBuf>,

    /// Allow calls without TLS to a core on another machine: tokens and secrets are sent
    /// unencrypted. Default: no. Example: `DELIVERY_ALLOW_PLAINTEXT_CORE=yes`
    #[arg(long, env = "DELIVERY_ALLOW_PLAINTEXT_CORE", global = true)]
    #[arg(help_heading = HEADING)]
    pub allow_plaintext_core: bool,

    /// Calls the core of the same process, instead of connecting to its address.
    #[arg(skip)]
    pub local: Option<LocalChannel>,
}
