//! A workflow as a file: its definition in TOML, and who owns each decision that its contract leaves open.

mod reader;

use crate::definition::{Definition, Workflow};
use crate::licence::Reason;
use crate::policy::Policy;
use destinations::recovery::Open;
use destinations::tomltext::nearest;
use destinations::{Assumptions, Class, Contract, Grade};
use reader::{Reader, Section};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use toml::de::DeTable;

/// The version of such a file.
pub const SCHEMA: &str = "workflow/1";

/// A workflow that was read from a file.
#[derive(Clone, Debug)]
pub struct WorkflowFile {
    /// The workflow, checked.
    pub workflow: Workflow,
    /// Who owns each question that the contract leaves open, by its path; none where nobody does yet.
    pub decisions: Vec<Decision>,
}

/// A question that the contract leaves open, and who has to answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The question.
    pub open: Open,
    /// Who finds out and decides.
    pub owner: Option<String>,
}

/// One thing that is wrong with a file.
///
/// Its display is three parts: file and key; the place in the text with a caret; one line of help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    file: String,
    key: String,
    place: String,
    message: String,
    help: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.file, self.key)?;
        writeln!(f, "{}{}", self.place, self.message)?;
        write!(f, "help: {}", self.help)
    }
}

/// Why a file is no workflow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// Everything that is wrong with it.
    #[error("{}", .0.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n\n"))]
    Wrong(Vec<Mistake>),
}

/// Reads the contract that a file names.
type FindContract<'a> = &'a dyn Fn(&str) -> Result<Contract, String>;

const CLASSES: [(&str, Class); 5] = [
    ("owner", Class::Owner),
    ("lookup-confirms", Class::LookupConfirms),
    ("lookup-decides", Class::LookupDecides),
    ("converge", Class::Converge),
    ("replay", Class::Replay),
];
const GRADES: [(&str, Grade); 5] = [
    ("unknown", Grade::Unknown),
    ("assumed", Grade::Assumed),
    ("reported", Grade::Reported),
    ("quoted", Grade::Quoted),
    ("documented", Grade::Documented),
];
/// What a definition cannot do without.
const REQUIRED: [(&str, &str); 8] = [
    ("name", "give the workflow a name"),
    ("step", "name the step, such as \"create-ticket\": it is part of each operation's key"),
    ("request_id", "name the field that names a request: without it a repeat cannot be told"),
    ("intent", "list the fields that change what a request means"),
    ("contract", "name a contract that comes with the program, or a file beside this one"),
    ("owner", "say who decides what the engine cannot"),
    ("deadline", "say how long they have, such as \"4h\": a case without a deadline is forgotten"),
    ("escalate_to", "say who hears of a missed deadline"),
];

impl WorkflowFile {
    /// Reads a file; the contract is one that comes with the program, or a path from the file's folder.
    ///
    /// # Errors
    /// When it cannot be read, and everything that is wrong with it otherwise.
    pub fn read(path: &Path) -> Result<WorkflowFile, FileError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|why| FileError::Unreadable(format!("{name}: {why}")))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        WorkflowFile::from_toml(&name, &text, &move |contract| find_contract(&folder, contract))
    }

    /// Reads a text; `name` is the file that mistakes name.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_toml(name: &str, text: &str, contract: FindContract<'_>) -> Result<WorkflowFile, FileError> {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader::new(name, text);
        for error in &errors {
            reader.no_toml(error);
        }
        let read = if reader.is_sound() { read(&mut reader, table.get_ref(), contract) } else { None };
        match read {
            Some(file) if reader.is_sound() => Ok(file),
            _ => Err(FileError::Wrong(reader.mistakes())),
        }
    }
}

/// The contract of this name: one that comes with the program, or the file at this path.
fn find_contract(folder: &Path, name: &str) -> Result<Contract, String> {
    if let Some(known) = destinations::named(name) {
        return Ok(known);
    }
    let path = folder.join(name);
    let ids = || destinations::builtin_text().iter().map(|(id, _)| *id).collect::<Vec<_>>().join(", ");
    let text = std::fs::read_to_string(&path)
        .map_err(|why| format!("there is no contract `{name}` ({}), and {}: {why}", ids(), path.display()))?;
    Contract::from_toml(&path.display().to_string(), &text).map_err(|why| why.to_string())
}

fn read<'t>(
    reader: &mut Reader<'t>,
    table: &'t DeTable<'t>,
    contract: FindContract<'_>,
) -> Option<WorkflowFile> {
    let mut whole = Reader::whole(table);
    match reader.text(&mut whole, "schema").as_deref() {
        Some(SCHEMA) => {}
        // What the fields of another version mean is not known here.
        other => {
            let given = other.map_or("it is missing".into(), |other| format!("`{other}` is not known here"));
            reader.wrong("schema", given, format!("write schema = \"{SCHEMA}\""));
            return None;
        }
    }
    let definition = definition(reader, &mut whole, contract);
    let mut decisions = reader.section(&mut whole, "decisions");
    let (owners, named) = owners(reader, &mut decisions);
    reader.end(&whole);
    for (key, help) in REQUIRED.into_iter().filter(|(key, _)| !table.contains_key(*key)) {
        reader.wrong(key, "it is missing", help);
    }
    let definition = Definition { owners, ..definition? };
    let decisions = decided(reader, &definition, named);
    if !reader.is_sound() {
        return None;
    }
    match definition.build() {
        Ok(workflow) => Some(WorkflowFile { workflow, decisions }),
        Err(refused) => {
            for problem in refused.problems {
                // Each problem names the field that it is about first.
                let key = problem.split('`').nth(1).unwrap_or_default().to_owned();
                reader.wrong(&key, problem, "what a workflow needs is documented at `workflow::Definition`");
            }
            None
        }
    }
}

/// Everything but the decisions; none where there is no contract.
fn definition<'t>(
    reader: &mut Reader<'t>,
    whole: &mut Section<'t>,
    contract: FindContract<'_>,
) -> Option<Definition> {
    let name = reader.text(whole, "name").unwrap_or_default();
    let step = reader.text(whole, "step").unwrap_or_default();
    let found = reader.text(whole, "contract").map(|named| contract(&named));
    let found = match found {
        None => None,
        Some(Ok(contract)) => Some(contract),
        Some(Err(why)) => {
            reader.wrong("contract", why, "a contract's path is taken from the folder of this file");
            None
        }
    };
    // Where there is none, the rest is read all the same: its mistakes are told, too.
    let stand_in = || Contract::from_toml("", "id = \"none\"\nsystem = \"none\"\noperation = \"none\"");
    let is_found = found.is_some();
    let contract = found.unwrap_or_else(|| stand_in().expect("its three fields are all that it needs"));
    let usual = Definition::new(&name, &step, contract);
    let definition = Definition {
        version: reader.number(whole, "version").unwrap_or(usual.version),
        tenant: reader.text(whole, "tenant"),
        request_id: reader.text(whole, "request_id").unwrap_or_default(),
        intent: reader.texts(whole, "intent").unwrap_or_default(),
        required: reader.texts(whole, "required").unwrap_or_default(),
        personal: reader.texts(whole, "personal").unwrap_or_default(),
        account: reader.text(whole, "account").unwrap_or(usual.account.clone()),
        min_guarantee: reader.word(whole, "min_guarantee", &CLASSES),
        sentinel: reader.text(whole, "sentinel"),
        owner: reader.text(whole, "owner").unwrap_or_default(),
        deadline: reader.time(whole, "deadline").unwrap_or_default(),
        escalate_to: reader.text(whole, "escalate_to").unwrap_or_default(),
        second_person: reader.flag(whole, "second_person").unwrap_or(usual.second_person),
        assumptions: assumptions(reader, whole),
        policy: policy(reader, whole),
        contract: Arc::clone(&usual.contract),
        ..usual
    };
    is_found.then_some(definition)
}

fn assumptions<'t>(reader: &mut Reader<'t>, whole: &mut Section<'t>) -> Assumptions {
    let mut table = reader.section(whole, "assumptions");
    let usual = Assumptions::default();
    let table = &mut table;
    let assumptions = Assumptions {
        max_transit: reader.time(table, "max_transit").unwrap_or(usual.max_transit),
        max_pause: reader.time(table, "max_pause").unwrap_or(usual.max_pause),
        clock_skew: reader.time(table, "clock_skew").unwrap_or(usual.clock_skew),
        two_clocks: reader.flag(table, "two_clocks").unwrap_or(usual.two_clocks),
        assumed_late_commit: reader.time(table, "assumed_late_commit"),
        attested_atomic: reader.flag(table, "attested_atomic").unwrap_or(usual.attested_atomic),
        evidence_floor: reader.word(table, "evidence_floor", &GRADES).unwrap_or(usual.evidence_floor),
    };
    reader.end(table);
    assumptions
}

fn policy<'t>(reader: &mut Reader<'t>, whole: &mut Section<'t>) -> Policy {
    let mut table = reader.section(whole, "policy");
    let usual = Policy::default();
    let table = &mut table;
    let policy = Policy {
        send_timeout: reader.time(table, "send_timeout").unwrap_or(usual.send_timeout),
        max_sends: reader.number(table, "max_sends").unwrap_or(usual.max_sends),
        max_checks: reader.number(table, "max_checks").unwrap_or(usual.max_checks),
        first_pause: reader.time(table, "first_pause").unwrap_or(usual.first_pause),
        longest_pause: reader.time(table, "longest_pause").unwrap_or(usual.longest_pause),
        absence_max_age: reader.time(table, "absence_max_age").unwrap_or(usual.absence_max_age),
        authorisation_for: reader.time(table, "authorisation_for").unwrap_or(usual.authorisation_for),
        keep_ended: reader.time(table, "keep_ended").or(usual.keep_ended),
        workers: reader.number(table, "workers").unwrap_or(usual.workers),
        body_limit: reader.number(table, "body_limit").unwrap_or(usual.body_limit),
        body_timeout: reader.time(table, "body_timeout").unwrap_or(usual.body_timeout),
        max_connections: reader.number(table, "max_connections").unwrap_or(usual.max_connections),
        max_open: reader.number(table, "max_open").unwrap_or(usual.max_open),
        max_pages: reader.number(table, "max_pages").unwrap_or(usual.max_pages),
        answer_limit: reader.number(table, "answer_limit").unwrap_or(usual.answer_limit),
    };
    reader.end(table);
    policy
}

/// Who decides on the cases of a reason, and the questions of the contract with their owners.
fn owners<'t>(
    reader: &mut Reader<'t>,
    decisions: &mut Section<'t>,
) -> (BTreeMap<Reason, String>, Vec<(String, String)>) {
    let mut cases = reader.section(decisions, "cases");
    let mut owners = BTreeMap::new();
    // The other two go on with whom the permission came from.
    let of_their_own = Reason::ALL.into_iter().filter(|reason| !reason.is_of_a_permission());
    for reason in of_their_own {
        if let Some(owner) = reader.text(&mut cases, reason.code()) {
            owners.insert(reason, owner);
        }
    }
    reader.end(&cases);
    let named = reader.named(decisions);
    (owners, named)
}

/// Every question that the contract leaves open, with its owner. An owner of what is not open is a mistake:
/// something else was meant, or the contract has learnt it since.
fn decided(reader: &mut Reader<'_>, definition: &Definition, named: Vec<(String, String)>) -> Vec<Decision> {
    let open = definition.contract.open(&definition.assumptions);
    let paths: Vec<&str> = open.iter().map(|open| open.path.as_str()).collect();
    for (path, _) in named.iter().filter(|(path, _)| !paths.contains(&path.as_str())) {
        let help = match (nearest(path, &paths), paths.is_empty()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, true) => "it leaves nothing open".to_owned(),
            (None, false) => format!("open are: {}", paths.join(", ")),
        };
        let message = format!("the contract `{}` does not leave `{path}` open", definition.contract.id);
        reader.wrong(&format!("decisions.{path}"), message, help);
    }
    let owner = |path: &str| named.iter().find(|(named, _)| named == path).map(|(_, owner)| owner.clone());
    open.iter().map(|open| Decision { owner: owner(&open.path), open: open.clone() }).collect()
}
