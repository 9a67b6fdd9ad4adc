//! The changes of a store that a request asks for: validated, all violations at once.

use domain::{
    address::{Address, LatLng},
    brand::{Colour, Logo},
    coverage::{Circle, ServiceArea},
    store::{self, Country, Store},
    telephone,
    violation::Violations,
};
use iso_currency::Currency;
use jiff::tz::TimeZone;

use crate::{
    error::Error,
    planning::{definitions::CachePolicy, validation},
    services::Services,
};

/// Validated changes of a store; absent fields are left unchanged.
#[derive(Clone)]
pub(super) struct Changes {
    display_name: Option<String>,
    time_zone: Option<TimeZone>,
    currency: Option<Currency>,
    country: Option<Country>,
    default_address: Option<Address>,
    /// Whether only the location of the default address changes, if the store has one.
    moves_address: bool,
    service_area: Option<NewServiceArea>,
    refuses_unpriced: Option<bool>,
    has_tracking: Option<bool>,
    telephone: Option<NewTelephone>,
    colour: Option<NewColour>,
    pub(super) logo: Option<NewLogo>,
}

/// `None` removes the number.
#[derive(Clone)]
struct NewTelephone(Option<String>);

/// `None` for the platform's own.
#[derive(Clone)]
struct NewColour(Option<Colour>);

/// `None` removes it.
#[derive(Clone)]
pub(super) struct NewLogo(pub(super) Option<Logo>);

#[derive(Clone)]
enum NewServiceArea {
    Unlimited,
    Limited(ServiceArea),
}

impl Changes {
    pub(super) fn apply(self, store: &mut Store) {
        fn set<T>(field: &mut T, change: Option<T>) {
            if let Some(value) = change {
                *field = value;
            }
        }
        set(&mut store.display_name, self.display_name);
        set(&mut store.time_zone, self.time_zone);
        set(&mut store.currency, self.currency);
        set(&mut store.country, self.country);
        let service_area = self.service_area.map(|change| match change {
            NewServiceArea::Unlimited => None,
            NewServiceArea::Limited(area) => Some(area),
        });
        set(&mut store.service_area, service_area);
        set(&mut store.refuses_unpriced, self.refuses_unpriced);
        set(&mut store.has_tracking, self.has_tracking);
        let telephone = self.telephone.map(|NewTelephone(number)| number);
        set(&mut store.telephone, telephone);
        let colour = self.colour.map(|NewColour(colour)| colour);
        set(&mut store.brand.colour, colour);
        let version = self
            .logo
            .map(|NewLogo(logo)| logo.as_ref().map(Logo::version));
        set(&mut store.brand.logo_version, version);
        if let Some(address) = self.default_address {
            store.default_address = Some(match store.default_address.take() {
                Some(present) if self.moves_address => Address {
                    id: address.id,
                    lat_lng: address.lat_lng,
                    ..present
                },
                _ => address,
            });
        }
    }
}

impl Services {
    /// Validates changes of a store.
    pub(super) async fn changes(
        &self,
        request: proto::UpdateStoreRequest,
        store: &Store,
    ) -> Result<Changes, Error> {
        let mut violations = Violations::new();
        let display_name = request
            .display_name
            .map(|name| validation::required_name("display_name", &name, &mut violations));
        let time_zone = request.time_zone.and_then(|name| {
            let parsed = store::parse_time_zone(&name);
            violations.check("time_zone", "UNKNOWN_TIME_ZONE", parsed)
        });
        let currency = request.currency_code.and_then(|code| {
            let parsed = store::parse_currency(&code);
            violations.check("currency_code", "UNKNOWN_CURRENCY", parsed)
        });
        let country = request.country_code.and_then(|code| {
            let parsed = code.parse::<Country>();
            violations.check("country_code", "UNKNOWN_COUNTRY", parsed)
        });
        let telephone = request.telephone.and_then(|number| {
            let country = country.as_ref().unwrap_or(&store.country);
            let country = telephone::national_country(Some(country), &self.config.platform.country);
            let parsed = telephone::parse(&number, country.as_str());
            let parsed = violations.check("telephone", "INVALID_TELEPHONE", parsed);
            parsed.map(NewTelephone)
        });
        let colour = match request.colour {
            Some(0) => Some(NewColour(None)),
            Some(number) => {
                let colour = violations.check("colour", "UNKNOWN_COLOUR", Colour::new(number));
                colour.map(|colour| NewColour(Some(colour)))
            }
            None => None,
        };
        let logo = match request.logo {
            Some(content) if content.is_empty() => Some(NewLogo(None)),
            Some(content) => {
                let logo = violations.check("logo", "INVALID_LOGO", Logo::parse(content));
                logo.map(|logo| NewLogo(Some(logo)))
            }
            None => None,
        };
        let moves_address = request.default_address.as_ref().is_some_and(|draft| {
            let location = proto::AddressDraft {
                lat_lng: draft.lat_lng,
                ..proto::AddressDraft::default()
            };
            *draft == location
        });
        let default_address = match request.default_address {
            Some(draft) => {
                let mut store = store.clone();
                if let Some(country) = &country {
                    store.country = country.clone();
                }
                self.planner
                    .default_address(draft, Some(&store), &mut violations)
                    .await?
            }
            None => None,
        };
        let service_area = match request.service_area {
            Some(area) => self.new_service_area(area, &mut violations).await?,
            None => None,
        };
        let has_address = store.default_address.is_some()
            || default_address.is_some()
            || violations.has_violation_in("default_address");
        if let Some(NewServiceArea::Limited(ServiceArea::Circle(circle))) = &service_area
            && circle.center().is_none()
            && !has_address
        {
            violations.add(
                "service_area",
                "NO_CENTER",
                "is a distance from the store's address, which is not set: set the address too, or give a point with the distance (48.8554,2.3596,5km)",
            );
        }
        Error::check(violations)?;
        Ok(Changes {
            display_name,
            time_zone,
            currency,
            country,
            default_address,
            moves_address,
            service_area,
            refuses_unpriced: request.refuses_unpriced,
            has_tracking: request.has_tracking,
            telephone,
            colour,
            logo,
        })
    }

    /// Validates a service area; none if it is invalid.
    async fn new_service_area(
        &self,
        area: proto::ServiceArea,
        violations: &mut Violations,
    ) -> Result<Option<NewServiceArea>, Error> {
        use proto::service_area::Area;
        let area = match area.area {
            None => return Ok(Some(NewServiceArea::Unlimited)),
            Some(Area::Circle(circle)) => service_circle(circle, violations),
            Some(Area::Zone(name)) => {
                let (_, zones) = self.definitions().zones(CachePolicy::Bypass).await?;
                if zones.has(&name) {
                    Some(ServiceArea::Zone(name))
                } else {
                    violations.add(
                        "service_area.zone",
                        "UNKNOWN_ZONE",
                        format!("there is no zone {name:?}: apply it first"),
                    );
                    None
                }
            }
        };
        Ok(area.map(NewServiceArea::Limited))
    }
}

fn service_circle(circle: proto::Circle, violations: &mut Violations) -> Option<ServiceArea> {
    let center = circle.center.map(|center| {
        let center = LatLng::new(center.latitude, center.longitude);
        violations.check("service_area.circle.center", "INVALID_POINT", center)
    });
    let circle = Circle::new(center.flatten(), circle.radius_meters);
    violations
        .check("service_area.circle.radius_meters", "OUT_OF_RANGE", circle)
        .map(ServiceArea::Circle)
}
