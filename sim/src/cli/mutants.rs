//! `mutants`: each known mistake is hunted by each strategy; the kill matrix says how soon it is found.

use super::args::{Format, MutantsArgs};
use super::explore::{INTERRUPTED, JOBS_MAX, listen_for_interrupt};
use super::{CliError, Context, VERSION, choose, exit};
use crate::matrix::Matrix;
use crate::matrix::hunt::{Hunt, Hunted, STRATEGIES, Strategy};
use crate::progress::{Progress, Words};
use crate::report::matrix::{Closing, json, text};
use crate::report::text::Tone;
use crate::resources::now;
use crate::scenario::Mutant;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const WORDS: Words = Words { verb: "Hunt", unit: "hunt", found: "kill", least: 1 };

pub(super) fn run(cx: &mut Context<'_>, args: &MutantsArgs) -> Result<u8, CliError> {
    let all = choose::mutants(&cx.catalogue);
    let mutants = named(cx, &all, &args.names)?;
    let strategies = strategies(&args.strategy)?;
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    listen_for_interrupt();
    let started = now();
    let catalogue = Arc::clone(&cx.catalogue);
    let hunt = Hunt {
        catalogue: &catalogue,
        pipeline: cx.pipeline,
        is_whole: mutants.len() == all.len(),
        mutants,
        strategies,
        starts: args.starts.get(),
        budget: args.budget.get(),
        jobs: args.jobs.unwrap_or_else(cores).get().min(JOBS_MAX),
        interrupted: &INTERRUPTED,
    };
    let hunted = hunt_shown(cx, args, &hunt);
    let interrupted = INTERRUPTED.load(Ordering::Relaxed);
    complain(cx, &hunted);
    let exit = exit::worst(&codes(&hunted, interrupted));
    let closing = Closing { wall_s: started.elapsed().as_secs_f64(), interrupted, exit };
    let lines = match cx.format {
        Format::Json => json(&hunted.matrix, closing, VERSION),
        Format::Text | Format::Github => text(cx.out_style, &hunted.matrix, closing),
    };
    lines.iter().for_each(|line| cx.print(line));
    Ok(exit)
}

/// The mutants with these names, each with the scenarios that run with it; all when none is named.
fn named(
    cx: &Context<'_>,
    all: &[(Mutant, Vec<&'static str>)],
    names: &[String],
) -> Result<Vec<(Mutant, Vec<crate::explore::Chosen>)>, CliError> {
    let known: Vec<&str> = all.iter().map(|(mutant, _)| mutant.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(choose::unknown("there is no mutant", unknown, &known));
    }
    if all.is_empty() {
        let message = "no scenario can be run with a known mistake".to_owned();
        let help = vec!["`Scenario::mutants` offers them".into()];
        return Err(CliError { code: exit::NOTHING, message, help });
    }
    let wanted = all.iter().filter(|(one, _)| names.is_empty() || names.iter().any(|n| n == one.name));
    wanted
        .map(|(mutant, _)| {
            let chosen = choose::scenarios(&cx.catalogue, &[], Some(mutant.name))?;
            Ok((*mutant, chosen))
        })
        .collect()
}

fn strategies(names: &[String]) -> Result<Vec<Strategy>, CliError> {
    let known: Vec<&str> = STRATEGIES.iter().map(|strategy| strategy.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(choose::unknown("there is no strategy", unknown, &known));
    }
    let wanted = |one: &&Strategy| names.is_empty() || names.iter().any(|name| name == one.name);
    Ok(STRATEGIES.iter().filter(wanted).copied().collect())
}

fn hunt_shown(cx: &mut Context<'_>, args: &MutantsArgs, hunt: &Hunt<'_>) -> Hunted {
    let (style, is_terminal) = (cx.err_style, cx.err_is_terminal);
    let mut progress = Progress::in_words(WORDS, args.show_progress, is_terminal, style, hunt.total());
    let err = &mut *cx.err;
    let hunted = hunt.run(&mut |far| progress.done(err, far.done, far.kills, far.mutant));
    progress.end();
    hunted
}

/// What went wrong with the harness itself.
fn complain(cx: &mut Context<'_>, hunted: &Hunted) {
    let style = cx.err_style;
    for (case, error) in hunted.harness.iter().take(3) {
        cx.note(&style.status(Tone::Bad, "HARNESS", &format!("{case}  {error}")));
    }
    for (recipe, instead) in hunted.differing.iter().take(3) {
        let rest = format!("{recipe} did not come again: {instead}");
        cx.note(&style.status(Tone::Bad, "DIFFER", &rest));
    }
}

fn codes(hunted: &Hunted, interrupted: bool) -> Vec<u8> {
    let matrix: &Matrix = &hunted.matrix;
    let found = [
        (!hunted.differing.is_empty(), exit::DIFFERS),
        (!hunted.harness.is_empty(), exit::HARNESS),
        (matrix.survivors().next().is_some(), exit::VIOLATED),
        (matrix.enumeration_suffices() == Some(false), exit::GAP),
        (interrupted, exit::UNDECIDED),
    ];
    found.iter().filter(|(came, _)| *came).map(|(_, code)| *code).collect()
}
