use super::*;
use crate::catalogue::Catalogue;
use crate::fault::{FaultTape, Place};
use crate::fixture::{CROWD, MUTANT, Toy, catalogue, create};
use crate::menu::menu;
use crate::scenario::Scenario as _;
use crate::terms::Terms;
use destinations::{Assumptions, Contract};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

const TEXT: &str = r#"# Found by swarm at 4f1c2aa.
#
# R17 asked for one ticket and the desk holds two.
schema   = "in-doubt/case/1"
scenario = "one-ticket"
contract = "zendesk_ticket"
seed     = 760
mutant   = "fresh-key-per-retry"
expect   = "violated"
issue    = "https://example.invalid/17"
found    = "at-most-one/helpdesk/9c1e"
deliveries = ["R17/d-1"]
schedule = 0

[[fault]]
at   = { exchange = { call = "create", about = "R17:create-ticket:v1", nth = 1 } }
what = { lose-response = "silence" }

[[fault]]
at   = { sync = { boot = 1, nth = 2, when = "after" } }
what = { kill = 5000 }
"#;

fn of(text: &str) -> Result<CaseFile, CaseFileError> {
    read("scenarios/cases/one-ticket.toml", text, &catalogue())
}

#[test]
fn a_case_file_reads_as_it_was_written() {
    let case = of(TEXT).unwrap();
    assert_eq!(case.recipe.case.to_string(), "one-ticket/zendesk_ticket@760");
    assert_eq!(case.recipe.mutant.as_deref(), Some(MUTANT));
    assert_eq!((case.recipe.tape.faults().len(), case.recipe.schedule), (2, Some(0)));
    assert_eq!(case.recipe.deliveries, Some(vec!["R17/d-1".to_owned()]));
    assert_eq!((case.expect, case.head.len()), (Expected::Violated, 3));
    assert_eq!(case.name(), "one-ticket-fresh-key-per-retry-at-most-one-9c1e");
    insta::assert_snapshot!("written", case.to_string());
    assert_eq!(of(&case.to_string()), Ok(case));
}

#[test]
fn each_mistake_is_explained_at_its_place() {
    let edits = [
        ("schema   = \"in-doubt/case/1\"", "schema   = \"in-doubt/case/2\""),
        ("schema   = \"in-doubt/case/1\"\n", ""),
        ("seed     = 760", "seed     = 7six"),
        ("seed     = 760", "seed     = -1"),
        ("seed     = 760", "sede     = 760"),
        ("seed     = 760\n", ""),
        ("\"one-ticket\"", "\"one-tiket\""),
        ("\"zendesk_ticket\"", "\"jira\""),
        ("\"fresh-key-per-retry\"", "\"fresh-key\""),
        ("\"violated\"", "\"broken\""),
        ("issue    = \"https://example.invalid/17\"\n", ""),
        ("[\"R17/d-1\"]", "[\"R17/d-2\"]"),
        ("[\"R17/d-1\"]", "[]"),
        ("schedule = 0", "schedule = 0.5"),
        ("lose-response = \"silence\"", "lose-responce = \"silence\""),
        ("lose-response = \"silence\"", "lose-response = \"quietly\""),
        ("what = { kill = 5000 }", "what = \"kill\""),
        ("what = { kill = 5000 }", "what = \"explode\""),
        ("what = { kill = 5000 }", "how  = { kill = 5000 }"),
        ("what = { kill = 5000 }", "what = { kill = 5000 }\nwhen = 3"),
        ("what = { kill = 5000 }", "what = { lose-response = \"silence\" }"),
        ("what = { kill = 5000 }", "what = { pause = 60000 }"),
        ("what = { kill = 5000 }", "what = \"lying-sync\""),
        ("sync = { boot", "synch = { boot"),
        ("boot = 1, nth = 2", "boot = 1, nth = 0"),
        ("boot = 1, nth = 2", "boot = 1"),
        ("boot = 1, nth = 2", "boot = 1, nth = -2"),
        ("when = \"after\"", "when = \"during\""),
        (
            "{ sync = { boot = 1, nth = 2, when = \"after\" } }",
            "{ exchange = { call = \"create\", about = \"R17:create-ticket:v1\", nth = 1 } }",
        ),
        (
            "{ sync = { boot = 1, nth = 2, when = \"after\" } }\nwhat = { kill = 5000 }",
            "{ exchange = { call = \"create\", about = \"R17:create-ticket:v1\", nth = 1 } }\nwhat = \"refuse\"",
        ),
        ("[[fault]]", "[fault]"),
    ];
    let places = [
        "{ exchange = { call = \"create\", about = \"R71:create-ticket:v1\", nth = 1 } }",
        "{ case = \"R99:create-ticket:v1\" }",
        "{ delivery = \"R17/d-7\" }",
        "{ exchange = { call = \"deliver\", about = \"R18\", nth = 1 } }",
    ];
    let mut shown = String::new();
    for (from, to) in edits {
        assert!(TEXT.contains(from), "{from}");
        // The last place, so that a second fault is changed rather than the first.
        let at = TEXT.rfind(from).unwrap();
        let text = format!("{}{to}{}", &TEXT[..at], &TEXT[at + from.len()..]);
        let error = of(&text).expect_err(to);
        shown += &format!("## {from} => {to}\n{error}\n  help: {}\n\n", error.help());
    }
    // Without the mistake, so that the names are known.
    let mutant = format!("mutant   = \"{MUTANT}\"\n");
    assert!(TEXT.contains(&mutant));
    for place in places {
        let what = if place.contains("case") { "{ act-late = 1000 }" } else { "{ hold-back = 1000 }" };
        let what = if place.contains("exchange") { "\"refuse\"" } else { what };
        let fault = format!("[[fault]]\nat   = {place}\nwhat = {what}\n");
        let text = format!("{}\n{fault}", TEXT.replace(&mutant, ""));
        let error = of(&text).expect_err(place);
        shown += &format!("## {place}\n{error}\n  help: {}\n\n", error.help());
    }
    insta::assert_snapshot!("errors", shown);
    // A further arrival has the name of its first one in its own.
    let again = "{ exchange = { call = \"deliver\", about = \"R17/d-1+1\", nth = 1 } }";
    let fault = format!("[[fault]]\nat   = {again}\nwhat = {{ lose-response = \"silence\" }}\n");
    assert!(of(&format!("{}\n{fault}", TEXT.replace(&mutant, ""))).is_ok());
}

#[test]
fn faults_that_cannot_be_survived_together_are_explained_too() {
    let cut = "what = { power-cut = { down = 100, keep = \"nothing\" } }";
    let text = TEXT.replace("what = { kill = 5000 }", cut);
    let text = format!(
        "{text}\n[[fault]]\nat = {{ sync = {{ boot = 1, nth = 3, when = \"before\" }} }}\nwhat = \"sync-error\"\n"
    );
    insta::assert_snapshot!("together", of(&text).unwrap_err().to_string());
}

/// Every fault of some menus that can be survived.
fn faults() -> Vec<Fault> {
    let (_, contract, assumptions) = crowd();
    let terms = Terms { contract, assumptions };
    let places = [
        Place::Delivery("R17/d-1".into()),
        Place::Connection { nth: 1 },
        Place::Exchange(create(1)),
        Place::Exchange(create(2)),
        Place::Phase { exchange: create(1), phase: crate::fault::Phase::Sent },
        Place::Sync { boot: 1, nth: 2, when: crate::fault::When::Before },
        Place::Record { about: "R17:create-ticket:v1".into(), nth: 1 },
        Place::Case("R17:create-ticket:v1".into()),
    ];
    let at = |at: &Place| -> Vec<Fault> {
        menu(at, &terms).into_iter().map(|what| Fault { at: at.clone(), what }).collect()
    };
    places.iter().flat_map(at).collect()
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let tape = prop::collection::vec(prop::sample::select(faults()), 0..4);
    let names = prop::sample::subsequence((17..29).map(|n| format!("R{n}/d-1")).collect::<Vec<_>>(), 1..12);
    let parts = (any::<u64>(), any::<bool>(), tape, prop::option::of(names), prop::option::of(any::<u64>()));
    parts.prop_map(|(seed, mutated, faults, deliveries, schedule)| Recipe {
        case: format!("{CROWD}/zendesk_ticket@{seed}").parse().unwrap(),
        mutant: mutated.then(|| MUTANT.to_owned()),
        tape: FaultTape::first_of_each_place(faults),
        deliveries,
        schedule,
    })
}

/// The catalogue, and the terms under which its crowd must survive; contracts are read once.
fn crowd() -> &'static (Catalogue, Arc<Contract>, Assumptions) {
    static CROWDED: OnceLock<(Catalogue, Arc<Contract>, Assumptions)> = OnceLock::new();
    CROWDED.get_or_init(|| {
        let mut known = catalogue();
        known.scenarios.push(Box::new(Toy(CROWD)));
        let contract = Toy(CROWD).contracts().remove(0);
        let assumptions = Toy(CROWD).assumptions(&contract);
        (known, contract, assumptions)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_recipe_is_read_back(
        recipe in recipes(),
        head in prop::collection::vec("[ -~ä→]{0,20}", 0..3),
        issue in prop::option::of(any::<String>()),
    ) {
        let (known, contract, assumptions) = crowd();
        let terms = Terms { contract, assumptions };
        prop_assume!(terms.unsurvivable(&recipe.tape).is_none());
        let head = head.iter().map(|line| line.trim_end().to_owned()).collect();
        let expect = if issue.is_some() { Expected::Violated } else { Expected::Held };
        let case = CaseFile { head, recipe, expect, issue, found: None };
        let text = case.to_string();
        let read = read("case.toml", &text, known);
        prop_assert_eq!(read.map_err(|error| error.to_string()), Ok(case), "{}", text);
    }
}
