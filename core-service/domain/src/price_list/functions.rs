//! The functions that conditions may call, in addition to those of CEL.

use std::sync::Arc;

use cel::{
    Context, Env, ExecutionError, FunctionContext,
    common::{
        types::{CelDouble, CelMap, CelMapKey, CelString, CelTimestamp},
        value::Val,
    },
};

use super::variables;
use crate::{address::LatLng, zone::Zones};

const SECONDS_PER_HOUR: f64 = 3600.0;

/// The root context with the functions; the variables of a delivery are an inner scope. Functions
/// read their arguments in place: conversion to a CEL `Value` would copy a task.
pub(super) fn context(env: &Arc<Env>, zones: &Zones) -> Context<'static, 'static> {
    let mut context = Context::with_env(Arc::clone(env));
    let zones = zones.clone();
    let added = [
        context.add_function("count", |call: &FunctionContext<'_, '_>| count(call)),
        context.add_function("in_zone", move |call: &FunctionContext<'_, '_>| {
            in_zone(call, &zones)
        }),
        context.add_function("hours_until", |call: &FunctionContext<'_, '_>| {
            hours_until(call)
        }),
        context.add_function("slot_length", |call: &FunctionContext<'_, '_>| {
            slot_length(call)
        }),
        context.add_function("ceil", |number: f64| number.ceil()),
        context.add_function("floor", |number: f64| number.floor()),
    ];
    debug_assert!(
        added.iter().all(Result::is_ok),
        "duplicate function name: {added:?}"
    );
    context
}

fn count(call: &FunctionContext<'_, '_>) -> Result<f64, ExecutionError> {
    let packages = argument(call, 0).and_then(as_map);
    let (packages, kind) = packages
        .zip(text_argument(call, 1))
        .ok_or_else(|| call.error("the arguments must be packages and the name of a package"))?;
    match packages.get(&CelMapKey::from(kind)) {
        None => Ok(0.0),
        Some(count) => {
            as_double(&**count).ok_or_else(|| call.error("the first argument is not packages"))
        }
    }
}

fn in_zone(call: &FunctionContext<'_, '_>, zones: &Zones) -> Result<bool, ExecutionError> {
    let point = argument(call, 0)
        .and_then(point)
        .ok_or_else(|| call.error("the first argument is not an address"))?;
    text_argument(call, 1)
        .and_then(|name| zones.contains(name, point))
        .ok_or_else(|| call.error("the zone does not exist"))
}

fn hours_until(call: &FunctionContext<'_, '_>) -> Result<f64, ExecutionError> {
    let now = call.ptx.get_variable(variables::NOW);
    now.and_then(|now| unix_seconds(&*now))
        .zip(task_unix_seconds(call, "before"))
        .map(|(now, before)| hours(now, before))
        .ok_or_else(|| call.error("the argument is not a task"))
}

fn slot_length(call: &FunctionContext<'_, '_>) -> Result<f64, ExecutionError> {
    task_unix_seconds(call, "after")
        .zip(task_unix_seconds(call, "before"))
        .map(|(after, before)| hours(after, before))
        .ok_or_else(|| call.error("the argument is not a task"))
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 seconds")]
fn hours(from: i64, to: i64) -> f64 {
    (to - from) as f64 / SECONDS_PER_HOUR
}

fn argument<'a>(call: &'a FunctionContext<'_, '_>, index: usize) -> Option<&'a dyn Val> {
    call.args.get(index).map(|argument| &**argument)
}

fn text_argument<'a>(call: &'a FunctionContext<'_, '_>, index: usize) -> Option<&'a str> {
    let text: &CelString<'_> = argument(call, index)?.downcast_ref()?;
    Some(text.inner())
}

fn task_unix_seconds(call: &FunctionContext<'_, '_>, name: &str) -> Option<i64> {
    unix_seconds(field(argument(call, 0)?, name)?)
}

fn unix_seconds(instant: &dyn Val) -> Option<i64> {
    let instant: &CelTimestamp = instant.downcast_ref()?;
    Some(instant.inner().timestamp())
}

fn point(address: &dyn Val) -> Option<LatLng> {
    let degrees = |name| as_double(field(address, name)?);
    LatLng::new(degrees("latitude")?, degrees("longitude")?).ok()
}

fn as_double(number: &dyn Val) -> Option<f64> {
    number
        .downcast_ref::<CelDouble>()
        .map(|number| *number.inner())
}

fn field<'a>(owner: &'a dyn Val, name: &'a str) -> Option<&'a dyn Val> {
    as_map(owner)?
        .get(&CelMapKey::from(name))
        .map(|value| &**value)
}

fn as_map(value: &dyn Val) -> Option<&CelMap<'_>> {
    value.downcast_ref()
}
