//! Lists of seeds as people write them (`7`, `0..1000`, `3,9,0x2f8c`, `5000@COMMIT`), never held as numbers.

use crate::seed::Seed;
use std::fmt;
use std::ops::Range;

/// What a list of seeds looks like, for errors and help.
pub const NOTATION: &str = "7 · 0x2f8c · 3,9,12 · 0..1000 · 0..=999 · 5000@COMMIT · a commit's hash";

/// A list of seeds: any number of them in a few words of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    text: String,
    parts: Vec<Part>,
    len: u64,
}

/// Consecutive seeds; past the last possible seed they go on at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    first: u64,
    len: u64,
    /// Seeds in the parts before this one.
    before: u64,
}

/// Why a text is no list of seeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeedsError {
    /// One part of it is not a seed and not a range.
    #[error("{} cannot be read: {why}", named(text, part, *nth))]
    Part {
        /// The whole text.
        text: String,
        /// The part that is wrong.
        part: String,
        /// Which part, from 1.
        nth: usize,
        /// What is wrong with it.
        why: String,
    },
    /// It names no seed at all.
    #[error("`{0}` holds no seed")]
    Empty(String),
    /// A seed stands twice.
    #[error("seed {seed} stands twice in `{text}`")]
    Twice {
        /// The whole text.
        text: String,
        /// The seed.
        seed: Seed,
    },
    /// `COMMIT` could not be resolved.
    #[error("COMMIT in `{text}` cannot be resolved: {why}")]
    Commit {
        /// The whole text.
        text: String,
        /// What `git` said.
        why: String,
    },
}

impl Seeds {
    /// Reads a list; `head` gives the current commit's hash for the word `COMMIT`.
    ///
    /// # Errors
    /// When the text is no list of seeds, names none, or names one twice.
    pub fn parse(text: &str, head: &dyn Fn() -> Result<String, String>) -> Result<Self, SeedsError> {
        let mut seeds = Seeds { text: text.to_owned(), parts: vec![], len: 0 };
        for (index, part) in text.split(',').enumerate() {
            let wrong = |why: String| SeedsError::Part {
                text: text.to_owned(),
                part: part.to_owned(),
                nth: index + 1,
                why,
            };
            let (first, len) = match part.split_once('@') {
                Some((count, base)) => from_base(text, count, base, head, &wrong)?,
                None => plain(part.trim()).map_err(wrong)?,
            };
            seeds.push(first, len).map_err(|problem| match problem {
                Problem::TooMany => wrong("it holds more than 2^64 - 1 seeds".into()),
                Problem::Twice(seed) => SeedsError::Twice { text: text.to_owned(), seed },
            })?;
        }
        if seeds.len == 0 { Err(SeedsError::Empty(text.to_owned())) } else { Ok(seeds) }
    }

    /// Consecutive seeds.
    ///
    /// # Panics
    /// When it is none.
    pub fn range(range: Range<u64>) -> Self {
        assert!(range.start < range.end, "{range:?} holds no seed");
        let len = range.end - range.start;
        let part = Part { first: range.start, len, before: 0 };
        Seeds { text: format!("{}..{}", range.start, range.end), parts: vec![part], len }
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "an empty list is an error when it is read")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The seed at a position, from 0.
    ///
    /// # Panics
    /// When the position is not below [`Seeds::len`].
    pub fn at(&self, position: u64) -> Seed {
        assert!(position < self.len, "position {position} of {} seeds", self.len);
        let after = self.parts.partition_point(|part| part.before <= position);
        let part = self.parts[after - 1];
        Seed(part.first.wrapping_add(position - part.before))
    }

    fn push(&mut self, first: u64, len: u64) -> Result<(), Problem> {
        if len == 0 {
            return Ok(());
        }
        let part = Part { first, len, before: self.len };
        if let Some(seed) = self.parts.iter().find_map(|other| shared(*other, part)) {
            return Err(Problem::Twice(seed));
        }
        self.len = self.len.checked_add(len).ok_or(Problem::TooMany)?;
        self.parts.push(part);
        Ok(())
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

enum Problem {
    TooMany,
    Twice(Seed),
}

/// A part, and which one it is where there are several.
fn named(text: &str, part: &str, nth: usize) -> String {
    if text == part { format!("`{text}`") } else { format!("`{}`, part {nth} of `{text}`,", part.trim()) }
}

/// A seed that is in both.
fn shared(a: Part, b: Part) -> Option<Seed> {
    if b.first.wrapping_sub(a.first) < a.len {
        return Some(Seed(b.first));
    }
    (a.first.wrapping_sub(b.first) < b.len).then_some(Seed(a.first))
}

/// `7`, `0x2f8c`, a commit's hash, `0..1000`, `0..=999`: the first seed and how many.
fn plain(part: &str) -> Result<(u64, u64), String> {
    let Some((low, high)) = part.split_once("..") else {
        return Ok((number(part)?, 1));
    };
    let (high, inclusive) = match high.strip_prefix('=') {
        Some(high) => (high, true),
        None => (high, false),
    };
    let (low, high) = (number(low)?, number(high)?);
    if low > high {
        return Err(format!("the range runs backwards; write {high}..{low}"));
    }
    let len = if inclusive { (high - low).checked_add(1) } else { Some(high - low) };
    len.map(|len| (low, len)).ok_or_else(|| "it holds more than 2^64 - 1 seeds".into())
}

/// `5000@COMMIT` or `5000@<hash>`: so many seeds from a base that differs from commit to commit.
fn from_base(
    text: &str,
    count: &str,
    base: &str,
    head: &dyn Fn() -> Result<String, String>,
    wrong: &dyn Fn(String) -> SeedsError,
) -> Result<(u64, u64), SeedsError> {
    let len: u64 = number(count.trim()).map_err(wrong)?;
    let base = base.trim();
    if base == "COMMIT" {
        let resolved = head().and_then(|hash| {
            hashed(hash.trim()).ok_or_else(|| format!("`{}` is not a commit's hash", hash.trim()))
        });
        let first = resolved.map_err(|why| SeedsError::Commit { text: text.to_owned(), why })?;
        return Ok((first, len));
    }
    let first = hashed(base)
        .ok_or_else(|| wrong("after `@` stands COMMIT or a whole hash of 40 digits: 5000@COMMIT".into()))?;
    Ok((first, len))
}

/// One seed: decimal, hexadecimal with `0x`, or a commit's hash.
fn number(text: &str) -> Result<u64, String> {
    if let Some(seed) = hashed(text) {
        return Ok(seed);
    }
    let parsed = match text.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    };
    parsed.ok_or_else(|| match text {
        "" => "it is empty; write 7, 0x2f8c or 0..1000".to_owned(),
        text if text.bytes().all(|b| b.is_ascii_digit()) => {
            "it is above the largest seed, 18446744073709551615".to_owned()
        }
        _ => "write 7, 0x2f8c, a commit's whole hash, 0..1000 or 5000@COMMIT".to_owned(),
    })
}

/// The first 64 bits of a commit's hash; none where the text is not a hash.
fn hashed(text: &str) -> Option<u64> {
    let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash { u64::from_str_radix(&text[..16], 16).ok() } else { None }
}

/// Part M of N of a list: position i belongs to part i mod N + 1, so the parts are even and share no seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u64,
    of: u64,
}

impl Shard {
    /// The whole list.
    pub const ALL: Shard = Shard { number: 1, of: 1 };

    /// How many of `len` positions belong to it.
    pub fn len_of(self, len: u64) -> u64 {
        let first = self.number - 1;
        if first >= len { 0 } else { (len - first).div_ceil(self.of) }
    }

    /// Whether a position in a list belongs to it.
    pub fn has(self, position: u64) -> bool {
        position % self.of == self.number - 1
    }

    /// The position in the list of its k-th seed.
    pub fn position(self, k: u64) -> u64 {
        self.number - 1 + k * self.of
    }
}

impl std::str::FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a shard; write 3/8 for the third of eight");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let of: u64 = of.parse().map_err(|_| wrong())?;
        if of == 0 {
            return Err(wrong());
        }
        if number == 0 || number > of {
            return Err(format!("`{text}` is not a shard: they are counted from 1/{of} to {of}/{of}"));
        }
        Ok(Shard { number, of })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HASH: &str = "fffffffffffffffe0000000000000000deadbeef";

    fn parse(text: &str) -> Result<Seeds, SeedsError> {
        Seeds::parse(text, &|| Ok(format!("{HASH}\n")))
    }

    fn all(text: &str) -> Vec<u64> {
        let seeds = parse(text).unwrap();
        (0..seeds.len()).map(|i| seeds.at(i).0).collect()
    }

    #[test]
    fn every_notation_is_read() {
        assert_eq!(all("7"), [7]);
        assert_eq!(all("0x2f8c"), [0x2f8c]);
        assert_eq!(all("3,9,0x2f8c"), [3, 9, 0x2f8c]);
        assert_eq!(all("0..3"), [0, 1, 2]);
        assert_eq!(all("0..=3"), [0, 1, 2, 3]);
        assert_eq!(all("5..7, 1"), [5, 6, 1]);
        assert_eq!(all(HASH), [0xffff_ffff_ffff_fffe]);
        assert_eq!(all("4@COMMIT"), [u64::MAX - 1, u64::MAX, 0, 1]);
        assert_eq!(all(&format!("1@{HASH}")), [u64::MAX - 1]);
        assert_eq!(parse("0..18446744073709551615").unwrap().len(), u64::MAX);
    }

    #[test]
    fn errors_name_the_place_and_show_what_is_right() {
        let mut shown = String::new();
        let wrong = ["", "x", "3,x,5", "0..x", "9..3", "5..5", "-1", "+1", "0x", "0xg", "1e3"];
        let more =
            ["0..=18446744073709551615", "18446744073709551616", "5@4f1c2aa", "x@COMMIT", "1,2,1", "0..9,4"];
        for text in wrong.into_iter().chain(more) {
            shown += &format!("{text:<26} {}\n", parse(text).unwrap_err());
        }
        let no_head = Seeds::parse("9@COMMIT", &|| Err("this folder is in no git repository".into()));
        shown += &format!("{:<26} {}\n", "9@COMMIT", no_head.unwrap_err());
        for text in ["3", "0/8", "9/8", "a/b", "1/0"] {
            shown += &format!("--shard {text:<18} {}\n", text.parse::<Shard>().unwrap_err());
        }
        insta::assert_snapshot!("seed_errors", shown);
    }

    proptest! {
        #[test]
        fn a_range_counts_right(low in 0u64..1000, len in 1u64..1000) {
            let seeds = parse(&format!("{low}..{}", low + len)).unwrap();
            prop_assert_eq!(seeds.len(), len);
            prop_assert_eq!(seeds.at(0), Seed(low));
            prop_assert_eq!(seeds.at(len - 1), Seed(low + len - 1));
        }

        #[test]
        fn shards_together_hold_each_seed_once(len in 1u64..500, of in 1u64..20) {
            let seeds = parse(&format!("0..{len}")).unwrap();
            let mut seen = vec![];
            for number in 1..=of {
                let shard: Shard = format!("{number}/{of}").parse().unwrap();
                let mine = shard.len_of(seeds.len());
                prop_assert!(mine.abs_diff(len / of) <= 1, "even");
                seen.extend((0..mine).map(|k| seeds.at(shard.position(k)).0));
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..len).collect::<Vec<_>>());
        }
    }
}
