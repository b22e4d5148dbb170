//! The number at the end of a node's name, and whose turn that makes it.

/// Where a contender stands among the children of a lock's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// Nobody is before it.
    First,
    /// Behind this child, the last of those before it. `alone`: there is no other.
    Behind { predecessor: String, alone: bool },
    /// It is not among them.
    Missing,
}

/// The signed 32-bit counter that the server appended to a name; none if the name is no
/// contender's.
///
/// After 2^31 - 1 the counter goes on at -2^31. A minus is part of the number only where it cannot
/// be the end of the name's own prefix, as in `lock-0000000007`.
pub(super) fn sequence(name: &str) -> Option<i32> {
    let bytes = name.as_bytes();
    let (prefix, last) = bytes.split_at(bytes.len().checked_sub(10)?);
    let stands_alone = |before: Option<&u8>| {
        before.is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric())
    };
    if last.iter().all(u8::is_ascii_digit) {
        let value = number(last);
        let is_negative = match prefix.split_last() {
            Some((b'-', before)) => stands_alone(before.last()) || value > i64::from(i32::MAX),
            _ => false,
        };
        return i32::try_from(if is_negative { -value } else { value }).ok();
    }
    let digits = last.strip_prefix(b"-")?;
    if digits.iter().all(u8::is_ascii_digit) && stands_alone(prefix.last()) {
        return i32::try_from(-number(digits)).ok();
    }
    None
}

fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'))
}

/// How far `other` is before `mine`; none if it is not. The counter wraps, so what counts is the
/// shorter way round.
fn distance(mine: i32, other: i32) -> Option<i32> {
    let distance = mine.wrapping_sub(other);
    (distance >= 0).then_some(distance)
}

/// Where the child `mine` stands. Children that are no contenders do not count. Equal numbers, of
/// a parent that somebody made anew by hand, go by name.
pub(super) fn rank(mine: &str, children: &[String]) -> Rank {
    let Some(number) = sequence(mine).filter(|_| children.iter().any(|child| child == mine)) else {
        return Rank::Missing;
    };
    let mut before = 0;
    let mut nearest: Option<(i32, &String)> = None;
    for child in children {
        let Some(distance) = sequence(child).and_then(|other| distance(number, other)) else {
            continue;
        };
        if distance == 0 && child.as_str() >= mine {
            continue;
        }
        before += 1;
        if nearest.is_none_or(|(d, name)| distance < d || (distance == d && child > name)) {
            nearest = Some((distance, child));
        }
    }
    match nearest {
        None => Rank::First,
        Some((_, child)) => Rank::Behind { predecessor: child.clone(), alone: before == 1 },
    }
}

/// The contenders among the children, in the order in which they are served.
pub(super) fn in_order(children: Vec<String>) -> Vec<String> {
    let mut contenders: Vec<(i32, String)> =
        children.into_iter().filter_map(|child| Some((sequence(&child)?, child))).collect();
    let Some(&(reference, _)) = contenders.first() else {
        return Vec::new();
    };
    contenders.sort_by(|(a, name_a), (b, name_b)| {
        let order = a.wrapping_sub(reference).cmp(&b.wrapping_sub(reference));
        order.then_with(|| name_a.cmp(name_b))
    });
    contenders.into_iter().map(|(_, child)| child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn behind(predecessor: &str, alone: bool) -> Rank {
        Rank::Behind { predecessor: predecessor.to_owned(), alone }
    }

    #[test]
    fn g5_the_sequence_is_what_the_server_appended() {
        for (name, expected) in [
            ("_c_0123456789abcdef0123456789abcdef-lock-0000000007", Some(7)),
            ("0123456789abcdef0123456789abcdef__lock__0000000007", Some(7)),
            ("0000000007", Some(7)),
            ("lock-0000000007", Some(7)),
            ("lock-2147483647", Some(i32::MAX)),
            // After the wrap.
            ("-2147483648", Some(i32::MIN)),
            ("lock--2147483648", Some(i32::MIN)),
            ("lock-2147483648", Some(i32::MIN)),
            ("x__lock__-2147483647", Some(i32::MIN + 1)),
            ("-000000001", Some(-1)),
            ("lock--000000001", Some(-1)),
            ("x__lock__-000000001", Some(-1)),
            ("x__lock__-1234567890", Some(-1_234_567_890)),
            ("lock-1234567890", Some(1_234_567_890)),
            // No contenders.
            ("foo", None),
            ("x-1", None),
            ("", None),
            ("-", None),
            ("lock-000000001", None),
            ("lock-9999999999", None),
            ("lock2147483648", None),
            ("0000000007x", None),
            ("é-0000000007", Some(7)),
            ("ééééé", None),
        ] {
            assert_eq!(sequence(name), expected, "{name}");
        }
    }

    #[test]
    fn g5_turns_go_by_number_and_not_by_name() {
        let all = children(&["_c_f-lock-0000000003", "a__lock__0000000001", "0000000002", "foo"]);
        assert_eq!(rank("a__lock__0000000001", &all), Rank::First);
        assert_eq!(rank("0000000002", &all), behind("a__lock__0000000001", true));
        assert_eq!(rank("_c_f-lock-0000000003", &all), behind("0000000002", false));
        assert_eq!(rank("_c_f-lock-0000000004", &all), Rank::Missing);
        assert_eq!(rank("foo", &all), Rank::Missing);
    }

    #[test]
    fn g5_turns_go_on_over_the_wrap_of_the_counter() {
        let all = children(&["lock--2147483648", "lock-2147483647", "lock-2147483646"]);
        assert_eq!(rank("lock-2147483646", &all), Rank::First);
        assert_eq!(rank("lock-2147483647", &all), behind("lock-2147483646", true));
        assert_eq!(rank("lock--2147483648", &all), behind("lock-2147483647", false));
        assert_eq!(in_order(all), ["lock-2147483646", "lock-2147483647", "lock--2147483648"]);
    }

    #[test]
    fn g5_equal_numbers_go_by_name() {
        let all = children(&["b-0000000001", "a-0000000001"]);
        assert_eq!(rank("a-0000000001", &all), Rank::First);
        assert_eq!(rank("b-0000000001", &all), behind("a-0000000001", true));
    }

    #[test]
    fn g5_children_that_are_no_contenders_do_not_count() {
        let all = children(&["foo", "x-1", "~fl-beat", "a-0000000001"]);
        assert_eq!(rank("a-0000000001", &all), Rank::First);
        assert_eq!(in_order(all), ["a-0000000001"]);
        assert!(in_order(children(&["foo"])).is_empty());
    }
}
