//! `delivery zones`: named areas for price rules and service areas.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proto::{ApplyZonesRequest, CheckZonesRequest, GetZonesRequest, Zone, ZoneSet};

use crate::cli::{
    access::CoreCommand,
    definition,
    errors::definition_error,
    output::{self, View},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add zones, or replace zones with the same names; other zones are unchanged
    ///
    /// The file is GeoJSON: polygon or multi-polygon features in degrees (longitude first), each
    /// with its name in `properties.name`. Zones are shared by all stores; price rules use them
    /// as `in_zone(dropoff.address, "NAME")`.
    Apply(ZonesFile),
    /// Check a file without applying it
    Check(ZonesFile),
    /// List all zones
    List,
    /// Show zones as GeoJSON
    Show {
        /// Zone to show; by default all
        name: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct ZonesFile {
    /// Zones file, GeoJSON
    file: PathBuf,
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let json = self.access.json;

        match self.command {
            Command::Apply(ZonesFile { file }) => {
                let message = ApplyZonesRequest {
                    definition: definition::read(&file)?,
                    idempotency: None,
                };
                let explain = |status: &_| definition_error(&file, status);
                let applied = core.write_explained(message, explain).await?;
                output::many(json, applied.zones.into_iter().map(view))
            }
            Command::Check(ZonesFile { file }) => {
                let definition = definition::read(&file)?;
                let request = CheckZonesRequest { definition };
                let explain = |status: &_| definition_error(&file, status);
                core.call_explained(request, explain).await?;
                definition::print_valid(json, &file, &[])
            }
            Command::List => {
                let request = GetZonesRequest { display_name: None };
                let found = core.call(request).await?;
                output::many(json, found.zones.into_iter().map(view))
            }
            Command::Show { name } => {
                let request = GetZonesRequest { display_name: name };
                print(json, &core.call(request).await?)
            }
        }
    }
}

fn print(json: bool, zones: &ZoneSet) -> anyhow::Result<()> {
    let metadata = View::default()
        .json("version", zones.version)
        .json("created_at", output::instant(zones.create_time, "UTC"));
    definition::print_applied(json, &zones.definition, metadata)
}

/// `positions` are the points of its polygons; `bounds` are south, west, north and east, in degrees.
fn view(zone: Zone) -> View {
    let Zone {
        south,
        west,
        north,
        east,
        ..
    } = zone;
    View::default()
        .field("name", zone.display_name)
        .field("positions", zone.positions)
        .json("bounds", [south, west, north, east])
        .text("latitude", format!("{south} to {north}"))
        .text("longitude", format!("{west} to {east}"))
}
