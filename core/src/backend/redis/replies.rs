//! What the scripts answer. `None` = an answer that our scripts do not give.

use std::time::Duration;

use redis::Value;

use crate::backend::{Look, Queued, Renewed, Verdict};
use crate::error::{Error, ErrorKind};
use crate::period::Term;
use crate::token::Token;

/// What came of a look.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Contend {
    Look(Look),
    /// Granted, and not only now: a message about it should have come before.
    GrantedBefore(Token),
    NewerLayout,
}

pub(super) fn contend(reply: &Value) -> Option<Contend> {
    let Value::Array(fields) = reply else {
        return None;
    };
    let (what, fields) = fields.split_first()?;
    let look = match (bytes(what)?, fields) {
        (b"granted", [token, before]) => {
            let token = Token::new(unsigned(token)?)?;
            if flag(before)? {
                return Some(Contend::GrantedBefore(token));
            }
            Look::Granted(token, Term::FullTtl)
        }
        (b"queued", [remaining, floor, first, foreign]) => Look::Queued(Queued {
            remaining: remaining_time(remaining)?,
            floor: unsigned(floor)?,
            first: flag(first)?,
            foreign: flag(foreign)?,
        }),
        (b"busy", []) => Look::Busy,
        (b"gone", []) => Look::Gone,
        (b"newer", []) => return Some(Contend::NewerLayout),
        _ => return None,
    };
    Some(Contend::Look(look))
}

pub(super) fn verdict(reply: &Value) -> Option<Verdict> {
    match bytes(reply)? {
        b"released" => Some(Verdict::Released),
        b"lost" => Some(Verdict::Lost),
        b"unknown" => Some(Verdict::Unknown),
        _ => None,
    }
}

pub(super) fn renewed(reply: &Value) -> Option<Renewed> {
    flag(reply).map(|ours| if ours { Renewed::Ours(Term::FullTtl) } else { Renewed::NotOurs })
}

pub(super) fn newer_layout() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "a newer version of fencelock, with another layout, holds it; update this one",
    )
}

/// What PTTL says: -1 = for ever, -2 = no such key.
pub(super) fn remaining_time(reply: &Value) -> Option<Option<Duration>> {
    match reply {
        Value::Int(-1) => Some(None),
        Value::Int(-2) => Some(Some(Duration::ZERO)),
        other => Some(Some(Duration::from_millis(unsigned(other)?))),
    }
}

pub(super) fn bytes(reply: &Value) -> Option<&[u8]> {
    match reply {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.as_bytes()),
        _ => None,
    }
}

pub(super) fn unsigned(reply: &Value) -> Option<u64> {
    match reply {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn flag(reply: &Value) -> Option<bool> {
    match reply {
        Value::Int(0) => Some(false),
        Value::Int(1) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(what: &str, numbers: &[i64]) -> Value {
        let mut fields = vec![Value::BulkString(what.into())];
        fields.extend(numbers.iter().map(|&n| Value::Int(n)));
        Value::Array(fields)
    }

    #[test]
    fn g1_answers_of_an_unknown_shape_are_no_grants() {
        let token = Token::new(7).unwrap();
        let granted = contend(&reply("granted", &[7, 0]));
        assert_eq!(granted, Some(Contend::Look(Look::Granted(token, Term::FullTtl))));
        assert_eq!(contend(&reply("granted", &[7, 1])), Some(Contend::GrantedBefore(token)));
        for (what, numbers) in [
            ("granted", &[0, 0][..]),
            ("granted", &[-1, 0]),
            ("granted", &[7]),
            ("queued", &[1, 2, 3]),
            ("queued", &[1, 2, 0, 2]),
            ("busy", &[1]),
            ("", &[]),
        ] {
            assert_eq!(contend(&reply(what, numbers)), None, "{what} {numbers:?}");
        }
        assert_eq!(contend(&Value::Nil), None);
        assert_eq!(verdict(&Value::Okay), None);
        assert_eq!(renewed(&Value::Int(2)), None);
    }

    #[test]
    fn g4_a_holder_without_a_limit_is_told_from_one_whose_time_is_over() {
        let queued = |pttl| match contend(&reply("queued", &[pttl, 9, 1, 0])) {
            Some(Contend::Look(Look::Queued(queued))) => queued.remaining,
            other => panic!("{other:?}"),
        };
        assert_eq!(queued(-1), None);
        assert_eq!(queued(-2), Some(Duration::ZERO));
        assert_eq!(queued(1500), Some(Duration::from_millis(1500)));
    }
}
