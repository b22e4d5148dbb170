//! Texts and times of the cases as Rust's.

use std::time::Duration;

use serde_json::Value;

use crate::cases::Object;

/// A text, also a long one.
pub(crate) fn text(value: &Value) -> Result<String, String> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let part = |key| value.get(key).and_then(Value::as_str);
    match (part("repeat"), value.get("times").and_then(Value::as_u64)) {
        (Some(part_), Some(times)) => {
            Ok(part_.repeat(times as usize) + part("then").unwrap_or_default())
        }
        _ => Err(format!("Rust has no such text: {value}")),
    }
}

pub(crate) fn text_of(step: &Object, key: &str) -> Result<String, String> {
    text(step.get(key).ok_or_else(|| format!("no {key}"))?)
}

pub(crate) fn maybe_text_of(step: &Object, key: &str) -> Result<Option<String>, String> {
    step.get(key).map(text).transpose()
}

/// All texts of a list; none if there is no list.
pub(crate) fn texts_of(step: &Object, key: &str) -> Result<Vec<String>, String> {
    match step.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(text).collect(),
        Some(other) => Err(format!("{key} is no list: {other}")),
    }
}

/// Milliseconds as a duration.
pub(crate) fn time(value: &Value) -> Result<Duration, String> {
    if let Some(whole) = value.as_u64() {
        return Ok(Duration::from_millis(whole));
    }
    match value.as_f64() {
        Some(millis) if millis >= 0.0 => Ok(Duration::from_nanos((millis * 1e6).round() as u64)),
        None if value == "max" => Ok(Duration::MAX),
        _ => Err(format!("Rust has no such time: {value}")),
    }
}

pub(crate) fn time_of(step: &Object, key: &str) -> Result<Duration, String> {
    time(step.get(key).ok_or_else(|| format!("no {key}"))?)
}

pub(crate) fn maybe_time_of(step: &Object, key: &str) -> Result<Option<Duration>, String> {
    step.get(key).map(time).transpose()
}

pub(crate) fn flag_of(step: &Object, key: &str) -> Result<bool, String> {
    step.get(key).and_then(Value::as_bool).ok_or_else(|| format!("no true or false for {key}"))
}

/// Least and most, both inclusive.
pub(crate) fn within(what: &str, found: Duration, bounds: &Value) -> Result<(), String> {
    let [least, most] = bounds.as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(format!("{what}: no pair of bounds: {bounds}"));
    };
    if found < time(least)? || found > time(most)? {
        return Err(format!("{what} is {found:?}, not {least} to {most} ms"));
    }
    Ok(())
}
