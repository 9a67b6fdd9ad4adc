//! Parses a definition into a price list, or into all its mistakes.

use std::sync::{Arc, LazyLock};

use cel::Env;
use iso_currency::Currency;
use jiff::SignedDuration;

use super::{
    PriceList, Rule,
    check::ConditionReader,
    condition::Condition,
    definition::{Definition, RuleDefinition, Strategy},
    functions,
    sample_inputs::{SampleInput, sample_inputs},
    variables::Scope,
    warnings,
};
use crate::{
    definition::{Mistake, Mistakes, read_toml},
    money::TaxRate,
    task::TaskKind,
    visible::is_control,
    zone::Zones,
};

/// The maximum number of reported mistakes, so that the error response is short.
const MAX_MISTAKES: usize = 100;
const MAX_RULES: usize = 500;
/// Maximum length of a definition in bytes.
const MAX_LENGTH: usize = 1024 * 1024;
/// Maximum volume of a package, so that the total of a delivery is exact in a `double`.
const MAX_VOLUME: i64 = 1_000_000_000;
/// Maximum length of the name of a rule or of the type of a package, in characters.
const MAX_NAME_LENGTH: usize = 255;
/// Maximum length of a condition's text in the explanation of a price, in characters.
const MAX_CONDITION_TEXT_LENGTH: usize = 200;
const DEFAULT_QUOTE_EXPIRY: SignedDuration = SignedDuration::from_mins(15);
const MAX_QUOTE_EXPIRY: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Stack for parsing conditions at the maximum nesting. An unoptimised build needs several hundred
/// kilobytes per level, in total more than the default stack. Unused stack takes no memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Of all lists: it is larger than most of them. Macros are disabled, so that conditions cannot loop.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::default().with_stdlib()));

impl PriceList {
    /// Parses and checks a definition (TOML), and returns all its mistakes.
    pub fn parse(text: &str, zones: &Zones) -> Result<Self, Vec<Mistake>> {
        Self::parse_in(None, text, zones)
    }

    /// Like [`PriceList::parse`]; if the store's currency is given, another currency is a mistake.
    pub fn parse_in(
        store_currency: Option<Currency>,
        text: &str,
        zones: &Zones,
    ) -> Result<Self, Vec<Mistake>> {
        if text.len() > MAX_LENGTH {
            let message = format!(
                "a price list is at most {MAX_LENGTH} bytes long, this one {}",
                text.len()
            );
            return Err(vec![Mistake::at(text, 0..0, message)]);
        }
        let parsed = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let parsing = thread.spawn_scoped(scope, || read_list(text, store_currency, zones));
            parsing.map(|parsing| {
                parsing
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        parsed.unwrap_or_else(|error| {
            let message = format!("cannot check the conditions: {error}");
            Err(vec![Mistake::at(text, 0..0, message)])
        })
    }
}

fn read_list(
    text: &str,
    store_currency: Option<Currency>,
    zones: &Zones,
) -> Result<PriceList, Vec<Mistake>> {
    let definition: Definition = read_toml(text, MAX_MISTAKES)?;
    let (strategy, packages) = (definition.strategy, definition.packages);
    let mut mistakes = Mistakes::new(text, MAX_MISTAKES);
    let currency = mistakes.read(&definition.currency, |code| currency(code, store_currency));
    let tax_rate = mistakes.read(&definition.tax.rate, |rate| tax_rate(*rate));
    let quote_expiry = definition
        .quote_expiry
        .and_then(|text| mistakes.read(&text, |text| quote_expiry(text)))
        .unwrap_or(DEFAULT_QUOTE_EXPIRY);
    for (kind, package) in packages.iter().flatten() {
        mistakes.read(kind, |kind| check_name("package", kind));
        if !package
            .volume
            .is_none_or(|volume| (0..=MAX_VOLUME).contains(&volume))
        {
            let message = format!("a volume must be from 0 to {MAX_VOLUME}");
            mistakes.add(kind.span(), message);
        }
    }

    let env = &*ENVIRONMENT;
    let functions = functions::context(env, zones);
    let rules = {
        let samples = sample_inputs(packages.as_ref());
        let variables = samples.each_ref().map(SampleInput::variables);
        // Task rules have all variables of delivery rules too.
        let task = Some(TaskKind::Dropoff);
        let scopes = variables
            .each_ref()
            .map(|variables| Scope { variables, task });
        let reader = ConditionReader {
            env,
            zones,
            packages: packages.as_ref(),
            sample_contexts: &scopes.each_ref().map(|scope| scope.context(&functions)),
        };
        rules(&mut mistakes, definition.rule, strategy, &reader)
    };
    mistakes.into_result(
        currency
            .zip(tax_rate)
            .map(|(currency, tax_rate)| PriceList {
                currency,
                tax_rate,
                strategy,
                quote_expiry,
                warnings: warnings::of_rules(&rules, strategy),
                packages,
                rules,
                references_zones: text.contains("in_zone"),
                functions,
            }),
    )
}

fn currency(code: &str, store_currency: Option<Currency>) -> Result<Currency, String> {
    let currency = Currency::from_code(code)
        .ok_or_else(|| format!("{code:?} is not an ISO 4217 code such as \"EUR\""))?;
    match store_currency {
        Some(store) if store != currency => Err(format!(
            "the store's currency is {0}, not {code}: write the list in {0}, or change the store's \
             currency first",
            store.code(),
        )),
        _ => Ok(currency),
    }
}

fn tax_rate(rate: i64) -> Result<TaxRate, String> {
    TaxRate::from_basis_points(rate).ok_or_else(|| {
        format!("{rate} is not a tax rate: write 0 to 10000 basis points (2000 is 20 %)")
    })
}

fn quote_expiry(text: &str) -> Result<SignedDuration, String> {
    let quote_expiry: Option<SignedDuration> = text.parse().ok();
    quote_expiry
        .filter(|quote_expiry| quote_expiry.is_positive() && *quote_expiry <= MAX_QUOTE_EXPIRY)
        .ok_or_else(|| {
            format!(
                "{text:?} is not a duration in hours, minutes and seconds such as \"15 minutes\", \
                 at most \"168 hours\" (7 days)"
            )
        })
}

fn rules(
    mistakes: &mut Mistakes<'_>,
    definitions: Vec<RuleDefinition>,
    strategy: Strategy,
    reader: &ConditionReader<'_>,
) -> Vec<Rule> {
    if definitions.is_empty() {
        mistakes.add(0..0, "a price list needs at least one [[rule]]");
    }
    if let Some(rule) = definitions.get(MAX_RULES) {
        let message = format!(
            "a price list has at most {MAX_RULES} rules, this one {}",
            definitions.len()
        );
        mistakes.add(rule.name.span(), message);
        return Vec::new();
    }
    let rules = definitions.into_iter();
    rules
        .filter_map(|definition| rule(mistakes, definition, strategy, reader))
        .collect()
}

/// `None` if the condition has mistakes.
fn rule(
    mistakes: &mut Mistakes<'_>,
    definition: RuleDefinition,
    strategy: Strategy,
    reader: &ConditionReader<'_>,
) -> Option<Rule> {
    let RuleDefinition {
        name,
        when,
        target,
        price,
    } = definition;
    mistakes.read(&name, |name| check_name("rule", name));
    for message in price.get_ref().mistakes(strategy, reader.packages) {
        mistakes.add(price.span(), message);
    }
    let condition = Condition::parse(when.get_ref(), target, reader)
        .map_err(|found| {
            for mistake in found {
                mistakes.add_in_string(&when, mistake);
            }
        })
        .ok()?;
    Some(Rule {
        name: name.into_inner(),
        condition,
        condition_text: condition_text(when.get_ref()),
        target,
        charge: price.into_inner(),
    })
}

/// A condition on one line, truncated.
fn condition_text(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CONDITION_TEXT_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn check_name(kind: &str, name: &str) -> Result<(), String> {
    let is_valid = !name.trim().is_empty()
        && name.chars().count() <= MAX_NAME_LENGTH
        && !name.contains(is_control);
    is_valid.then_some(()).ok_or_else(|| {
        format!("a {kind} needs a name of 1 to {MAX_NAME_LENGTH} characters, without controls")
    })
}
