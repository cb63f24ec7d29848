//! Reads the fields of a TOML text one by one; each mistake is noted with its place, and the reading goes on.

use super::Mistake;
use destinations::tomltext::{nearest, place};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A text that is being read.
pub(super) struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    mistakes: Vec<Mistake>,
    /// Where each field that was read has its value.
    places: BTreeMap<String, Range<usize>>,
}

/// One table of it, and the fields that were asked for.
pub(super) struct Section<'t> {
    /// Its path with a dot behind it; empty for the whole text.
    prefix: String,
    table: Option<&'t DeTable<'t>>,
    known: Vec<&'static str>,
}

/// A value with its place.
type Found<'t> = &'t Spanned<DeValue<'t>>;

impl<'t> Reader<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> Reader<'t> {
        Reader { file, text, mistakes: vec![], places: BTreeMap::new() }
    }

    /// The whole text as a section.
    pub(super) fn whole(table: &'t DeTable<'t>) -> Section<'t> {
        Section { prefix: String::new(), table: Some(table), known: vec![] }
    }

    /// A table inside the whole; an empty one where it is left out.
    pub(super) fn section(&mut self, of: &mut Section<'t>, name: &'static str) -> Section<'t> {
        let table = self.field(of, name, "a table", |value| value.as_table().ok_or_else(String::new));
        Section { prefix: format!("{}{name}.", of.prefix), table, known: vec![] }
    }

    /// Notes a mistake at a field, or about the whole where the field is not there.
    pub(super) fn wrong(&mut self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        let place = self.places.get(key).map(|span| place(self.text, span)).unwrap_or_default();
        let (key, message, help) = (key.to_owned(), message.into(), help.into());
        self.mistakes.push(Mistake { file: self.file.to_owned(), key, place, message, help });
    }

    /// Notes that the text is no TOML here.
    pub(super) fn no_toml(&mut self, error: &toml::de::Error) {
        let key = "TOML".to_owned();
        self.places.insert(key.clone(), error.span().unwrap_or(0..0));
        self.wrong(&key, error.message(), "nothing else was looked at: the text has to be TOML first");
    }

    /// Notes each field that nobody asked for.
    pub(super) fn end(&mut self, section: &Section<'t>) {
        let given = section.table.into_iter().flatten();
        for (name, _) in given.filter(|(name, _)| !section.known.contains(&&**name.get_ref())) {
            let key = format!("{}{}", section.prefix, name.get_ref());
            self.places.insert(key.clone(), name.span());
            let help = match nearest(name.get_ref(), &section.known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("allowed here: {}", section.known.join(", ")),
            };
            self.wrong(&key, format!("unknown field `{}`", name.get_ref()), help);
        }
    }

    /// What was wrong.
    pub(super) fn mistakes(self) -> Vec<Mistake> {
        self.mistakes
    }

    /// Whether nothing was wrong so far.
    pub(super) fn is_sound(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Reads a field; an error without words is one of type.
    fn field<T>(
        &mut self,
        section: &mut Section<'t>,
        name: &'static str,
        what: &str,
        read: impl FnOnce(&'t DeValue<'t>) -> Result<T, String>,
    ) -> Option<T> {
        section.known.push(name);
        let value: Found<'t> = section.table?.get(name)?;
        let key = format!("{}{name}", section.prefix);
        self.places.insert(key.clone(), value.span());
        match read(value.get_ref()) {
            Ok(read) => Some(read),
            Err(why) if why.is_empty() => {
                let given = value.get_ref().type_str();
                self.wrong(&key, format!("this is of type {given}"), format!("write {what}"));
                None
            }
            Err(why) => {
                self.wrong(&key, why, format!("write {what}"));
                None
            }
        }
    }

    pub(super) fn text(&mut self, section: &mut Section<'t>, name: &'static str) -> Option<String> {
        self.field(section, name, "a text that is not empty, such as \"R17\"", said)
    }

    pub(super) fn texts(&mut self, section: &mut Section<'t>, name: &'static str) -> Option<Vec<String>> {
        self.field(section, name, "a list of texts, such as [\"title\", \"requester\"]", |value| {
            let items = value.as_array().ok_or_else(String::new)?;
            items
                .iter()
                .map(|item| said(item.get_ref()).map_err(|_| "an item is no text".to_owned()))
                .collect()
        })
    }

    pub(super) fn flag(&mut self, section: &mut Section<'t>, name: &'static str) -> Option<bool> {
        self.field(section, name, "true or false", |value| value.as_bool().ok_or_else(String::new))
    }

    pub(super) fn time(&mut self, section: &mut Section<'t>, name: &'static str) -> Option<Duration> {
        self.field(section, name, "a time such as \"30s\", \"15min\" or \"4h\"", |value| {
            let text = value.as_str().ok_or_else(String::new)?;
            humantime::parse_duration(text).map_err(|why| format!("\"{text}\" is no time: {why}"))
        })
    }

    pub(super) fn number<T: TryFrom<u64>>(
        &mut self,
        section: &mut Section<'t>,
        name: &'static str,
    ) -> Option<T> {
        self.field(section, name, "a whole number that is not negative", |value| {
            let digits = value.as_integer().ok_or_else(String::new)?;
            let number = u64::from_str_radix(digits.as_str(), digits.radix()).ok();
            let read = number.and_then(|number| T::try_from(number).ok());
            read.ok_or_else(|| format!("{} is out of range", digits.as_str()))
        })
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        section: &mut Section<'t>,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let all = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        self.field(section, name, &format!("one of {all}"), |value| {
            let text = value.as_str().ok_or_else(String::new)?;
            let found = words.iter().find(|(word, _)| *word == text);
            found.map(|(_, meant)| *meant).ok_or_else(|| format!("\"{text}\" is no word for it"))
        })
    }

    /// The fields of a table whose names only the caller knows, each with its text.
    pub(super) fn named(&mut self, section: &Section<'t>) -> Vec<(String, String)> {
        let given = section.table.into_iter().flatten();
        let mut named = vec![];
        for (name, value) in given.filter(|(name, _)| !section.known.contains(&&**name.get_ref())) {
            let key = format!("{}{}", section.prefix, name.get_ref());
            self.places.insert(key.clone(), value.span());
            match said(value.get_ref()) {
                Ok(text) => named.push((name.get_ref().to_string(), text)),
                Err(why) => {
                    let given = value.get_ref().type_str();
                    let why = if why.is_empty() { format!("this is of type {given}") } else { why };
                    self.wrong(&key, why, "write who owns it, such as \"integration-team\"");
                }
            }
        }
        named
    }
}

fn said(value: &DeValue<'_>) -> Result<String, String> {
    let text = value.as_str().ok_or_else(String::new)?;
    if text.trim().is_empty() { Err("the text is empty".into()) } else { Ok(text.to_owned()) }
}
