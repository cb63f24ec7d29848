//! Where the program runs: the environment, read here and nowhere else.

use super::args::When;
use super::{CliError, exit};
use crate::confirm::Start;
use std::process::Command;

/// What the environment says.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) is_github: bool,
    pub(super) wants_ascii: bool,
    pub(super) no_color: bool,
    pub(super) force_color: bool,
    /// The variables that cancel the flags of `cargo sim`, where they are set.
    pub(super) rustflags: Vec<(&'static str, String)>,
    /// This program again.
    pub(super) start: Option<Start>,
}

/// This very program, as it is on the disk.
pub(super) fn own_program(arguments: &[&str]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("where it is, is not known: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

#[expect(clippy::disallowed_methods, reason = "configuration is read here, at the edge")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Place {
    pub(super) fn read() -> Self {
        Self::from(&variable)
    }

    fn from(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        let is_utf8 = |locale: String| locale.to_lowercase().replace('-', "").contains("utf8");
        let flags = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"];
        Place {
            is_github: variable("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
            // No locale at all is what containers have; their logs are read as UTF-8.
            wants_ascii: locale.is_some_and(|locale| !is_utf8(locale)),
            no_color: set("NO_COLOR").is_some(),
            force_color: set("CLICOLOR_FORCE").is_some_and(|value| value != "0"),
            rustflags: flags.into_iter().filter_map(|name| Some((name, variable(name)?))).collect(),
            start: None,
        }
    }

    /// Whether a stream gets colours.
    pub(super) fn color(&self, when: When, is_terminal: bool) -> bool {
        match when {
            When::Always => true,
            When::Never => false,
            When::Auto if self.no_color => false,
            When::Auto => is_terminal || self.force_color,
        }
    }

    /// Why this build cannot simulate.
    pub(super) fn refusal(&self) -> CliError {
        let missing = match (cfg!(madsim), cfg!(tokio_unstable)) {
            (true, false) => "`cfg(tokio_unstable)`, so a run would not repeat",
            (true, true) => "its simulator",
            (false, _) => "`cfg(madsim)`, so nothing would be simulated",
        };
        let mut message = format!("this program was built without {missing}");
        for (name, value) in &self.rustflags {
            message += &format!("\n  {name} is set ({value:?}) and overrides the flags of `cargo sim`");
        }
        let help = match self.rustflags.first() {
            Some((name, _)) => {
                format!("unset {name}, or add `--cfg madsim --cfg tokio_unstable` to it")
            }
            None => "start it as `cargo sim` from the folder with .cargo/config.toml".to_owned(),
        };
        CliError { code: exit::HARNESS, message, help: vec![help] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(set: &[(&str, &str)]) -> Place {
        Place::from(&|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn colours_follow_the_environment() {
        let plain = place(&[]);
        assert!(plain.color(When::Auto, true) && !plain.color(When::Auto, false));
        assert!(plain.color(When::Always, false) && !plain.color(When::Never, true));
        assert!(!place(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]).color(When::Auto, true));
        assert!(place(&[("CLICOLOR_FORCE", "1")]).color(When::Auto, false));
        assert!(place(&[("NO_COLOR", "")]).color(When::Auto, true));
    }

    #[test]
    fn a_locale_that_is_not_utf8_gets_ascii() {
        assert!(!place(&[]).wants_ascii);
        assert!(
            !place(&[("LANG", "C.UTF-8")]).wants_ascii && !place(&[("LC_ALL", "de_DE.utf8")]).wants_ascii
        );
        assert!(place(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]).wants_ascii);
        assert!(place(&[("LANG", "de_DE.ISO-8859-1")]).wants_ascii);
    }

    #[test]
    fn a_refusal_names_what_cancels_the_flags() {
        let mut shown = String::new();
        for set in [&[][..], &[("RUSTFLAGS", "-C debuginfo=0")], &[("CARGO_ENCODED_RUSTFLAGS", "")]] {
            shown += &(place(set).refusal().lines().join("\n") + "\n\n");
        }
        if !cfg!(madsim) {
            insta::assert_snapshot!("refusals", shown);
        }
    }
}
