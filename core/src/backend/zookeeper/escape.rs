//! Names of locks as names of nodes: what ZooKeeper refuses is escaped, and nothing else, so that
//! a node that another library made for a lock keeps its name.

use crate::name::Name;

/// The name as one element of a path. Different names give different elements.
pub(super) fn escape(name: &str) -> String {
    let is_relative = name == "." || name == "..";
    let mut element = String::with_capacity(name.len());
    for sign in name.chars() {
        if sign == '%' || sign == '/' || is_relative || !is_accepted(sign) {
            let mut bytes = [0; 4];
            for byte in sign.encode_utf8(&mut bytes).bytes() {
                element.push_str(&format!("%{byte:02X}"));
            }
        } else {
            element.push(sign);
        }
    }
    element
}

/// Whether ZooKeeper takes this character in a path. Its servers count UTF-16, in which everything
/// above U+FFFF is a pair of surrogates, which they refuse.
pub(super) fn is_accepted(sign: char) -> bool {
    !matches!(u32::from(sign),
        0..=0x1f | 0x7f..=0x9f | 0xd800..=0xf8ff | 0xfff0..)
}

/// The name that has this element; none if no name has it.
pub(super) fn unescape(element: &str) -> Option<Name> {
    let name = decode(element)?;
    let name = Name::new(&name).ok()?;
    (escape(name.as_str()) == element).then_some(name)
}

/// What `%XX` stands for; none if it is not UTF-8 or a `%` has no two digits.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn g1_names_keep_their_spelling_unless_zookeeper_refuses_it() {
        for (name, element) in [
            ("orders", "orders"),
            ("é", "é"),
            ("a b*{}$[]", "a b*{}$[]"),
            ("a/b", "a%2Fb"),
            ("%41", "%2541"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("...", "..."),
            ("a.", "a."),
            ("\n", "%0A"),
            ("\u{7f}", "%7F"),
            ("\u{85}", "%C2%85"),
            ("🔒", "%F0%9F%94%92"),
            ("\u{e000}", "%EE%80%80"),
            ("\u{fff0}", "%EF%BF%B0"),
            ("\u{ffef}", "\u{ffef}"),
        ] {
            assert_eq!(escape(name), element, "{name:?}");
            assert_eq!(unescape(element).unwrap().as_str(), name);
        }
        assert!(escape(&"🔒".repeat(256)).len() <= 3072);
    }

    #[test]
    fn g1_different_names_are_different_elements() {
        let parts = ["%", "/", ".", "2", "F", "2F", "%2F", "\u{1}", "é", "🔒", "\u{e001}", "a"];
        let mut names: HashSet<String> = HashSet::new();
        for a in parts {
            for b in parts {
                for c in parts {
                    names.insert(format!("{a}{b}{c}"));
                }
            }
        }
        let elements: HashSet<String> = names.iter().map(|name| escape(name)).collect();
        assert_eq!(elements.len(), names.len());
        assert!(elements.iter().all(|element| element.chars().all(is_accepted)));
    }

    #[test]
    fn g6_elements_that_no_name_has_are_not_shown() {
        for element in ["%", "%2", "%zz", "%+1", "a%2fb", "%41", "%FF", "~fl-beat", "a%00"] {
            assert_eq!(unescape(element), None, "{element}");
        }
    }
}
