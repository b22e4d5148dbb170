//! Where keys are: one slot for all keys of a name, no two alike.

use std::collections::HashMap;

use super::super::keys::{Prefix, slot};
use super::*;
use crate::ErrorKind;

/// 1,849 names that are hard on a layout: all texts of up to three of these parts, and the known
/// difficult ones.
pub(super) fn hard_names() -> Vec<Name> {
    const PARTS: [&str; 11] = ["a", "{", "}", "x", ":", "q", "~", "\u{1}", "🔒", "\n", "é"];
    let mut names: Vec<String> = ["{x}", "a{b", "a}b", "{}x", "x}{y", "{}{z}", "}{", "{{x}}"]
        .iter()
        .map(|name| name.to_string())
        .collect();
    for a in PARTS {
        names.push(a.to_owned());
        for b in PARTS {
            names.push(format!("{a}{b}"));
            names.extend(PARTS.iter().map(|c| format!("{a}{b}{c}")));
        }
    }
    let random = |n: u64| {
        // Longer ones, from a fixed sequence.
        let mut state = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (0..4 + n % 9)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                PARTS[(state >> 33) as usize % PARTS.len()]
            })
            .collect::<String>()
    };
    names.sort();
    names.dedup();
    let mut n = 0;
    while names.len() < 1_849 {
        let name = random(n);
        n += 1;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.iter().map(|name| Name::new(name).unwrap()).collect()
}

#[test]
fn g1_all_keys_of_a_name_share_a_slot_and_no_two_are_alike() {
    let names = hard_names();
    assert_eq!(names.len(), 1_849);
    for prefix in ["", "fencelock:", "app{7}:"] {
        let prefix = Prefix::new(prefix).unwrap();
        let mut seen = HashMap::new();
        for name in &names {
            let keys = prefix.keys(name);
            let owner = OwnerId::random();
            let helpers =
                [keys.queue(), keys.signs_of_life(), keys.record(), keys.tombstone(owner)];
            for key in helpers.iter().chain([&keys.lock]) {
                assert_eq!(slot(key.as_bytes()), slot(keys.lock.as_bytes()), "{key:?}");
                assert_eq!(seen.insert(key.clone(), name.clone()), None, "{key:?}");
            }
            assert_eq!(prefix.name_of(keys.lock.as_bytes()).as_ref(), Some(name));
            assert_eq!(prefix.name_of(helpers[0].as_bytes()).as_ref(), Some(name));
            for helper in &helpers[1..] {
                assert_eq!(prefix.name_of(helper.as_bytes()), None);
            }
        }
    }
}

#[test]
fn g1_the_layout_of_keys_is_fixed() {
    // Other versions must find the same keys: these may never change.
    let prefix = Prefix::new("fencelock:").unwrap();
    let keys = prefix.keys(&Name::new("orders/42").unwrap());
    let owner: OwnerId = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
    let tag = TAG_OF_ORDERS_42;
    assert_eq!(keys.lock, "fencelock:orders/42");
    assert_eq!(keys.queue(), format!("fencelock:~fl1:q:{{{tag}}}:orders/42"));
    assert_eq!(keys.signs_of_life(), format!("fencelock:~fl1:s:{{{tag}}}:orders/42"));
    assert_eq!(keys.record(), format!("fencelock:~fl1:t:{{{tag}}}:orders/42"));
    assert_eq!(
        keys.tombstone(owner),
        format!("fencelock:~fl1:x:{{{tag}}}:000102030405060708090a0b0c0d0e0f")
    );
    assert_eq!(prefix.channels(), "fencelock:~fl1:w:");
}

const TAG_OF_ORDERS_42: &str = "1u5";

#[test]
fn g1_slots_are_those_of_redis_cluster() {
    // From the cluster specification, and from CLUSTER KEYSLOT.
    for (key, expected) in [
        ("123456789", 0x31C3),
        ("foo", 12_182),
        ("{user1000}.following", 3_443),
        ("foo{}{bar}", 8_363),
        ("foo{{bar}}zap", 4_015),
        ("foo{bar}{zap}", 5_061),
        ("", 0),
    ] {
        assert_eq!(slot(key.as_bytes()), expected, "{key}");
    }
}

#[test]
fn g10_prefixes_are_checked() {
    for prefix in ["", "a", "fencelock:", "{app}", "x{app}:", "~fl1:", "*", "é\n"] {
        assert!(Prefix::new(prefix).is_ok(), "{prefix:?}");
    }
    for prefix in ["{", "}", "{}", "}{", "a}b{c", "{a}{b}", "{a}}", "{{a}", "{{a}}", "\0", "a\0b"] {
        let error = Prefix::new(prefix).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("exactly one cluster hash tag"), "{error}");
    }
}
