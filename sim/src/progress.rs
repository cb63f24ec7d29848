//! How far an exploration is: a bar on a terminal, one line at every tenth elsewhere.

use crate::report::text::{Style, Tone, count, grouped};
use crate::resources::now;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::time::Instant;

/// Runs between two changes of the bar's words.
const WORDS_EVERY: u64 = 64;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Show {
    /// A bar on a terminal, a counter elsewhere.
    Auto,
    /// A bar.
    Bar,
    /// A line at every tenth.
    Counter,
    /// Nothing.
    None,
}

/// The progress of one exploration.
pub struct Progress {
    style: Style,
    total: u64,
    started: Instant,
    shown: Shown,
    words: Words,
}

/// What progress is made in.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// What is done: `Explore`.
    pub verb: &'static str,
    /// One of what is done.
    pub unit: &'static str,
    /// One of what is found.
    pub found: &'static str,
    /// Fewer than so many are not counted line by line.
    pub least: u64,
}

/// Of an exploration.
pub const EXPLORE: Words = Words { verb: "Explore", unit: "run", found: "failure", least: 1_000 };

enum Shown {
    Bar(ProgressBar),
    Counter { from: u64, tenths: u64 },
    Nothing,
}

impl Progress {
    /// Progress towards so many runs.
    pub fn new(show: Show, is_terminal: bool, style: Style, total: u64) -> Self {
        Progress::in_words(EXPLORE, show, is_terminal, style, total)
    }

    /// Progress of another kind.
    pub fn in_words(words: Words, show: Show, is_terminal: bool, style: Style, total: u64) -> Self {
        let shown = match show {
            Show::None => Shown::Nothing,
            Show::Bar => Shown::Bar(bar(words, total)),
            Show::Auto if is_terminal => Shown::Bar(bar(words, total)),
            Show::Counter | Show::Auto => Shown::Counter { from: 0, tenths: 0 },
        };
        Progress { style, total, started: now(), shown, words }
    }

    /// The next stage: to so many runs in all.
    pub fn stage(&mut self, what: &str, done: u64, total: u64) {
        self.total = total;
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.set_length(total);
                bar.set_message(what.to_owned());
            }
            Shown::Counter { from, tenths } => (*from, *tenths) = (done, 0),
        }
    }

    /// So many are done.
    pub fn done(&mut self, err: &mut dyn Write, done: u64, failures: usize, scenario: &str) {
        let Words { verb, unit, found, least } = self.words;
        let rate = || {
            let seconds = self.started.elapsed().as_secs_f64();
            grouped((done as f64 / seconds.max(1e-3)) as u64)
        };
        let failed = || count(failures as u64, found);
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.set_position(done);
                if done % WORDS_EVERY == 1 || done == self.total {
                    bar.set_message(format!("{} {unit}s/s   {scenario}   {}", rate(), failed()));
                }
            }
            Shown::Counter { from, tenths } => {
                let (done, total) = (done - *from, self.total - *from);
                let now = done.saturating_mul(10) / total.max(1);
                if now > *tenths && total >= least {
                    *tenths = now;
                    let line = format!(
                        "{}/{} ({} %)   {} {unit}s/s   {}",
                        grouped(done),
                        grouped(total),
                        now * 10,
                        rate(),
                        failed()
                    );
                    write_line(err, &self.style.status(Tone::Plain, verb, &line));
                }
            }
        }
    }

    /// Says something without tearing the bar.
    pub fn say(&self, err: &mut dyn Write, line: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| write_line(err, line)),
            Shown::Counter { .. } | Shown::Nothing => write_line(err, line),
        }
    }

    /// Takes the bar away.
    pub fn end(self) {
        if let Shown::Bar(bar) = self.shown {
            bar.finish_and_clear();
        }
    }
}

fn write_line(err: &mut dyn Write, line: &str) {
    // Where standard error is closed, nobody reads progress.
    let _ = writeln!(err, "{line}");
}

fn bar(words: Words, total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:>12} [{bar:27}] {human_pos}/{human_len}   {msg}")
        .expect("the template is a constant")
        .progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    bar.with_style(style).with_prefix(words.verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_speaks_at_every_tenth() {
        let style = Style { color: false, ascii: false };
        let mut progress = Progress::new(Show::Auto, false, style, 1_000);
        let mut shown = vec![];
        for done in 1..=1_000 {
            progress.done(&mut shown, done, 0, "one-ticket");
        }
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown.lines().count(), 10);
        assert!(shown.starts_with("     Explore 100/1,000 (10 %)   "), "{shown}");
        assert!(!shown.contains('\u{1b}'));
        progress.stage("singles", 1_000, 1_999);
        let mut silent = vec![];
        (1_001..=1_999).for_each(|done| progress.done(&mut silent, done, 0, "one-ticket"));
        assert_eq!(silent, b"", "a stage that is over in a moment is not counted");
    }
}
