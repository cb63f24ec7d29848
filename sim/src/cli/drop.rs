//! `drop`: forgets a failure that is not committed.

use super::args::DropArgs;
use super::pending::Pending;
use super::shrink::unwritable;
use super::subject::{self, Shelf, shown};
use super::{CliError, Context, exit};
use crate::report::text::Tone;

pub(super) fn run(cx: &mut Context<'_>, args: &DropArgs) -> Result<u8, CliError> {
    let shelf = Shelf::of(&cx.catalogue, &args.folders);
    let pending = Pending(shelf.pending.clone());
    let path = subject::path(&cx.catalogue, &shelf, &args.case, args.mutant.as_deref())?;
    if !pending.has(&path) {
        let message = format!("{} is not pending", shown(&path));
        return Err(CliError::usage(
            message,
            "a committed case is removed with git, and its reviewer asks why",
        ));
    }
    pending.forget(&path).map_err(|error| unwritable(&shown(&path), &error))?;
    cx.print(&cx.out_style.status(Tone::Plain, "DROPPED", &shown(&path)));
    Ok(exit::HELD)
}
