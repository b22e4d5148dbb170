//! Key names: the lock key is `prefix + name`, raw; all else is a helper key beside it.
//!
//! Helper keys are `prefix~fl1:<kind>:{<tag>}:<name>` (a tombstone has the owner id in place of
//! the name). Names that begin with `~fl` are refused, so no helper can be the key of a lock. The
//! tag makes a helper hash to the cluster slot of its lock key, whatever braces the name has.

use crate::error::{Error, Result};
use crate::name::Name;
use crate::owner::{ClientId, OwnerId};
use crate::process::Constant;

pub(super) const SLOTS: u16 = 16_384;
/// The `1` is the version of the layout.
const HELPER: &str = "~fl1:";
/// What helper keys of every version begin with.
const RESERVED: &str = "~fl";

/// What stands before every name, checked.
#[derive(Clone, Debug)]
pub(super) struct Prefix(String);

impl Prefix {
    pub(super) fn new(prefix: &str) -> Result<Self> {
        let braces = prefix.bytes().filter(|b| matches!(b, b'{' | b'}')).count();
        let hash_tag = braces == 2 && hashed_part(prefix.as_bytes()).len() < prefix.len();
        if prefix.contains('\0') || (braces > 0 && !hash_tag) {
            return Err(Error::invalid(format!(
                "prefix {prefix:?} is not allowed; allowed is text without NUL that has no braces, or exactly one cluster hash tag such as {{app}}"
            )));
        }
        Ok(Prefix(prefix.to_owned()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn lock(&self, name: &Name) -> String {
        [&self.0, name.as_str()].concat()
    }

    /// All keys of one name.
    pub(super) fn keys(&self, name: &Name) -> Keys<'_> {
        let lock = self.lock(name);
        let slot = slot(lock.as_bytes());
        Keys { prefix: &self.0, name_at: self.0.len(), tag: tag(slot), slot, lock }
    }

    /// What the channel of every client begins with.
    pub(super) fn channels(&self) -> String {
        [&self.0, HELPER, "w:"].concat()
    }

    pub(super) fn channel(&self, client: ClientId) -> String {
        format!("{}{client}", self.channels())
    }

    /// A key that nothing is ever stored at, to try rights on.
    pub(super) fn nowhere(&self) -> String {
        [&self.0, HELPER, "n"].concat()
    }

    /// One in this slot, or none if this prefix keeps all keys in one slot.
    pub(super) fn nowhere_in(&self, slot: u16) -> Option<String> {
        (!self.0.contains('{')).then(|| [&self.0, HELPER, "n:{", &tag(slot), "}"].concat())
    }

    /// Matches every key that begins with this prefix and no other (for SCAN).
    pub(super) fn glob(&self) -> String {
        let mut glob = String::with_capacity(self.0.len() + 1);
        for c in self.0.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '\\') {
                glob.push('\\');
            }
            glob.push(c);
        }
        glob.push('*');
        glob
    }

    /// Which name a key is about: that of a lock, or of a queue. None for what is no key of ours.
    pub(super) fn name_of(&self, key: &[u8]) -> Option<Name> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.0)?;
        if !rest.starts_with(RESERVED) {
            return Name::new(rest).ok();
        }
        let (_tag, name) = rest.strip_prefix(HELPER)?.strip_prefix("q:{")?.split_once("}:")?;
        Name::new(name).ok()
    }
}

/// The keys of one name, all in the cluster slot of its lock key.
pub(super) struct Keys<'a> {
    prefix: &'a str,
    /// Where the name begins in `lock`.
    name_at: usize,
    tag: String,
    /// The cluster slot of all of them.
    pub(super) slot: u16,
    /// The lock itself.
    pub(super) lock: String,
}

impl Keys<'_> {
    pub(super) fn queue(&self) -> String {
        self.helper("q:{", self.name())
    }

    pub(super) fn signs_of_life(&self) -> String {
        self.helper("s:{", self.name())
    }

    pub(super) fn record(&self) -> String {
        self.helper("t:{", self.name())
    }

    pub(super) fn tombstone(&self, owner: OwnerId) -> String {
        self.helper("x:{", &owner.to_string())
    }

    fn name(&self) -> &str {
        &self.lock[self.name_at..]
    }

    fn helper(&self, kind: &str, rest: &str) -> String {
        [self.prefix, HELPER, kind, &self.tag, "}:", rest].concat()
    }
}

/// The cluster slot of a key.
pub(super) fn slot(key: &[u8]) -> u16 {
    crc16(hashed_part(key)) % SLOTS
}

/// The part of a key that decides its slot: what stands between the first `{` and the next `}`
/// after it, if that is not empty, else the whole key.
fn hashed_part(key: &[u8]) -> &[u8] {
    let inside = key.iter().position(|&b| b == b'{').map(|open| &key[open + 1..]);
    match inside.and_then(|rest| Some(&rest[..rest.iter().position(|&b| b == b'}')?])) {
        Some(tag) if !tag.is_empty() => tag,
        _ => key,
    }
}

/// The hash tag of a slot.
fn tag(slot: u16) -> String {
    base36(TAGS[usize::from(slot)])
}

/// For each slot the smallest number whose base-36 text hashes to it.
///
/// This is part of the layout: every version must derive the same tags. The text of a number is
/// the usual one, digits `0`–`9` then `a`–`z`, most significant first, no leading zeros. Making
/// the table takes a few milliseconds, once per process.
static TAGS: Constant<Box<[u32]>> = Constant::new(|| {
    const NONE: u32 = u32::MAX;
    let mut tags = vec![NONE; usize::from(SLOTS)].into_boxed_slice();
    let mut missing = tags.len();
    let mut number = 0;
    while missing > 0 {
        let place = &mut tags[usize::from(slot(base36(number).as_bytes()))];
        if *place == NONE {
            *place = number;
            missing -= 1;
        }
        number += 1;
    }
    tags
});

fn base36(mut number: u32) -> String {
    let mut text = Vec::with_capacity(4);
    loop {
        text.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return text.iter().rev().collect();
        }
    }
}

/// CRC16 as Redis Cluster uses it (XMODEM: polynomial 0x1021, start 0).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| (crc << 8) ^ CRC16[usize::from((crc >> 8) ^ u16::from(byte))])
}

static CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};
