//! `again`: what a fresh process says of a case file, for the process that found the failure.

use super::args::AgainArgs;
use super::replay::code_of;
use super::{CliError, Context, choose, explore, subject};
use crate::confirm::Testimony;
use crate::replay::Question;

pub(super) fn run(cx: &mut Context<'_>, args: &AgainArgs) -> Result<u8, CliError> {
    let kept = subject::open(&cx.catalogue, &args.file)?;
    let question =
        Question { steps_max: args.steps_max.get(), all_faults: true, once: true, ..kept.question(None)? };
    let (index, contract) = choose::case(&cx.catalogue, &question.case, question.mutant.as_deref())?;
    let answer = explore::ask(cx, index, &contract, question)?;
    for line in Testimony::of(&answer.ran, answer.fingerprint()).lines() {
        cx.print(&line);
    }
    Ok(code_of(&answer))
}
