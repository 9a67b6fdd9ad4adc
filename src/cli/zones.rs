//! `delivery zones`: named areas for price rules and service areas.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proto::{
    ApplyZonesRequest, CheckZonesRequest, GetZonesRequest, Zone, ZoneSet, zones_client::ZonesClient,
};
use serde::Serialize;

use crate::cli::{
    access::Access,
    definition,
    errors::{definition_error, reply},
    output::{self, Resource},
};

#[derive(Args, Debug)]
pub(crate) struct Zones {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add zones, or replace zones with the same names; other zones are unchanged
    ///
    /// The file is GeoJSON: polygon or multi-polygon features in degrees (longitude first), each
    /// with its name in `properties.name`. Zones are shared by all stores; price rules use them
    /// as `in_zone(dropoff.address, "NAME")`.
    Apply(File),
    /// Check a file without applying it
    Check(File),
    /// List all zones
    List,
    /// Show zones as GeoJSON
    Show {
        /// Zone to show; by default all
        name: Option<String>,
    },
}

#[derive(Args, Debug)]
struct File {
    /// Zones file, GeoJSON
    file: PathBuf,
}

impl Zones {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let zones = || ZonesClient::new(core.channel.clone());
        let json = self.access.json;

        match self.command {
            Command::Apply(File { file }) => {
                let message = ApplyZonesRequest {
                    definition: definition::read(&file)?,
                    idempotency: None,
                };
                let explain = |status: &_| definition_error(&file, status);
                let applied = core
                    .write(message, explain, async |request| {
                        zones().apply_zones(request).await
                    })
                    .await?;
                let rows: Vec<_> = applied.zones.into_iter().map(Row::from).collect();
                output::many(json, &rows)
            }
            Command::Check(File { file }) => {
                let request = core.request(CheckZonesRequest {
                    definition: definition::read(&file)?,
                });
                let checked = zones().check_zones(request).await;
                checked.map_err(|status| definition_error(&file, &status))?;
                definition::print_valid(json, &file, &[])
            }
            Command::List => {
                let request = core.request(GetZonesRequest { display_name: None });
                let found = reply(zones().get_zones(request).await)?;
                let rows: Vec<_> = found.zones.into_iter().map(Row::from).collect();
                output::many(json, &rows)
            }
            Command::Show { name } => {
                let request = core.request(GetZonesRequest { display_name: name });
                print(json, reply(zones().get_zones(request).await)?)
            }
        }
    }
}

/// Prints the GeoJSON; with `--json`, its metadata too.
fn print(json: bool, zones: ZoneSet) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Stored {
        version: u32,
        definition: String,
        created_at: Option<String>,
    }
    if !json {
        return output::text(&zones.definition);
    }
    output::document(&Stored {
        version: zones.version,
        created_at: output::instant(zones.create_time.as_ref(), "UTC"),
        definition: zones.definition,
    })
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// The number of points of its polygons.
    positions: u32,
    /// South, west, north, east; in degrees.
    bounds: [f64; 4],
}

impl From<Zone> for Row {
    fn from(zone: Zone) -> Self {
        Self {
            name: zone.display_name,
            positions: zone.positions,
            bounds: [zone.south, zone.west, zone.north, zone.east],
        }
    }
}

impl Resource for Row {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let [south, west, north, east] = self.bounds;
        vec![
            ("name", self.name.clone()),
            ("positions", self.positions.to_string()),
            ("latitude", format!("{south} to {north}")),
            ("longitude", format!("{west} to {east}")),
        ]
    }
}
