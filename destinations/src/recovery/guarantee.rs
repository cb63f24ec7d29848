//! What a contract guarantees, in words for the person who signs for it.

use super::{Assumptions, Class, Convergence, LookupRule, Recovery, Replay, recovery};
use crate::contract::Contract;
use std::time::Duration;

impl Contract {
    /// The class in words, what it rests on, what is not known, and what can still break it; several lines.
    pub fn guarantee(&self, assumptions: &Assumptions) -> String {
        let permitted = recovery(self, assumptions);
        let mut lines = vec![
            format!("{}: {}, {}", self.id, self.system, self.operation),
            format!("after a send in doubt: {}", permitted.class()),
        ];
        lines.extend(permitted.replay.as_ref().map(|replay| self.about_replay(replay)));
        lines.extend(permitted.converge.as_ref().map(about_convergence));
        lines.extend(permitted.lookup.as_ref().map(about_lookup));
        if permitted.class() == Class::Owner {
            lines.push("  one automatic send for life".to_owned());
        }
        lines.push("  otherwise a person decides".to_owned());
        lines.extend(self.more_if_attested(assumptions, permitted.class()));
        lines.push(about_assumptions(assumptions));
        lines.push(self.about_the_unknown(assumptions));
        lines.push(about_pauses(&permitted, assumptions));
        lines.join("\n")
    }

    fn about_replay(&self, replay: &Replay) -> String {
        let name = self.dedup_key.as_ref().map_or("", |key| key.name.as_str());
        let until = match replay.safe_for {
            Duration::MAX => "at any time".to_owned(),
            safe_for => format!(
                "until {} after the first intent (remembered for {}, {} kept free)",
                span(safe_for),
                span(replay.retention),
                span(replay.margin)
            ),
        };
        let apart = match replay.wait_between {
            Duration::ZERO => String::new(),
            wait => format!("; never two at once: {} after the last possible send", span(wait)),
        };
        format!("  resend the same {name} and the same bytes {until}{apart}")
    }

    /// What an operator could attest to get a better class.
    fn more_if_attested(&self, assumptions: &Assumptions, class: Class) -> Vec<String> {
        let with_bound =
            Assumptions { assumed_late_commit: Some(Duration::from_secs(1)), ..assumptions.clone() };
        let with_atomic = Assumptions { attested_atomic: true, ..assumptions.clone() };
        let words = [
            (with_bound, "assumed_late_commit", "how long an abandoned request may still take effect"),
            (with_atomic, "attested_atomic", "that the identity holds for two requests at once"),
        ];
        let better = words.into_iter().filter_map(|(more, name, what)| {
            let reached = recovery(self, &more).class();
            (reached > class).then(|| format!("  {reached} once an operator attests {what} ({name})"))
        });
        better.collect()
    }

    fn about_the_unknown(&self, assumptions: &Assumptions) -> String {
        let open = self.open(assumptions).into_iter().map(|open| match open.path.as_str() {
            "dedup_key" => "any deduplication key".to_owned(),
            "lookup" => "any look-up".to_owned(),
            _ => open.path,
        });
        let mut unknown: Vec<String> = open.collect();
        if unknown.is_empty() {
            unknown.push("nothing that matters".to_owned());
        }
        format!("not known:\n  {}", unknown.join("\n  "))
    }
}

fn about_convergence(rule: &Convergence) -> String {
    let until = match rule.safe_for {
        Duration::MAX => "as long as the record exists".to_owned(),
        safe_for => format!("until {} after the first intent", span(safe_for)),
    };
    let apart = if rule.single_writer {
        format!("; by one writer only, {} after the last possible send", span(rule.wait_between))
    } else {
        String::new()
    };
    let ours = match &rule.ownership_field {
        Some(field) => format!("a conflict means that it exists: ours if `{field}` says so"),
        None => "a conflict means that it exists, and a person tells whose it is".to_owned(),
    };
    format!("  resend the same `{}` {until}{apart}; {ours}", rule.field)
}

fn about_lookup(rule: &LookupRule) -> String {
    let by = rule.by.word().replace('_', " ");
    let miss = match rule.decides_after {
        Some(after) if rule.lag.is_zero() => {
            format!("a complete miss permits one send, from {} after the last possible send", span(after))
        }
        Some(after) => format!(
            "two complete misses {} apart permit one send, from {} after the last possible send",
            span(rule.lag),
            span(after)
        ),
        None => "a miss permits nothing".to_owned(),
    };
    format!("  look up by {by}: a hit resolves the doubt, {miss}")
}

fn about_assumptions(assumptions: &Assumptions) -> String {
    let late = match assumptions.assumed_late_commit {
        Some(late) => format!("an abandoned request takes effect within {} (attested)", span(late)),
        None => "nothing about late effects".to_owned(),
    };
    let clocks = match assumptions.two_clocks {
        true => format!("two clocks meet, at most {} apart", span(assumptions.clock_skew)),
        false => "one clock judges".to_owned(),
    };
    let grade = format!("{:?}", assumptions.evidence_floor).to_lowercase();
    let lines = [
        format!("a byte arrives within {}", span(assumptions.max_transit)),
        format!("no pause between check and write is longer than {}", span(assumptions.max_pause)),
        clocks,
        late,
        format!("evidence is at least {grade}"),
    ];
    format!("assumed:\n  {}", lines.join("\n  "))
}

/// What a pause between the check and the write can break.
fn about_pauses(permitted: &Recovery, assumptions: &Assumptions) -> String {
    let pause = span(assumptions.max_pause);
    let immune = permitted.converge.as_ref().is_some_and(|rule| !rule.single_writer);
    let what = match permitted.class() {
        Class::Replay => "can carry a resend past the key's end: two effects",
        Class::Converge if immune => {
            "breaks nothing while the record exists; once it is deleted, a resend makes it again"
        }
        Class::Converge => "can let two writers meet: two effects",
        Class::LookupDecides => {
            "can let two senders meet, or an earlier send commit after the miss: two effects"
        }
        Class::LookupConfirms | Class::Owner => "can let two senders meet on the first send: two effects",
    };
    format!("a pause longer than {pause} between check and write {what}")
}

fn span(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}
