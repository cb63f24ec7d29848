//! The version of a workflow: a hash of everything that decides what it does.

use super::Definition;
use crate::operation::sha256_hex;
use crate::policy::Policy;
use serde_json::{Value, json};
use std::time::Duration;

impl Definition {
    /// SHA-256 of the canonical form, in hexadecimal: two definitions with the same digest do the same.
    ///
    /// Left out is what changes nothing that the engine does: who the people are, the reference of the
    /// control record (whether there is one counts), and the least guarantee, which only refuses a
    /// definition.
    ///
    /// # Panics
    /// Never: the canonical form has no number that JSON cannot carry.
    pub fn digest(&self) -> String {
        // Taken apart, so that a field that is added has to be considered here.
        let Definition {
            name,
            step,
            version,
            tenant,
            request_id,
            intent,
            required,
            personal,
            account,
            contract,
            assumptions,
            min_guarantee: _,
            sentinel,
            owner: _,
            owners: _,
            deadline,
            escalate_to: _,
            second_person,
            policy,
        } = self;
        let form = json!({
            "schema": "workflow-digest/1",
            "name": name,
            "step": step,
            "version": version,
            "tenant": tenant,
            "request_id": request_id,
            "intent": intent,
            "required": required,
            "personal": personal,
            "account": account,
            "contract": contract.digest(),
            "assumptions": assumptions,
            "has_sentinel": sentinel.is_some(),
            "deadline": span(*deadline),
            "second_person": second_person,
            "policy": of_policy(policy),
        });
        sha256_hex(&serde_json_canonicalizer::to_vec(&form).expect("its numbers are whole and small"))
    }
}

fn of_policy(policy: &Policy) -> Value {
    let Policy {
        send_timeout,
        max_sends,
        max_checks,
        first_pause,
        longest_pause,
        absence_max_age,
        authorisation_for,
        keep_ended,
        workers,
        body_limit,
        body_timeout,
        max_connections,
        max_open,
        max_pages,
        answer_limit,
    } = policy;
    // As text: a size may be beyond what is exact in JSON.
    json!({
        "send_timeout": span(*send_timeout),
        "max_sends": max_sends,
        "max_checks": max_checks,
        "first_pause": span(*first_pause),
        "longest_pause": span(*longest_pause),
        "absence_max_age": span(*absence_max_age),
        "authorisation_for": span(*authorisation_for),
        "keep_ended": keep_ended.map(span),
        "workers": workers.to_string(),
        "body_limit": body_limit.to_string(),
        "body_timeout": span(*body_timeout),
        "max_connections": max_connections.to_string(),
        "max_open": max_open.to_string(),
        "max_pages": max_pages,
        "answer_limit": answer_limit.to_string(),
    })
}

fn span(span: Duration) -> String {
    humantime::format_duration(span).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::tests::definition;
    use super::*;

    type Change = fn(&mut Definition);

    fn digest_after(change: Change) -> String {
        let mut changed = definition("zendesk_ticket");
        change(&mut changed);
        changed.digest()
    }

    #[test]
    fn whatever_decides_what_it_does_is_in_it() {
        let changes: [Change; 15] = [
            |def| def.name.push('x'),
            |def| def.step.push('x'),
            |def| def.version += 1,
            |def| def.tenant = Some("north".into()),
            |def| def.request_id.push('x'),
            |def| def.intent.push("more".into()),
            |def| def.required.push("requester".into()),
            |def| def.personal.push("title".into()),
            |def| def.account.push('x'),
            |def| def.contract = std::sync::Arc::new(destinations::named("desk_nothing").expect("built in")),
            |def| def.assumptions.max_pause += Duration::from_secs(1),
            |def| def.sentinel = Some("S-1".into()),
            |def| def.deadline += Duration::from_secs(1),
            |def| def.second_person = false,
            |def| def.policy.max_sends += 1,
        ];
        let mut digests: Vec<String> = changes.into_iter().map(digest_after).collect();
        digests.push(digest_after(|_| {}));
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), 16, "each change is another version");
    }

    #[test]
    fn who_the_people_are_is_not_in_it() {
        let same = digest_after(|_| {});
        assert_eq!(digest_after(|def| def.owner = "somebody else".into()), same);
        assert_eq!(digest_after(|def| def.min_guarantee = Some(destinations::Class::Owner)), same);
        assert_eq!(digest_after(|def| def.escalate_to = "somebody else".into()), same);
        let one = digest_after(|def| def.sentinel = Some("S-1".into()));
        assert_eq!(digest_after(|def| def.sentinel = Some("S-2".into())), one);
    }
}
