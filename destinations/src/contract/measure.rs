//! Durations as a contract declares them: known, without end, or not known.

use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const UNKNOWN: &str = "unknown";

/// A documented upper bound in time, or the admission that there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// The documented bound; never zero.
    Known(Duration),
    /// Nothing is documented; derives to the most conservative behaviour.
    #[default]
    Unknown,
}

/// For how long a destination remembers a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// For this long after the anchor; never zero.
    For(Duration),
    /// Without end.
    Forever,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// How far a look-up may lag behind a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Staleness {
    /// A documented bound; "usually under a minute" is not one.
    Known(Duration),
    /// The documentation says that there is no bound.
    None,
    /// Nothing is documented.
    #[default]
    Unknown,
}

/// For how long an identity stays taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permanence {
    /// As long as the record that carries it exists.
    WhileRecordExists,
    /// For this long after the first request; never zero.
    For(Duration),
    /// Nothing is documented.
    #[default]
    Unknown,
}

impl Bound {
    /// The bound where it is known.
    pub fn known(self) -> Option<Duration> {
        match self {
            Self::Known(bound) => Some(bound),
            Self::Unknown => None,
        }
    }
}

/// Parses a duration that can exist: a number with a unit, more than zero.
fn duration(text: &str, words: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err(format!("impossible duration \"{text}\": it must be longer than zero")),
        Ok(duration) => Ok(duration),
        Err(_) if text.trim_start().starts_with('-') => {
            Err(format!("impossible duration \"{text}\": it cannot be negative"))
        }
        Err(error) => Err(format!("impossible duration \"{text}\" ({error}); expected {words}")),
    }
}

fn written(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match String::deserialize(from)?.as_str() {
            UNKNOWN => Ok(Self::Unknown),
            text => duration(text, "a duration or \"unknown\"").map(Self::Known).map_err(D::Error::custom),
        }
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(bound) => to.serialize_str(&written(*bound)),
            Self::Unknown => to.serialize_str(UNKNOWN),
        }
    }
}

impl<'de> Deserialize<'de> for Retention {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match String::deserialize(from)?.as_str() {
            UNKNOWN => Ok(Self::Unknown),
            "forever" => Ok(Self::Forever),
            text => duration(text, "a duration, \"forever\" or \"unknown\"")
                .map(Self::For)
                .map_err(D::Error::custom),
        }
    }
}

impl Serialize for Retention {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::For(retention) => to.serialize_str(&written(*retention)),
            Self::Forever => to.serialize_str("forever"),
            Self::Unknown => to.serialize_str(UNKNOWN),
        }
    }
}

impl<'de> Deserialize<'de> for Staleness {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match String::deserialize(from)?.as_str() {
            UNKNOWN => Ok(Self::Unknown),
            "none" => Ok(Self::None),
            text => duration(text, "a duration, \"none\" or \"unknown\"")
                .map(Self::Known)
                .map_err(D::Error::custom),
        }
    }
}

impl Serialize for Staleness {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(bound) => to.serialize_str(&written(*bound)),
            Self::None => to.serialize_str("none"),
            Self::Unknown => to.serialize_str(UNKNOWN),
        }
    }
}

impl<'de> Deserialize<'de> for Permanence {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match String::deserialize(from)?.as_str() {
            UNKNOWN => Ok(Self::Unknown),
            "while_record_exists" => Ok(Self::WhileRecordExists),
            text => duration(text, "a duration, \"while_record_exists\" or \"unknown\"")
                .map(Self::For)
                .map_err(D::Error::custom),
        }
    }
}

impl Serialize for Permanence {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::For(permanence) => to.serialize_str(&written(*permanence)),
            Self::WhileRecordExists => to.serialize_str("while_record_exists"),
            Self::Unknown => to.serialize_str(UNKNOWN),
        }
    }
}

/// Plain durations as text; zero is allowed.
pub(crate) mod span {
    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::Serializer;
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::written(*span))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        humantime::parse_duration(&text).map_err(|error| D::Error::custom(format!("\"{text}\": {error}")))
    }
}

/// Durations that may be left out, as text.
pub(crate) mod maybe_span {
    use serde::de::Deserializer;
    use serde::ser::Serializer;
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => super::span::serialize(span, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        super::span::deserialize(from).map(Some)
    }
}
