//! `replay --likelihood`: the told run, and which decision settled its failure.

use super::args::Format;
use super::{CliError, Context, exit};
use crate::likelihood::measure;
use crate::replay::Answer;
use crate::report::likelihood::{json, text};
use crate::watch::apart;
use destinations::Contract;
use std::sync::Arc;

pub(super) fn run(
    cx: &mut Context<'_>,
    index: usize,
    contract: &Arc<Contract>,
    answer: &Answer,
    runs: u32,
) -> Result<(), CliError> {
    let (catalogue, pipeline) = (Arc::clone(&cx.catalogue), cx.pipeline);
    let (inner_contract, inner_answer) = (Arc::clone(contract), answer.clone());
    let measured = apart(move |watch| {
        measure(pipeline, &*catalogue.scenarios[index], &inner_contract, &inner_answer, runs, watch)
    });
    let failed = |code, message| CliError { code, message, help: vec![] };
    let measured = measured
        .map_err(|hung| failed(exit::UNDECIDED, hung.to_string()))?
        .map_err(|error| failed(exit::HARNESS, error))?;
    let Some(likelihood) = measured else {
        let message = format!("{} does not fail, so nothing decides it", answer.question.case);
        return Err(CliError::usage(message, "`cargo sim explore` finds runs that fail"));
    };
    if cx.format == Format::Json {
        cx.print(&json(&likelihood));
        return Ok(());
    }
    let told = super::replay::told(cx.out_style, answer, contract, None);
    let curve = text(cx.out_style, &likelihood);
    told.iter().chain([&String::new()]).chain(&curve).for_each(|line| cx.print(line));
    Ok(())
}
