//! One exchange with a running service, by the engine's own connector: it, too, knows when nothing was sent.

use super::CliError;
use crate::connector::{Connect, Connector};
use crate::evidence::Observed;
use crate::mutant::Mutant;
use crate::operation::FrozenRequest;
use serde_json::Value;
use std::time::Duration;
use tokio::runtime::Runtime;

/// From connecting to the end of the answer: an act may fetch a record from the destination meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);
/// For what compares every operation.
const LONG_PATIENCE: Duration = Duration::from_secs(6 * 3_600);
/// Bytes of an answer: a thousand cases are shorter.
const LIMIT: usize = 8 * 1024 * 1024;

/// What is to be done when nobody knows whether an act was taken.
pub(super) const IN_DOUBT: &str = "\n  help: look whether it was taken before you decide again";

pub(super) struct Remote {
    connector: Connector,
    runtime: Runtime,
    patience: Duration,
}

/// The path of an operation: its own percent signs are escaped once more.
pub(super) fn path(operation: &str) -> String {
    let key = percent_encoding::utf8_percent_encode(operation, percent_encoding::NON_ALPHANUMERIC);
    format!("/operations/{key}")
}

impl Remote {
    pub(super) fn at(address: &str) -> Result<Remote, CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| CliError::Unreachable(e.to_string()))?;
        let connector = Connector {
            connect: Connect::tcp(),
            address: address.to_owned(),
            credentials: None,
            answer_limit: LIMIT,
            max_pages: 1,
            mutant: Mutant::default(),
        };
        Ok(Remote { connector, runtime, patience: PATIENCE })
    }

    /// For what takes long: two exchanges with the destination for each operation.
    pub(super) fn patiently(self) -> Remote {
        Remote { patience: LONG_PATIENCE, ..self }
    }

    pub(super) fn get(&self, path: &str) -> Result<(u16, Value), CliError> {
        self.exchange("GET", path, String::new())
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<(u16, Value), CliError> {
        self.exchange("POST", path, body.to_string())
    }

    fn exchange(&self, method: &str, path: &str, body: String) -> Result<(u16, Value), CliError> {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let request = FrozenRequest { method: method.to_owned(), target: path.to_owned(), headers, body };
        let in_doubt = if method == "POST" { IN_DOUBT } else { "" };
        let unreachable = |why: String| {
            Err(CliError::Unreachable(format!("the service at {}: {why}", self.connector.address)))
        };
        match self.runtime.block_on(self.connector.exchange(&request, self.patience)) {
            Observed::Answer { status, body } => match serde_json::from_slice(&body) {
                Ok(body) => Ok((status, body)),
                Err(_) => unreachable(format!("it does not answer like a workflow{in_doubt}")),
            },
            Observed::NotSent { why } => unreachable(format!("nothing was sent: {why}")),
            Observed::Broken { why } => unreachable(format!("{why}{in_doubt}")),
        }
    }
}
