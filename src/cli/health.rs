//! `delivery health`: whether a program is ready, for health checks of containers without `curl`.

use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use delivery::ready::ReadyFile;
use tokio::time::timeout;
use url::Url;

use crate::cli::{DataDirFlag, http};

/// Of the whole check, name resolution included.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Args, Debug)]
pub(crate) struct Health {
    /// URL of a gateway, or of the health listener of a core or a dispatcher, instead of --data-dir. The
    /// certificate of an `https` URL is not verified
    #[arg(long, env = "DELIVERY_HEALTH_URL", value_name = "URL")]
    url: Option<Url>,

    #[command(flatten)]
    all_in_one: DataDirFlag,
}

impl Health {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let program = if let Some(url) = self.url {
            url
        } else {
            let ready = ReadyFile::read(&self.all_in_one.data_dir).context("no --url is given")?;
            ready.base_url.parse()?
        };
        let url = program.join("/readyz")?;
        let response = timeout(TIMEOUT, http::probe(url.as_str()))
            .await
            .with_context(|| format!("{url} does not respond within {TIMEOUT:?}"))??;
        let status = response.status().as_u16();
        let reason = match String::from_utf8_lossy(response.body()).trim() {
            "" => "no reason in the response".to_owned(),
            reason => reason.to_owned(),
        };
        ensure!(status == 200, "not ready: {reason} ({status} from {url})");
        Ok(())
    }
}
