//! What crosses the border: texts and times on the way in, texts and numbers on the way out.

use std::time::Duration;

use fencelock::{Error, ErrorKind, LockInfo, Result};
use fencelock_shared::duration;
use jni::Env;
use jni::objects::{JByteArray, JLongArray, JObjectArray};
use jni::sys::{jint, jlong};

pub(crate) fn text(env: &Env<'_>, bytes: &JByteArray<'_>, what: &str) -> Result<String> {
    let text = maybe_text(env, bytes)?;
    text.ok_or_else(|| Error::new(ErrorKind::InvalidArgument, format!("no {what} was given")))
}

/// [`text`]; `None` where Java has null.
pub(crate) fn maybe_text(env: &Env<'_>, bytes: &JByteArray<'_>) -> Result<Option<String>> {
    if bytes.is_null() {
        return Ok(None);
    }
    let bytes = env.convert_byte_array(bytes).map_err(fault)?;
    String::from_utf8(bytes).map(Some).map_err(fault)
}

/// The element of an array of texts.
pub(crate) fn text_of<'l>(
    env: &mut Env<'l>,
    texts: &JObjectArray<'l, JByteArray<'l>>,
    index: usize,
) -> Result<Option<String>> {
    let bytes = texts.get_element(env, index).map_err(fault)?;
    maybe_text(env, &bytes)
}

/// The seconds and nanoseconds of a Java `Duration`; nanoseconds of -1 mean that there is none.
pub(crate) fn time(
    seconds: jlong,
    nanos: jint,
    what: &str,
    allowed: &str,
) -> Result<Option<Duration>> {
    if nanos < 0 {
        return Ok(None);
    }
    if seconds < 0 {
        // Refuses it as it does in other languages, and says by how much it is wrong.
        let millis = seconds.saturating_mul(1000).saturating_add(jlong::from(nanos) / 1_000_000);
        return duration::from_millis(millis.min(-1), what, allowed).map(Some);
    }
    Ok(Some(Duration::new(seconds as u64, nanos as u32)))
}

/// The times of an array, two numbers each.
pub(crate) fn times<const N: usize>(
    env: &Env<'_>,
    array: &JLongArray<'_>,
    names: [(&str, &str); N],
) -> Result<[Option<Duration>; N]> {
    let mut found = [None; N];
    for (index, (what, allowed)) in names.into_iter().enumerate() {
        let mut pair = [0; 2];
        array.get_region(env, index as i32 * 2, &mut pair).map_err(fault)?;
        found[index] = time(pair[0], pair[1] as jint, what, allowed)?;
    }
    Ok(found)
}

fn fault(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Internal, "arguments did not cross from Java").with_source(error)
}

/// Writes what `Reader` in Java reads.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn infos(infos: Vec<LockInfo>) -> Vec<u8> {
        let mut writer = Writer::default();
        for info in infos {
            writer.info(&info);
        }
        writer.finish()
    }

    /// The fields in the order of the Java record.
    fn info(&mut self, info: &LockInfo) {
        self.text(&info.name);
        self.text(info.state.as_str());
        self.maybe_text(info.owner.as_deref());
        self.maybe_number(info.token.map(|token| token.get() as i64));
        self.maybe_number(info.held.map(duration::to_millis));
        self.maybe_number(info.ttl_left.map(duration::to_millis));
        self.maybe_text(info.metadata.as_deref());
        self.number(info.queue.len() as i64);
        for waiter in &info.queue {
            self.text(&waiter.owner);
            self.number(duration::to_millis(waiter.waiting));
            self.maybe_text(waiter.metadata.as_deref());
        }
    }

    fn number(&mut self, number: i64) {
        self.0.extend(number.to_be_bytes());
    }

    fn maybe_number(&mut self, number: Option<i64>) {
        self.0.push(number.is_some().into());
        self.number(number.unwrap_or(0));
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.maybe_text(Some(text));
    }

    pub(crate) fn maybe_text(&mut self, text: Option<&str>) {
        let length = text.map_or(-1, |text| text.len() as i32);
        self.0.extend(length.to_be_bytes());
        self.0.extend(text.unwrap_or_default().as_bytes());
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}
