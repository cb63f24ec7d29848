//! What people send to the workflow: each decision as an HTTP request, and in words.

use sim::scenario::{Choice, Decide, Decision, Person, View};

/// A version that every case has left behind: an operation is a case only after a send was counted.
const OLDER: u32 = 1;

/// A person's decision on an operation.
pub fn decision(operation: &str, choice: &Choice) -> Decision {
    let by = match choice.by {
        Person::Owner => "service-desk-lead",
        Person::Other => "it-duty",
        Person::Requester => "the requester",
    };
    let (action, mut body, words) = match &choice.decide {
        Decide::Confirm { record } => (
            "confirm_found",
            serde_json::json!({"by": by, "reason": "found by its marker in the desk", "ref": record}),
            format!("finds {record} at the desk and confirms it"),
        ),
        Decide::Reject => (
            "reject",
            serde_json::json!({"by": by, "reason": "no longer wanted", "accept_risk": true}),
            "rejects it and answers for a record that may exist".to_owned(),
        ),
        Decide::DeclareAbsent { checked_at_ms } => (
            "declare_absent",
            serde_json::json!({
                "by": by, "reason": "it is not at the desk", "how": "every page of the desk, closed tickets too",
                "checked_at": checked_at_ms,
            }),
            "finds no ticket at the desk and declares it absent".to_owned(),
        ),
        Decide::AuthoriseCreation => (
            "authorise_creation",
            serde_json::json!({"by": by, "reason": "R17 still needs its ticket"}),
            "permits another ticket".to_owned(),
        ),
        Decide::Cancel => (
            "cancel",
            serde_json::json!({"by": by, "reason": "it is not needed any more"}),
            "cancels it".to_owned(),
        ),
        Decide::Reconcile => {
            let words = format!("{by} has the records compared with the desk's");
            return Decision { path: "/reconcile".into(), body: b"{}".to_vec(), words };
        }
    };
    let seen = match choice.view {
        View::Now => "",
        View::Older => {
            body["version"] = OLDER.into();
            ", going by what was there before"
        }
    };
    Decision {
        path: format!("/operations/{operation}/{action}"),
        body: body.to_string().into_bytes(),
        words: format!("{by} {words}{seen}"),
    }
}
