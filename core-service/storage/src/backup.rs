//! Backups of an `SQLite` database: consistent copies, taken while it is in use.

use std::path::Path;

use jiff::Timestamp;
use sea_orm::{
    ConnectionTrait as _,
    sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

use super::{Error, Session, connect::Target, rows};

/// The description of a backup, stored in its table `backup`.
#[derive(Clone, Debug)]
pub struct Description {
    pub taken_at: Timestamp,
    /// The version of the program that took it.
    pub program: String,
    /// The text of the master key's file, if it is included.
    pub master_key: Option<String>,
}

/// What is in a backup.
#[derive(Debug)]
pub struct Contents {
    pub description: Description,
    /// The last migration.
    pub schema: String,
    /// The numbers of rows, by the names in `COUNTS`.
    pub counts: Vec<(&'static str, i64)>,
    /// The private key of a signing key, encrypted with the master key.
    pub encrypted_private_key: Option<Vec<u8>>,
}

const COUNTS: [(&str, &str); 6] = [
    ("stores", "stores"),
    ("api_clients", "api_clients"),
    ("deliveries", "deliveries"),
    ("events", "events"),
    ("webhooks", "webhooks"),
    (
        "notifications_to_send",
        "notifications WHERE state IN ('pending', 'leased')",
    ),
];

/// Copies a database into an empty file, as it is at one instant. The database may be in use.
pub async fn copy(database: &Path, target: &Path, description: &Description) -> Result<(), Error> {
    let file = target
        .to_str()
        .ok_or_else(|| Error::Misconfigured(format!("{} is not valid UTF-8", target.display())))?;
    let source = open_file(options(database)).await?;
    let copied = rows::run(&source, "VACUUM INTO $1", [file.into()]).await;
    source.close().await?;
    copied?;

    let copy = open_file(options(target).journal_mode(SqliteJournalMode::Delete)).await?;
    let written = write_description(&copy, description).await;
    copy.close().await?;
    written
}

async fn write_description(copy: &Session, description: &Description) -> Result<(), Error> {
    let create = "CREATE TABLE backup (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID";
    copy.execute_unprepared(create).await?;
    let rows = [
        ("taken_at", Some(description.taken_at.to_string())),
        ("program", Some(description.program.clone())),
        ("master_key", description.master_key.clone()),
    ];
    for (name, value) in rows {
        let Some(value) = value else { continue };
        let insert = "INSERT INTO backup (name, value) VALUES ($1, $2)";
        rows::execute(copy, insert, [name.into(), value.into()]).await?;
    }
    Ok(())
}

/// Reads a backup without changing it. Fails if its pages or indexes are inconsistent, or if its
/// schema is newer than this program.
pub async fn inspect(backup: &Path) -> Result<Contents, Error> {
    let connection = open_file(options(backup).read_only(true).immutable(true)).await?;
    let contents = read(&connection).await;
    connection.close().await?;
    contents
}

async fn read(backup: &Session) -> Result<Contents, Error> {
    let found: String = rows::value(backup, "PRAGMA integrity_check(1)").await?;
    if found != "ok" {
        return Err(Error::Misconfigured(format!(
            "the backup is not consistent: {found}"
        )));
    }
    migrations::pending(backup).await?;
    let mut counts = Vec::new();
    for (name, rows) in COUNTS {
        let count = rows::value(backup, &format!("SELECT count(*) FROM {rows}")).await?;
        counts.push((name, count));
    }
    let taken_at = value(backup, "taken_at").await?.unwrap_or_default();
    let keys = super::signing_keys::list(backup).await?;
    Ok(Contents {
        description: Description {
            taken_at: taken_at
                .parse()
                .map_err(|error| Error::inconsistent("backup", error))?,
            program: value(backup, "program").await?.unwrap_or_default(),
            master_key: value(backup, "master_key").await?,
        },
        schema: migrations::applied(backup).await?.pop().unwrap_or_default(),
        counts,
        encrypted_private_key: keys.into_iter().next().map(|key| key.encrypted_private_key),
    })
}

/// Turns a copy of a backup into a database: removes the description.
pub async fn remove_description(copy: &Path) -> Result<(), Error> {
    let options = options(copy).journal_mode(SqliteJournalMode::Delete);
    let connection = open_file(options.pragma("secure_delete", "ON")).await?;
    let removed = connection.execute_unprepared("DROP TABLE backup").await;
    connection.close().await?;
    removed?;
    Ok(())
}

fn options(file: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(file)
}

pub(super) async fn open_file(options: SqliteConnectOptions) -> Result<Session, Error> {
    let url = format!("sqlite://{}", options.get_filename().display());
    let session = Target::sqlite(options).session().await;
    session.map_err(|error| error.explained(&url))
}

/// A value of the description.
async fn value(backup: &Session, name: &str) -> Result<Option<String>, Error> {
    let select = "SELECT value FROM backup WHERE name = $1";
    rows::find_value(backup, select, [name.into()]).await
}
