//! What is printed at the start and at the end.

use super::args::Args;
use super::desk::DeskHost;
use destinations::EffectKind;
use workflow::{Setup, Workflow};

/// Where everything is, and what to type next.
pub(crate) fn introduce(args: &Args, workflow: &Workflow, setup: &Setup) {
    let at = format!("http://127.0.0.1:{}", args.port);
    let operation = format!("{at}/operations/R17:create-ticket:v1");
    let class = workflow.recovery().class();
    let desk = match (&args.desk, args.lose_responses) {
        (Some(_), _) => String::new(),
        (None, 0) => ", in this process".into(),
        (None, 1) => ", in this process; it does not answer the first create".into(),
        (None, n) => format!(", in this process; it does not answer the first {n} creates"),
    };
    println!("intake {at}");
    println!("desk   http://{}, follows {}{desk}", setup.destination, args.contract);
    println!("store  {}", setup.store.path);
    println!("after a send in doubt the contract permits: {class}\n");
    println!("Type in another terminal, to deliver R17 (again, for a repeat):\n");
    println!(
        "  curl -s {at}/deliveries -H 'content-type: application/json' -d '{{\"source\":\"forms\",\
         \"delivery_id\":\"d-1\",\"request\":{{\"id\":\"R17\",\"title\":\"Access to the archive\",\
         \"requester\":\"c17\"}}}}'\n"
    );
    println!("to ask what is known of its operation, and what comes next:\n\n  curl -s {operation}\n");
    println!("to list what waits for a person:\n\n  curl -s {at}/exceptions\n");
    println!("to decide, as that person, once you have found the ticket at the desk:\n");
    println!(
        "  curl -s {operation}/confirm_found -H 'content-type: application/json' -d '{{\"by\":\
         \"service-desk-lead\",\"reason\":\"found by its marker\",\"ref\":\"T93\"}}'\n"
    );
    let pid = std::process::id();
    println!("Ctrl-C ends it. After a `kill -9 {pid}` the same command takes up whatever has not ended.\n");
}

/// What the desk holds, counted in its own ledger.
pub(crate) fn part(desk: Option<&DeskHost>) {
    let Some(desk) = desk else {
        println!("\nstopped; what the desk holds, only the desk knows");
        return;
    };
    let (ledger, busy) = desk.ledger();
    let records = ledger.records();
    let tickets = if records.len() == 1 { "ticket" } else { "tickets" };
    println!("\nstopped; the desk holds {} {tickets}", records.len());
    for effect in ledger.effects().iter().filter(|effect| effect.kind == EffectKind::Created) {
        let body: serde_json::Value = serde_json::from_str(&effect.by.body).unwrap_or_default();
        let marker = body["marker"].as_str().unwrap_or("without a marker");
        println!("  {}  {marker}", effect.record);
    }
    if busy {
        println!("  and still works on a create; it ends all the same");
    }
}
