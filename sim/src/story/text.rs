//! Text in columns: cut, wrapped, and in plain ASCII.

/// Columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// The text, cut with a mark where it is too long.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

/// The text in exactly so many columns, filled up with spaces.
pub(super) fn fit(text: &str, columns: usize) -> String {
    format!("{:<columns$}", cut(text, columns))
}

/// The text in lines of at most `columns`, indented; a word that is too long is broken.
pub(crate) fn wrap(text: &str, indent: usize, columns: usize) -> Vec<String> {
    let room = columns - indent;
    let mut lines: Vec<String> = vec![];
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word;
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        while width(word) > room {
            let end = word.char_indices().nth(room).map_or(word.len(), |(at, _)| at);
            lines.push(word[..end].to_owned());
            word = &word[end..];
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines.into_iter().map(|line| format!("{:indent$}{line}", "")).collect()
}

/// The same picture with `* | ---> x < >` only: one character for each, so that columns stay.
pub fn to_ascii(line: &str) -> String {
    line.chars()
        .map(|c| match c {
            '│' | '├' | '┤' => '|',
            '─' => '-',
            '╌' => '.',
            '▶' => '>',
            '◀' => '<',
            '●' => '*',
            '✗' => 'x',
            '…' => '~',
            '→' => '>',
            '·' => ',',
            c if c.is_ascii() => c,
            _ => '?',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_to_its_columns() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(wrap("one two three", 2, 9), ["  one two", "  three"]);
        assert_eq!(wrap("abcdefgh", 0, 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 2, 9), Vec::<String>::new());
        assert_eq!(to_ascii("├──▶│ ● ✗ …é"), "|-->| * x ~?");
    }
}
