//! Where something stands in a TOML text and how a reader is shown it: for contracts, and for case files.

use std::ops::Range;

/// The line of the text with a caret under the span, as the `toml` crate draws it.
pub fn place(text: &str, span: &Range<usize>) -> String {
    let start = span.start.min(text.len());
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let number = text[..start].matches('\n').count() + 1;
    let line = text[line_start..].lines().next().unwrap_or("");
    let column = text[line_start..start].chars().count();
    let on_line = (span.end.min(line_start + line.len())).saturating_sub(start);
    let carets = text.get(start..start + on_line).map_or(1, |marked| marked.chars().count().max(1));
    let gutter = " ".repeat(number.to_string().len());
    let mark = format!("{}{}", " ".repeat(column), "^".repeat(carets));
    format!("  line {number}, column {}\n{gutter} |\n{number} | {line}\n{gutter} | {mark}\n", column + 1)
}

/// One line of the text: the table that it opens, or the key that it sets.
pub(crate) enum Line<'a> {
    Table(&'a str),
    Key(&'a str),
    Other,
}

/// What a line is.
pub(crate) fn read(line: &str) -> Line<'_> {
    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix('[') {
        return Line::Table(rest.trim_start_matches('[').split(']').next().unwrap_or("").trim());
    }
    match line.split_once('=') {
        Some((key, _)) if !line.starts_with('#') => Line::Key(key.trim().trim_matches('"')),
        _ => Line::Other,
    }
}

/// The lines of the text with the offset at which each starts.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |offset, line| {
        let start = *offset;
        *offset += line.len();
        Some((start, line.trim_end()))
    })
}

/// The key that is set at an offset.
pub fn key_at(text: &str, offset: usize) -> String {
    let mut table = "";
    let mut key = "";
    for (_, line) in lines(text).take_while(|(start, _)| *start <= offset) {
        match read(line) {
            Line::Table(name) => (table, key) = (name, ""),
            Line::Key(name) => key = name,
            Line::Other => {}
        }
    }
    match (table, key) {
        ("", "") => "the whole file".to_owned(),
        ("", key) => key.to_owned(),
        (table, "") => table.to_owned(),
        (table, key) => format!("{table}.{key}"),
    }
}

/// A message of the parser without the list of what is allowed, which is the help's part.
pub fn short(message: &str) -> &str {
    match message.split_once(", expected") {
        Some((short, _)) if message.starts_with("unknown ") => short,
        _ => message,
    }
}

/// The word that was probably meant.
pub fn nearest<'a>(given: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let near = allowed.iter().map(|word| (strsim::damerau_levenshtein(given, word), *word)).min()?;
    (near.0 <= given.len().max(3) / 3).then_some(near.1)
}
