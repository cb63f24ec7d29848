//! Which faults come next: everything on the menu of every place that a run comes by after its last fault.

use super::Menu;
use super::apart::Observed;
use super::earlier::Earlier;
use super::marks::marks;
use super::tapes::Alphabet;
use crate::coverage::Mark;
use crate::fault::{Fault, FaultTape, Phase, Place, What};
use crate::history::Step;
use crate::menu::alike;
use crate::run::Run;
use crate::terms::Terms;
use siphasher::sip::SipHasher13;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};

/// A process that is down for longer than this is down for longer than anybody waits for an answer.
const LONG_DOWN_MS: u64 = 60_000;

/// Why a plan is not run.
pub(super) mod reason {
    /// To every party it looks like another fault at the same place.
    pub(crate) const ALIKE: &str = "looks alike";
    /// The same kind is tried there in another strength: a second fault is tried in one.
    pub(crate) const MILDER: &str = "other strength";
    /// From the place on, everything is as in a run that met this fault there.
    pub(crate) const SAME_STATE: &str = "same state";
    /// No correct workflow survives these faults together.
    pub(crate) const UNSURVIVABLE: &str = "unsurvivable together";
    /// A fault stands there.
    pub(crate) const TAKEN: &str = "place taken";
    /// They strike exchanges of two operations, and neither changes anything about the other.
    pub(crate) const APART: &str = "independent";
    /// The second fault keeps the first from striking.
    pub(crate) const PREVENTS: &str = "prevents the first";
}

/// The faults that a plan adds to the scenario's own.
#[derive(Clone, Debug, Default)]
pub(super) struct Addition {
    /// Their numbers, in the order in which they were chosen.
    pub(super) faults: Vec<u32>,
    /// Whether the last one comes between another's place and its strike, and may keep it from striking.
    pub(super) may_prevent: bool,
}

/// The choice of plans for one scenario and contract.
pub(super) struct Walk<'a> {
    pub(super) terms: Terms<'a>,
    pub(super) menu: Menu,
    /// The fault kinds that may be used; none: all.
    pub(super) kinds: Option<&'a [String]>,
    /// Whether what leads to the same state is left out; without, everything is run.
    pub(super) skips: bool,
    pub(super) alphabet: Alphabet,
    /// What was tried where: marks of places with the faults that met them.
    tried: BTreeSet<u64>,
    observed: Observed,
    pub(super) skipped: BTreeMap<&'static str, u64>,
    /// Where a fault was not tried because what it does was tried: it counts as struck.
    pub(super) stood_for: BTreeSet<Mark>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(terms: Terms<'a>, menu: Menu, kinds: Option<&'a [String]>) -> Self {
        Walk {
            terms,
            menu,
            kinds,
            skips: true,
            alphabet: Alphabet::default(),
            tried: BTreeSet::new(),
            observed: Observed::default(),
            skipped: BTreeMap::new(),
            stood_for: BTreeSet::new(),
        }
    }

    fn skip(&mut self, why: &'static str) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// The plans with one fault more than this traced run, which had these added.
    pub(super) fn beyond(&mut self, run: &Run, added: &[u32]) -> Vec<Addition> {
        match added {
            [] => self.observed.clean(run),
            [single] => self.observed.single(*single, run),
            _ => {}
        }
        let Some((from, struck)) = self.last_met(run, added) else { return vec![] };
        let (marks, earlier) = (marks(run, &self.terms), Earlier::of(run));
        let mut met = BTreeSet::new();
        let mut next = vec![];
        for (index, visit) in run.visits.iter().enumerate().skip(from) {
            if !met.insert(&visit.place) {
                continue;
            }
            for what in self.offered(&visit.place, added.len()) {
                let fault = Fault { at: visit.place.clone(), what };
                // Before its last fault the run was another one.
                let mark = marks[earlier.place_for(&fault.what, index).max(from)];
                match self.refuse(&run.plan.tape, added, &fault, mark) {
                    Some(why) => {
                        self.skip(why);
                        if why == reason::SAME_STATE {
                            self.stood_for.insert(Mark::of(&fault));
                        }
                    }
                    None => {
                        let number = self.alphabet.number(&fault);
                        let may_prevent = visit.step < struck;
                        next.push(Addition { faults: [added, &[number]].concat(), may_prevent });
                    }
                }
            }
        }
        next
    }

    /// From which visit on all added faults have met their places, and the step at which the last of them
    /// struck; none when one of them did not. A fault may strike some time after its place was met.
    fn last_met(&self, run: &Run, added: &[u32]) -> Option<(usize, Step)> {
        added.iter().try_fold((0, Step(0)), |(from, last), number| {
            let at = &self.alphabet.fault(*number).at;
            let (index, _) = run.plan.tape.at(at)?;
            let met = run.visits.iter().position(|visit| visit.place == *at)?;
            Some((from.max(met + 1), last.max(run.fired[index]?)))
        })
    }

    /// Takes away the plans whose last fault has nothing to do with the others; every single has run.
    pub(super) fn without_apart(&mut self, mut plans: Vec<Addition>) -> Vec<Addition> {
        if !self.skips {
            return plans;
        }
        let all = plans.len();
        plans.retain(|plan| {
            let Some((last, before)) = plan.faults.split_last() else { return true };
            let numbered = |number: u32| (number, self.alphabet.fault(number));
            let apart = |other: &u32| self.observed.are_apart(numbered(*other), numbered(*last));
            before.is_empty() || !before.iter().all(apart)
        });
        let skipped = (all - plans.len()) as u64;
        if skipped > 0 {
            *self.skipped.entry(reason::APART).or_default() += skipped;
        }
        plans
    }

    /// What is tried at a place after so many faults: all of the menu first, then the first of each kind.
    fn offered(&mut self, place: &Place, before: usize) -> Vec<What> {
        let mut offered = vec![];
        for what in (self.menu)(place, &self.terms) {
            if !what.is_on(self.kinds) {
                continue;
            }
            let same = match place {
                Place::Exchange(exchange) => alike(exchange.call, &what),
                _ => what.clone(),
            };
            let is_milder = |other: &What| before > 0 && is_milder(&same, other);
            if offered.contains(&same) {
                self.skip(reason::ALIKE);
                self.stood_for.insert(Mark::of(&Fault { at: place.clone(), what }));
            } else if offered.iter().any(is_milder) {
                self.skip(reason::MILDER);
            } else {
                offered.push(same);
            }
        }
        offered
    }

    /// Why this fault is not added; notes that it is tried here otherwise.
    fn refuse(&mut self, tape: &FaultTape, added: &[u32], fault: &Fault, mark: u64) -> Option<&'static str> {
        let Ok(longer) = tape.with(fault.clone()) else { return Some(reason::TAKEN) };
        if self.terms.unsurvivable(&longer).is_some() {
            return Some(reason::UNSURVIVABLE);
        }
        if added.iter().any(|number| prevents(fault, self.alphabet.fault(*number))) {
            return Some(reason::PREVENTS);
        }
        let mut hasher = SipHasher13::new();
        (mark, &fault.what).hash(&mut hasher);
        let is_new = self.tried.insert(hasher.finish());
        (self.skips && !is_new).then_some(reason::SAME_STATE)
    }

    /// Every fault that is offered in a clean run, for the digest of the menu.
    pub(super) fn menu_of(&self, run: &Run) -> Vec<(Place, Vec<What>)> {
        let places: BTreeSet<&Place> = run.visits.iter().map(|visit| &visit.place).collect();
        places.into_iter().map(|place| (place.clone(), (self.menu)(place, &self.terms))).collect()
    }
}

/// Whether one of a kind stands for the other where strengths are not told apart: a death that outlasts a key
/// is another thing than a short one, and a clock that is set back than one that is set ahead.
fn is_milder(what: &What, other: &What) -> bool {
    match (what, other) {
        (What::Kill(ms), What::Kill(other)) => (*ms > LONG_DOWN_MS) == (*other > LONG_DOWN_MS),
        (What::ClockStep(ms), What::ClockStep(other)) => (*ms < 0) == (*other < 0),
        _ => what.kind() == other.kind(),
    }
}

/// A refused connection strikes before anything of its exchange does, but for its beginning.
fn prevents(second: &Fault, first: &Fault) -> bool {
    let (Place::Exchange(exchange), What::Refuse) = (&second.at, &second.what) else { return false };
    matches!(&first.at, Place::Phase { exchange: of, phase } if of == exchange && *phase != Phase::BeforeSend)
}

/// The places of a run by kind, each counted once.
pub(super) fn boundaries(run: &Run) -> BTreeMap<String, u64> {
    let places: BTreeSet<&Place> = run.visits.iter().map(|visit| &visit.place).collect();
    let mut by_kind = BTreeMap::new();
    for place in places {
        *by_kind.entry(place.kind()).or_default() += 1;
    }
    by_kind
}
