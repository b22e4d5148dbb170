//! Error codes as numbers, for languages without text codes. Numbers are only ever added.

use fencelock::ErrorKind;

/// The number of a kind; 0 means success and is none of them. A kind that this table does not know
/// yet counts as `Internal`.
pub const fn number(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::Timeout => 1,
        ErrorKind::Lost => 2,
        ErrorKind::Cancelled => 3,
        ErrorKind::Closed => 4,
        ErrorKind::Forked => 5,
        ErrorKind::InvalidArgument => 6,
        ErrorKind::Unsupported => 7,
        ErrorKind::Unavailable => 8,
        ErrorKind::AuthFailed => 9,
        ErrorKind::Conflict => 10,
        ErrorKind::Internal => 11,
        _ => 11,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_number_and_a_code_of_its_own() {
        for (index, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(number(*kind), index as i32 + 1, "{kind}: numbers are only ever appended");
        }
        let mut codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
    }
}
