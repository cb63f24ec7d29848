//! The searches beyond seeds, on the real workflow: what they plan can be survived, comes out the same on any
//! number of threads, and finds a known mistake.

use sim::catalogue::Catalogue;
use sim::explore::{Chosen, Exploration, Flow, Plans, Request, Search};
use sim::guided::{Guided, guided};
use sim::pct::PctPlans;
use sim::pipeline::Pipeline;
use sim::seeds::Seeds;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// All that a search is asked for, of one scenario or of all.
fn request(catalogue: &Catalogue, scenario: Option<&str>, jobs: usize, mutant: Option<&str>) -> Request {
    let mut chosen = Chosen::every(catalogue, mutant);
    chosen.retain(|one| scenario.is_none_or(|wanted| wanted == one.name));
    let mutant = mutant.map(str::to_owned);
    Request { jobs, mutant, ..Request::of(chosen, Seeds::range(0..2_000)) }
}

fn searched<T>(
    scenario: Option<&str>,
    jobs: usize,
    mutant: Option<&str>,
    work: impl FnOnce(&mut Search<'_>) -> T,
) -> (T, Exploration) {
    let (catalogue, never) = (Arc::new(scenarios::catalogue()), AtomicBool::new(false));
    let pipeline = Pipeline::real().expect("this build can simulate");
    let request = request(&catalogue, scenario, jobs, mutant);
    let mut quiet = |_: sim::explore::Notice<'_>| {};
    let mut search = Search::new(&catalogue, pipeline, request, &never, &mut quiet);
    let worked = work(&mut search);
    (worked, search.finish())
}

fn by_priorities(search: &mut Search<'_>, count: u64) -> Flow {
    let plans: Arc<dyn Plans> = Arc::new(PctPlans::of(search.request(), count));
    search.stage(&plans, &mut |_| {})
}

fn held(done: &Exploration, runs: u64) {
    let examples = (&done.failures, &done.undecided_examples, &done.harness_examples);
    assert_eq!((done.runs, done.held), (runs, runs), "{examples:#?}");
}

#[test]
fn priorities_are_survived_by_every_story_and_each_way_to_wait_strikes() {
    let (_, one) = searched(None, 1, None, |search| by_priorities(search, 600));
    held(&one, 600);
    let fired = one.fired();
    let struck = |kind: &str| sim::fault::KINDS.iter().zip(fired).any(|(known, n)| *known == kind && n > 30);
    assert!(["delay", "hold-back", "pause"].iter().all(|kind| struck(kind)), "{fired:?}");
    let (_, two) = searched(None, 2, None, |search| by_priorities(search, 600));
    assert_eq!(one.hash(), two.hash());
}

#[test]
fn guidance_reaches_more_with_the_same_plans_on_any_number_of_threads() {
    let search = |jobs| searched(Some("one-ticket"), jobs, None, |search| guided(search, 400).0);
    let (one, done): (Guided, _) = search(1);
    held(&done, 400);
    let (two, other) = search(2);
    assert_eq!((&one, done.hash()), (&two, other.hash()));
    assert!(one.kept > 20 && (one.kept as u64) < one.runs, "{} of {}", one.kept, one.runs);
    let states: BTreeSet<&str> = one.reached.iter().map(|tuple| tuple.believed.as_str()).collect();
    assert!(states.iter().any(|state| state.starts_with("in_doubt")), "{states:?}");
    assert!(one.reached.iter().any(|tuple| tuple.late > 0) && one.reached.iter().any(|t| t.records > 0));
}

/// The mistake shows only where a second send meets a first one that may have been applied.
#[test]
fn either_search_finds_a_known_mistake() {
    let kills = |done: &Exploration| done.failures.iter().any(|failure| failure.invariant.id == "V7");
    let mutant = Some("fresh-key-per-retry");
    let (_, done) = searched(Some("one-ticket"), 2, mutant, |search| by_priorities(search, 500));
    assert!(kills(&done), "{:#?}", done.failures);
    assert!(done.failures.iter().all(|failure| failure.strategy == "pct" && !failure.by_seed));
    let (_, done) = searched(Some("one-ticket"), 2, mutant, |search| guided(search, 500).1);
    assert!(kills(&done), "{:#?}", done.failures);
}
