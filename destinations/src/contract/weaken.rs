//! A contract as a tree of what it knows, and the same tree with one thing less.

use super::Contract;
use toml::{Table, Value};

/// What only ever forbids: not knowing of it is not more careful, so it stays.
const FORBIDDING: [&str; 5] =
    ["dedup_key.holes", "errors.unknown", "time", "time.clock_skew_margin", "revision.evidence.*"];

/// Values that only ever forbid.
const FORBIDDING_VALUES: [&str; 3] = ["executes", "may_execute", "fail_open"];

/// The declaration with everything unknown left out and every key sorted.
pub(super) fn known_tree(contract: &Contract) -> Table {
    let mut tree = Table::try_from(contract).expect("a contract is made of tables, lists, words and numbers");
    prune(&mut tree);
    tree
}

/// Free text, in which the word "unknown" is a word.
const TEXT: [&str; 5] = ["id", "system", "operation", "name", "field"];

/// Takes out what says nothing: unknown values, empty lists, empty tables.
///
/// Grades of evidence stay: an unknown one below a better one says something.
fn prune(tree: &mut Table) {
    tree.retain(|key, value| match value {
        Value::String(word) => word != "unknown" || TEXT.contains(&key),
        Value::Table(grades) if key == "evidence" => !grades.is_empty(),
        Value::Table(inner) => {
            prune(inner);
            !inner.is_empty()
        }
        Value::Array(items) => {
            items.iter_mut().filter_map(Value::as_table_mut).for_each(prune);
            !items.is_empty()
        }
        _ => true,
    });
}

/// Every contract that knows one thing less, with the path of that thing.
pub(super) fn weakened(contract: &Contract) -> Vec<(String, Contract)> {
    let tree = Value::Table(known_tree(contract));
    let mut paths = Vec::new();
    collect(&tree, &mut Vec::new(), &mut paths);
    let mut weaker = Vec::new();
    for path in paths {
        let mut without = tree.clone();
        remove(&mut without, &path);
        // What cannot be left out (the name of a key) is not a thing that can be unknown.
        if let Ok(less) = without.try_into::<Contract>()
            && less != *contract
        {
            weaker.push((path.join("."), less));
        }
    }
    for path in contract.revision.evidence.keys() {
        let mut less = contract.clone();
        less.revision.evidence.insert(path.clone(), super::Grade::Unknown);
        weaker.push((format!("revision.evidence.{path}"), less));
    }
    weaker
}

/// Paths of every node that may be taken out; items of a list are named by their index.
fn collect(node: &Value, at: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match node {
        Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, item)| (n.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        at.push(key);
        if !forbids(at, child) {
            paths.push(at.clone());
        }
        // One part less of an error would match more answers, not fewer.
        let error = at.len() == 3 && at[0] == "errors";
        if !error {
            collect(child, at, paths);
        }
        at.pop();
    }
}

fn forbids(at: &[String], node: &Value) -> bool {
    let path = at.join(".");
    let below = |rule: &&str| rule.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix));
    let named = FORBIDDING.iter().any(|rule| path == **rule || below(rule));
    let hole = path.starts_with("dedup_key.holes.");
    let unknown_error = path.starts_with("errors.unknown.");
    let one_path = at.len() == 3 && at[0] == "converge" && at[2] == "only_on";
    let value = node.as_str().is_some_and(|word| FORBIDDING_VALUES.contains(&word));
    named || hole || unknown_error || one_path || value
}

fn remove(node: &mut Value, path: &[String]) {
    let Some((key, rest)) = path.split_first() else { return };
    match node {
        Value::Table(table) if rest.is_empty() => drop(table.remove(key)),
        Value::Table(table) => {
            if let Some(child) = table.get_mut(key) {
                remove(child, rest);
            }
        }
        Value::Array(items) => {
            let n: usize = key.parse().expect("items of a list are named by their index");
            if rest.is_empty() {
                items.remove(n);
            } else {
                remove(&mut items[n], rest);
            }
        }
        _ => {}
    }
}
