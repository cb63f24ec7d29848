use super::*;
use crate::explore::{Chosen, Exploration, Notice, Request};
use crate::fixture::{MUTANT, OPERATION, catalogue, create, pipeline};
use crate::pipeline::Pipeline;
use crate::seeds::Seeds;
use std::sync::atomic::{AtomicBool, Ordering};

fn request(jobs: usize, mutant: Option<&str>) -> Request {
    let chosen = vec![Chosen::whole(&catalogue(), 0, mutant)];
    let mutant = mutant.map(str::to_owned);
    Request { jobs, mutant, ..Request::of(chosen, Seeds::range(0..1)) }
}

/// Enumerates the toy with its first contract.
fn enumerated(
    pipeline: Pipeline,
    request: Request,
    change: impl Fn(&mut Subject),
) -> (Certificate, Exploration) {
    let catalogue = Arc::new(catalogue());
    let contract = Arc::clone(&request.chosen[0].contracts[0]);
    let mut subject = Subject::new(0, &contract, 2);
    change(&mut subject);
    let quiet = AtomicBool::new(false);
    let mut silent = |_: Notice<'_>| {};
    let mut search = Search::new(&catalogue, pipeline, request, &quiet, &mut silent);
    let (certificate, _) = enumerate(&mut search, &subject);
    (certificate, search.finish())
}

fn as_usual(jobs: usize, mutant: Option<&str>) -> (Certificate, Exploration) {
    enumerated(pipeline(), request(jobs, mutant), |_| {})
}

/// What does not depend on the machine.
fn timeless(certificate: Certificate) -> Certificate {
    Certificate { wall_s: 0.0, cpu_s: None, ..certificate }
}

#[test]
fn the_second_fault_is_chosen_in_the_faulted_run() {
    let (certificate, done) = as_usual(1, Some(MUTANT));
    // The clean run comes by the first create only; the sync before a kill is there after a loss.
    assert_eq!(certificate.boundaries_by_kind, [("create".to_owned(), 1)].into());
    assert!(certificate.singles > 5 && certificate.pairs > 5, "{certificate:?}");
    assert_eq!(certificate.runs, 1 + certificate.singles + certificate.pairs);
    assert_eq!((certificate.violated, done.violated), (done.violated, certificate.violated));
    let found = &done.failures[0];
    assert_eq!((found.invariant.id, found.strategy, found.by_seed), ("V7", "enumerate", false));
    let places: Vec<_> = found.example.tape.faults().iter().map(|fault| fault.at.clone()).collect();
    assert_eq!(places[0], Place::Exchange(create(1)));
    assert_eq!(places.len(), 2);
    assert!(certificate.complete && certificate.drift == 0);
}

#[test]
fn any_number_of_threads_enumerates_the_same() {
    let (one, done) = as_usual(1, Some(MUTANT));
    for jobs in [2, 8] {
        let (many, more) = as_usual(jobs, Some(MUTANT));
        assert_eq!(timeless(many), timeless(one.clone()), "{jobs} jobs");
        assert_eq!(more.hash(), done.hash());
    }
}

#[test]
fn one_fault_at_once_needs_no_second() {
    let (certificate, _) = enumerated(pipeline(), request(2, None), |subject| subject.depth = 1);
    assert_eq!((certificate.depth, certificate.pairs), (1, 0));
    assert!(certificate.singles > 5 && certificate.complete);
}

#[test]
fn a_fault_that_never_strikes_is_drift() {
    let deaf = Pipeline {
        run: |scenario, plan, options| {
            let mut run = (pipeline().run)(scenario, plan, options);
            for (fault, fired) in plan.tape.faults().iter().zip(&mut run.fired) {
                *fired = fired.filter(|_| fault.what.kind() != "refuse");
            }
            run
        },
        ..pipeline()
    };
    let (certificate, _) = enumerated(deaf, request(2, None), |_| {});
    assert!(certificate.drift > 0 && certificate.complete);
    let words = format!("connection refused, nothing sent (1st create of {OPERATION})");
    assert_eq!(certificate.drift_examples[0], words);
}

#[test]
fn a_menu_without_an_entry_is_another_certificate() {
    let (whole, _) = as_usual(2, None);
    let (less, _) = enumerated(pipeline(), request(2, None), |subject| {
        subject.menu = |place, terms| {
            let menu = crate::menu::menu(place, terms);
            menu.into_iter().filter(|what| what.kind() != "lose-response").collect()
        };
    });
    assert!(less.singles < whole.singles && less.runs < whole.runs);
    assert_ne!(less.menu_digest, whole.menu_digest);
    assert_eq!(less.scenario_digest, whole.scenario_digest);
}

#[test]
fn another_contract_is_another_digest() {
    let (one, _) = as_usual(2, None);
    let mut changed = (*request(1, None).chosen[0].contracts[0]).clone();
    changed.time.late_commit_bound = destinations::Bound::Known(std::time::Duration::from_secs(7));
    let (other, _) = enumerated(pipeline(), request(2, None), |subject| {
        subject.contract = Arc::new(changed.clone());
    });
    assert_ne!(one.contract_digest, other.contract_digest);
}

#[test]
fn an_interruption_leaves_it_incomplete() {
    let catalogue = Arc::new(catalogue());
    let request = request(1, None);
    let subject = Subject::new(0, &request.chosen[0].contracts[0], 2);
    let interrupted = AtomicBool::new(false);
    let mut after_five = |notice: Notice<'_>| {
        if matches!(notice, Notice::Done { done: 5, .. }) {
            interrupted.store(true, Ordering::Relaxed);
        }
    };
    let slow = Pipeline {
        run: |scenario, plan, options| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            (pipeline().run)(scenario, plan, options)
        },
        ..pipeline()
    };
    let mut search = Search::new(&catalogue, slow, request, &interrupted, &mut after_five);
    let (certificate, flow) = enumerate(&mut search, &subject);
    assert_eq!((flow, certificate.complete), (Flow::Over, false));
    assert_eq!(certificate.incomplete.as_deref(), Some("interrupted"));
    assert!(certificate.runs >= 5 && certificate.runs == certificate.held);
}

#[test]
fn enough_failures_leave_it_incomplete() {
    let (whole, _) = as_usual(1, Some(MUTANT));
    let stopping = Request { failures_max: Some(1), ..request(1, Some(MUTANT)) };
    let (certificate, done) = enumerated(pipeline(), stopping, |_| {});
    assert_eq!(done.failures.len(), 1);
    assert!(certificate.runs < whole.runs && !certificate.complete);
    assert_eq!(certificate.incomplete.as_deref(), Some("enough failures were found"));
}

#[test]
fn it_reads_well_and_is_one_line_of_json() {
    use crate::report::certificate;
    let (found, _) = as_usual(1, Some(MUTANT));
    let found = timeless(found);
    let style = crate::report::text::Style { color: false, ascii: false };
    insta::assert_snapshot!("certificate", certificate::text(style, &found).join("\n"));
    insta::assert_snapshot!("certificate_json", certificate::json(&found));
    let cut = Certificate {
        incomplete: Some("interrupted".into()),
        complete: false,
        drift: 2,
        drift_examples: vec!["process killed, back after 100ms (after the 2nd disk sync of boot 1)".into()],
        violated: 0,
        ..found.clone()
    };
    insta::assert_snapshot!("certificate_incomplete", certificate::text(style, &cut).join("\n"));
    let clean = Certificate { violated: 0, ..found };
    let many: Vec<Certificate> = vec![clean; 9];
    let all = [&many[..], &[cut]].concat();
    let shown = [certificate::texts(style, &many), certificate::texts(style, &all)].concat();
    insta::assert_snapshot!("certificates", shown.join("\n"));
}
