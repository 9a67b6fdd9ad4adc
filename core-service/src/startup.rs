//! Opens everything a core needs before it can serve, and why it cannot.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use geocoding::{
    CachedGeocoder, Chain, Gazetteer, Geocoder, GeocoderSpec, HttpGeocoder, gazetteer::ImportError,
};
use parking_lot::Mutex;
use process::{
    clock::Clock,
    health::{HealthListener, Readiness},
    listen::ListenError,
    logs::error_message,
    secret_file, service_manager, tls,
};
use storage::{Connections, Storage, signing_keys::StoredSigningKey};
use tokio_util::sync::CancellationToken;
use upstream::Monitor;

use crate::{
    config::Config,
    error::Error,
    images::ImageFolder,
    notifications::recover_orphaned_leases,
    routing::Router,
    secrets::{
        master_keys::{self, KeyId},
        secret_box::SecretBox,
    },
    workers::key_ring::KeyRing,
};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What is missing or wrong, and what to do about it.
    #[error("{0}")]
    Misconfigured(String),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("cannot serve gRPC over TLS")]
    Tls(#[from] tls::Error),
    #[error("cannot read the database URL from its file")]
    DatabaseUrlFile(#[from] secret_file::Error),
    #[error("cannot open the database")]
    Database(#[from] storage::Error),
    #[error(transparent)]
    RefusedUrl(#[from] storage::RefusedUrl),
    #[error("cannot open the database: {}", storage::NOT_BOOTSTRAPPED)]
    NotBootstrapped,
    #[error(transparent)]
    MasterKey(#[from] master_keys::Error),
    #[error("cannot load the token signing keys")]
    SigningKeys(#[source] Error),
    #[error("cannot recover the leases of a stopped process")]
    Leases(#[source] Error),
    #[error("cannot set up TLS for geocoders")]
    GeocoderTls(#[source] rustls::Error),
    #[error("cannot use the folder of images")]
    Images(#[source] Error),
    #[error("cannot import the addresses of the demo")]
    Addresses(#[from] ImportError),
    #[error("cannot use the OSRM server")]
    Router(#[source] anyhow::Error),
    #[error("cannot create the first API clients")]
    Bootstrap(#[source] Error),
    #[error("cannot serve gRPC reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
}

impl StartError {
    /// Whether waiting may mend it.
    fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) | Self::SigningKeys(Error::Storage(error)) => {
                error.is_transient()
            }
            _ => false,
        }
    }
}

pub(crate) struct Resources {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) secret_box: Arc<SecretBox>,
    pub(crate) key_ring: Arc<KeyRing>,
    pub(crate) geocoder: Chain,
    /// Imports replace its addresses.
    pub(crate) gazetteer: Arc<Gazetteer>,
    pub(crate) router: Router,
    /// None if the platform keeps no images.
    pub(crate) images: Option<Arc<ImageFolder>>,
    /// The clients of geocoders and of the router, for metrics.
    pub(crate) upstreams: Vec<Monitor>,
}

/// The longest pause before a database is tried again that cannot be used yet.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Opens the database, the secret box, the geocoders and the router of a core. Waits for a `PostgreSQL` that
/// cannot be used yet; until it is opened, `health` answers that the core is not ready, and why.
pub(crate) async fn open(
    config: &Config,
    clock: Clock,
    health: Option<&HealthListener>,
) -> Result<Resources, StartError> {
    let starting = Arc::new(Starting::default());
    let started = CancellationToken::new();
    if let Some(health) = health.cloned() {
        tokio::spawn(health.run_until(started.clone(), Arc::clone(&starting)));
    }
    let started = started.drop_guard();
    let Database {
        storage,
        secret_box,
        key_ring,
    } = wait_for_database(config, &clock, &starting).await?;
    drop(started);
    let images = open_images(&storage, config).await?.map(Arc::new);
    let mut upstreams = Vec::new();
    let router = config
        .router
        .open(&mut upstreams)
        .map_err(StartError::Router)?;
    let gazetteer = Arc::new(Gazetteer::new(&config.gazetteer_file));
    if config.all_in_one {
        gazetteer.ensure_demo()?;
    }
    let geocoder = geocoder(config, &gazetteer, &mut upstreams)?;
    Ok(Resources {
        storage,
        clock,
        secret_box,
        key_ring,
        geocoder,
        gazetteer,
        router,
        images,
        upstreams,
    })
}

/// Why a core that starts is not ready.
struct Starting(Mutex<String>);

impl Default for Starting {
    fn default() -> Self {
        Self(Mutex::new(
            "the core starts: it opens its database, or migrates the schema".to_owned(),
        ))
    }
}

impl Readiness for Starting {
    async fn check(&self) -> Result<(), String> {
        Err(self.0.lock().clone())
    }
}

/// What a core opens of its database.
struct Database {
    storage: Arc<Storage>,
    secret_box: Arc<SecretBox>,
    key_ring: Arc<KeyRing>,
}

/// Opens the database, again and again while waiting may mend what is wrong, and logs each reason once.
async fn wait_for_database(
    config: &Config,
    clock: &Clock,
    starting: &Starting,
) -> Result<Database, StartError> {
    let url = config.database_url()?;
    let mut pause = Duration::from_millis(100);
    loop {
        let error = match open_database(config, &url, clock).await {
            Err(error) if error.is_transient() && !url.starts_with("sqlite:") => error,
            result => return result,
        };
        let reason = error_message(&error.into());
        let before = std::mem::replace(&mut *starting.0.lock(), reason.clone());
        if before != reason {
            tracing::warn!("not ready, and waits: {reason}");
            // Otherwise the service manager ends a start that takes long.
            service_manager::notify_ready();
        }
        tokio::time::sleep(pause).await;
        pause = MAX_PAUSE.min(pause * 2);
    }
}

async fn open_database(config: &Config, url: &str, clock: &Clock) -> Result<Database, StartError> {
    let storage = Arc::new(if config.all_in_one {
        Storage::connect(url, config.database_connections).await?
    } else {
        Storage::connect_existing(url, config.database_connections).await?
    });
    let secret_box = Arc::new(open_secret_box(&storage, config, config.all_in_one).await?);
    if storage.is_single_process() {
        recover_orphaned_leases(&storage, config.all_in_one, clock.now())
            .await
            .map_err(StartError::Leases)?;
    }
    let opened = KeyRing::open(
        Arc::clone(&storage),
        Arc::clone(&secret_box),
        clock.clone(),
        config.public_url.clone(),
    );
    let key_ring = Arc::new(opened.await.map_err(StartError::SigningKeys)?);
    Ok(Database {
        storage,
        secret_box,
        key_ring,
    })
}

/// Opens the folder of images, if one is named. Fails if none is, and the database has images in one.
async fn open_images(
    storage: &Storage,
    config: &Config,
) -> Result<Option<ImageFolder>, StartError> {
    if let Some(path) = &config.images {
        let is_own = config.all_in_one && storage.is_single_process();
        return Ok(Some(ImageFolder::open(path, storage, is_own).await?));
    }
    match storage::images::folder_id(storage.reader()).await? {
        None => Ok(None),
        Some(_) => Err(StartError::Misconfigured(
            "this database has images in a folder: name it with --images".to_owned(),
        )),
    }
}

/// The configured geocoders, in their order.
fn geocoder(
    config: &Config,
    gazetteer: &Arc<Gazetteer>,
    upstreams: &mut Vec<Monitor>,
) -> Result<Chain, StartError> {
    let mut chain: Vec<Box<dyn Geocoder>> = Vec::new();
    let mut protocols = Vec::new();
    for spec in &config.geocoding.geocoders {
        match spec {
            GeocoderSpec::Gazetteer => chain.push(Box::new(Arc::clone(gazetteer))),
            GeocoderSpec::None => {}
            GeocoderSpec::Http(spec) => {
                let language = &config.platform.locale;
                let protocol = spec.protocol;
                protocols.push(protocol);
                let name = match protocols.iter().filter(|other| **other == protocol).count() {
                    1 => protocol.to_string(),
                    number => format!("{protocol}-{number}"),
                };
                let http =
                    HttpGeocoder::new(spec, language, &name).map_err(StartError::GeocoderTls)?;
                upstreams.push(http.monitor());
                chain.push(Box::new(CachedGeocoder::new(http)));
            }
        }
    }
    Ok(Chain(chain))
}

/// Opens the secret box. With `create`, creates the master key file if the database has no
/// encrypted secrets yet: a new key could not decrypt them.
pub(crate) async fn open_secret_box(
    storage: &Storage,
    config: &Config,
    create: bool,
) -> Result<SecretBox, StartError> {
    let master_key_file = &config.master_key_file;
    let keys = storage::signing_keys::list(storage.reader()).await?;
    let secret_box = if keys.is_empty() {
        if !create {
            return Err(StartError::NotBootstrapped);
        }
        SecretBox::open_or_create(master_key_file)?
    } else {
        SecretBox::open(master_key_file)
            .map_err(|error| unusable_master_key(error, config.all_in_one))?
    };
    let present = secret_box.key_ids();
    require_keys(storage.reader(), &keys, &present, config).await?;
    Ok(secret_box)
}

/// The error of the file for a database with encrypted secrets.
pub(crate) fn unusable_master_key(error: master_keys::Error, all_in_one: bool) -> StartError {
    match error {
        master_keys::Error::Missing { path } => StartError::Misconfigured(format!(
            "this database has a master key, but {} does not exist: restore it from your backup, or name the right {}",
            path.display(),
            if all_in_one {
                "data directory with --data-dir"
            } else {
                "file with --master-key-file"
            }
        )),
        error => error.into(),
    }
}

/// Fails if a secret is encrypted with a master key that is not in the file. Stored responses are
/// not examined: there may be millions, and they expire.
pub(crate) async fn require_keys(
    reader: &Connections,
    signing_keys: &[StoredSigningKey],
    present: &[KeyId],
    config: &Config,
) -> Result<(), StartError> {
    let platform_secrets = storage::platform_secrets::list(reader).await?;
    let webhook_secrets =
        storage::webhooks::secret_columns::distinct_prefixes(reader, KeyId::LENGTH).await?;
    let signing_keys = signing_keys.iter().map(|key| &*key.encrypted_private_key);
    let used: BTreeSet<_> = signing_keys
        .chain(platform_secrets.iter().map(|secret| &*secret.encrypted))
        .chain(webhook_secrets.iter().map(|secret| &**secret))
        .filter_map(KeyId::of_ciphertext)
        .collect();
    let path = config.master_key_file.display();
    let Some(id) = used.iter().find(|id| !present.contains(id)) else {
        return Ok(());
    };
    Err(StartError::Misconfigured(
        if used.iter().any(|id| present.contains(id)) {
            format!(
                "secrets of this database are encrypted with the master key {id}, which {path} does not contain: add its line to that file, from {path}.removed, another core's file or a backup"
            )
        } else {
            let remedy = if config.all_in_one {
                format!(
                    "put its own into that file, from a backup or {path}.removed, or name the right data directory with --data-dir"
                )
            } else {
                "name the right file with --master-key-file".to_owned()
            };
            format!(
                "this database belongs to another master key than {path}: {remedy}, or the database that belongs to this key"
            )
        },
    ))
}

#[cfg(test)]
mod tests {
    use process::metrics::Exposition;

    use super::*;

    #[tokio::test]
    async fn the_metrics_of_a_second_geocoder_of_a_kind_have_a_name_of_their_own() {
        let gazetteer = Arc::new(Gazetteer::new("addresses.sqlite"));
        let mut config = Config::default();
        config.geocoding.geocoders = ["photon", "nominatim", "photon", "photon"]
            .map(|kind| format!("{kind}=https://geo.internal").parse().unwrap())
            .into();

        let mut upstreams = Vec::new();
        geocoder(&config, &gazetteer, &mut upstreams).unwrap();

        let mut exposition = Exposition::new();
        upstream::register_metrics(upstreams, exposition.registry());
        let exposition = exposition.render().await;
        for name in ["photon", "nominatim", "photon-2", "photon-3"] {
            let label = format!("upstream=\"{name}\"");
            assert!(exposition.contains(&label), "{name}: {exposition}");
        }
    }
}
