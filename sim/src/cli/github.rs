//! The commands that GitHub Actions reads from a log.

use crate::report::ToldFailure;

/// GitHub shows so many annotations a step.
pub(super) const ANNOTATIONS_MAX: usize = 10;

/// Opens a group that can be folded.
pub(super) fn group(title: &str) -> String {
    format!("::group::{}", data(title))
}

/// Closes it.
pub(super) const END: &str = "::endgroup::";

/// One annotation for one fingerprint.
pub(super) fn error(told: &ToldFailure<'_>) -> String {
    let title = format!("{} ({})", told.failure.invariant.name, told.answer.question.case);
    let message = told.answer.violation().map_or("", |violation| &violation.message);
    let text = format!("{message}\nReplay: {}", told.answer.question);
    format!("::error title={}::{}", property(&title), data(&text))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_github_would_read_is_escaped() {
        assert_eq!(group("50 %\nof"), "::group::50 %25%0Aof");
        assert_eq!(property("a: b, c"), "a%3A b%2C c");
    }
}
