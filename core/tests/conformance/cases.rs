//! Reads the case files and expands rows and `for_each` to plain steps.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// A step, a row or a case, as it stands in the file.
pub(crate) type Object = Map<String, Value>;

/// One case, or one row of a case that has rows.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// `file.case` or `file.case.row`.
    pub(crate) name: String,
    pub(crate) needs: Vec<String>,
    /// Those on which it makes sense; `None` = all.
    pub(crate) backends: Option<Vec<String>>,
    raw: Vec<Value>,
    tables: Object,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/conformance"))
}

/// All cases of all files. A file that is not as the README says is a bug of its author: panics.
pub(crate) fn read() -> Vec<Case> {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .expect("the folder of the cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let topic = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let file: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{topic}: {e}"));
        let found = read_file(&topic, &file).unwrap_or_else(|e| panic!("{topic}: {e}"));
        assert!(!found.is_empty(), "{topic} has no cases");
        cases.extend(found);
    }
    cases
}

fn read_file(topic: &str, file: &Value) -> Result<Vec<Case>, String> {
    let file = object(file)?;
    only(file, &["about", "tables", "cases"])?;
    text(file, "about")?;
    let tables = file.get("tables").map(object).transpose()?.cloned().unwrap_or_default();
    let mut cases = Vec::new();
    for case in array(file, "cases")? {
        let case = object(case)?;
        only(case, &["id", "about", "rows", "needs", "backends", "steps"])?;
        let name = format!("{topic}.{}", text(case, "id")?);
        let plain = Case {
            needs: texts(case, "needs")?.unwrap_or_default(),
            backends: texts(case, "backends")?,
            raw: array(case, "steps")?.clone(),
            tables: tables.clone(),
            name,
        };
        let Some(table) = case.get("rows") else {
            cases.push(plain);
            continue;
        };
        for row in array(&tables, table.as_str().ok_or("rows: not a text")?)? {
            let row = object(row)?;
            let mut case = plain.clone();
            case.name = format!("{}.{}", plain.name, text(row, "id")?);
            case.needs.extend(texts(row, "needs")?.unwrap_or_default());
            case.raw = plain.raw.iter().map(|s| fill(s, row)).collect::<Result<_, _>>()?;
            cases.push(case);
        }
    }
    Ok(cases)
}

impl Case {
    /// Its plain steps, without the rows inside it for which `lacking` finds something.
    pub(crate) fn steps(
        &self,
        lacking: impl Fn(&[String]) -> Vec<&str>,
    ) -> Result<Vec<Object>, String> {
        let mut steps = Vec::new();
        for step in &self.raw {
            let step = object(step)?;
            if text(step, "do")? != "for_each" {
                steps.push(step.clone());
                continue;
            }
            only(step, &["do", "row", "steps"])?;
            for row in array(&self.tables, text(step, "row")?)? {
                let row = object(row)?;
                if !lacking(&texts(row, "needs")?.unwrap_or_default()).is_empty() {
                    continue;
                }
                for inner in array(step, "steps")? {
                    steps.push(object(&fill(inner, row)?)?.clone());
                }
            }
        }
        Ok(steps)
    }
}

/// Replaces `"$key"` by the row's value of that key.
fn fill(value: &Value, row: &Object) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(key) => row.get(key).ok_or_else(|| format!("no {key} in {row:?}"))?.clone(),
            None => value.clone(),
        },
        Value::Array(list) => list.iter().map(|v| fill(v, row)).collect::<Result<_, _>>()?,
        Value::Object(map) => Value::Object(
            map.iter()
                // A `for_each` inside has rows of its own.
                .map(|(k, v)| Ok((k.clone(), if k == "steps" { v.clone() } else { fill(v, row)? })))
                .collect::<Result<_, String>>()?,
        ),
        _ => value.clone(),
    })
}

pub(crate) fn object(value: &Value) -> Result<&Object, String> {
    value.as_object().ok_or_else(|| format!("not an object: {value}"))
}

pub(crate) fn array<'a>(map: &'a Object, key: &str) -> Result<&'a Vec<Value>, String> {
    map.get(key).and_then(Value::as_array).ok_or_else(|| format!("no list {key}"))
}

/// The plain text of a key.
pub(crate) fn text<'a>(map: &'a Object, key: &str) -> Result<&'a str, String> {
    map.get(key).and_then(Value::as_str).ok_or_else(|| format!("no text {key}"))
}

fn texts(map: &Object, key: &str) -> Result<Option<Vec<String>>, String> {
    let Some(value) = map.get(key) else { return Ok(None) };
    let list = value.as_array().ok_or_else(|| format!("{key}: not a list"))?;
    let texts = list.iter().map(|v| v.as_str().map(str::to_owned)).collect::<Option<_>>();
    texts.map(Some).ok_or_else(|| format!("{key}: not texts"))
}

/// An error if there is any other key: a typing error must not pass.
pub(crate) fn only(map: &Object, allowed: &[&str]) -> Result<(), String> {
    match map.keys().find(|key| !allowed.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown key {key:?}; known are {allowed:?}")),
        None => Ok(()),
    }
}
