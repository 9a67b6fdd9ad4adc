//! `delivery health`: whether a program is ready, for health checks of containers without `curl`.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, ensure};
use clap::Args;
use delivery::{DEFAULT_DATA_DIR, ready::ReadyFile};
use url::Url;

use crate::cli::http_probe;

/// Of the whole check, name resolution included.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args, Debug)]
pub(crate) struct Health {
    /// URL of a gateway, or of the health listener of a core or a dispatcher. The certificate of an
    /// `https` URL is not verified
    #[arg(long, env = "DELIVERY_HEALTH_URL", value_name = "URL")]
    url: Option<Url>,

    /// Data directory of the all-in-one to check; ignored with --url
    #[arg(
        long,
        env = "DELIVERY_DATA_DIR",
        value_name = "DIR",
        default_value = DEFAULT_DATA_DIR
    )]
    data_dir: PathBuf,
}

impl Health {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let url = if let Some(url) = self.url {
            url
        } else {
            let ready = ReadyFile::read(&self.data_dir).context("no --url is given")?;
            ready.base_url.parse()?
        };
        let url = url.join("/readyz")?;
        let response = tokio::time::timeout(TIMEOUT, http_probe::get(&url)).await;
        let response =
            response.with_context(|| format!("{url} does not respond within {TIMEOUT:?}"))??;
        let (status, body) = (response.status, response.body);
        let reason = if body.is_empty() {
            "no reason in the response"
        } else {
            &body
        };
        ensure!(status == 200, "not ready: {reason} ({status} from {url})");
        Ok(())
    }
}
