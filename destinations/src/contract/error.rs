//! What is wrong with a contract's text, where, and what to do about it.

use super::check::Contradiction;
use crate::tomltext::{Line, key_at, lines, nearest, place, read, short};
use std::fmt;
use std::ops::Range;

/// A contract that cannot be used.
///
/// Its display is three parts: file and key; the place in the text with a caret; one line of help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ContractError {
    file: String,
    key: String,
    place: String,
    message: String,
    help: String,
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.file, self.key)?;
        writeln!(f, "{}{}", self.place, self.message)?;
        write!(f, "help: {}", self.help)
    }
}

impl ContractError {
    /// Key of the field that is wrong, such as `dedup_key.retention`; the file's name where there is none.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().to_owned();
        let key = key_at(text, span.start);
        let help = help(&message);
        let message = short(&message).to_owned();
        Self { file: file.to_owned(), key, place: place(text, &span), message, help }
    }

    pub(super) fn contradiction(file: &str, text: &str, found: &Contradiction) -> Self {
        let span = locate(text, found.table, found.item, &found.key);
        Self {
            file: file.to_owned(),
            key: found.path(),
            place: place(text, &span),
            message: found.message.clone(),
            help: found.help.to_owned(),
        }
    }
}

/// Where a key is set in the n-th table of a name; the table's own line where the key is left out.
fn locate(text: &str, table: &str, item: usize, key: &str) -> Range<usize> {
    let mut inside = table.is_empty();
    let mut seen = 0;
    let mut found = 0..0;
    for (start, line) in lines(text) {
        match read(line) {
            Line::Table(name) => {
                inside = name == table && seen == item;
                seen += usize::from(name == table);
                if inside {
                    found = start..start + line.len();
                }
            }
            Line::Key(name) if inside && name == key => return start..start + line.len(),
            Line::Key(_) | Line::Other => {}
        }
    }
    found
}

/// The help for a message of the parser: the nearest allowed word, or all of them.
fn help(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    match quoted.split_first() {
        Some((given, allowed)) if unknown && !allowed.is_empty() => match nearest(given, allowed) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("allowed here: {}", allowed.join(", ")),
        },
        _ if message.contains("impossible duration") => {
            "write durations as \"30s\", \"5min\", \"2h\" or \"30days\"; leave out what is not known"
                .to_owned()
        }
        Some((field, [])) if message.starts_with("missing field") => {
            format!("add `{field} = ...`; it is one of the few fields that cannot be unknown")
        }
        _ => "the schema is documented at `destinations::Contract`; every omitted field counts as unknown"
            .to_owned(),
    }
}
