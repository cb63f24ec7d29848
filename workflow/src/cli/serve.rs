//! `serve`: the workflow of a file, on real sockets, until Ctrl-C.

use super::CliError;
use super::args::ServeArgs;
use super::runbook::{gate, read_file};
use crate::connector::Connect;
use crate::definition::Workflow;
use crate::engine::{Engine, Setup};
use crate::store::StoreAt;
use std::io::Write;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Serves; comes back when somebody asks for the end, or when the store has failed.
pub(super) fn serve(args: &ServeArgs, out: &mut dyn Write) -> Result<String, CliError> {
    let file = read_file(&args.file)?;
    if args.require_gate {
        gate(&file, args.results.as_deref())?;
    }
    let credentials = args.credentials_env.as_deref().map(credentials).transpose()?;
    let setup = Setup {
        store: StoreAt::file(args.store.display().to_string()),
        destination: args.destination.clone(),
        credentials,
        connect: Connect::tcp(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|why| CliError::Unreachable(format!("no runtime: {why}")))?;
    runtime.block_on(served(file.workflow, setup, args.listen, out))
}

async fn served(
    workflow: Workflow,
    setup: Setup,
    listen: SocketAddr,
    out: &mut dyn Write,
) -> Result<String, CliError> {
    let failed = |what: &str, why: &dyn std::fmt::Display| CliError::Unreachable(format!("{what}: {why}"));
    // The port is taken before anything is sent.
    let listener = TcpListener::bind(listen).await.map_err(|why| failed(&listen.to_string(), &why))?;
    let address = listener.local_addr().map_err(|why| failed(&listen.to_string(), &why))?;
    let store = setup.store.path.clone();
    let name = workflow.definition().name.clone();
    let engine = Engine::open(workflow, setup).await.map_err(|why| failed(&store, &why))?;
    let _ = writeln!(out, "{name} listens on {address}").and_then(|()| out.flush());
    tokio::select! {
        biased;
        asked = tokio::signal::ctrl_c() => match asked {
            Ok(()) => Ok("ended; what was under way goes on at the next start\n".into()),
            Err(why) => Err(failed("no signals", &why)),
        },
        stopped = engine.run() => match stopped {
            Ok(never) => match never {},
            Err(why) => Err(failed(&store, &why)),
        },
        stopped = engine.serve(listener) => match stopped {
            Ok(never) => match never {},
            Err(why) => Err(failed("the intake's listener", &why)),
        },
    }
}

/// The header line with the destination's credentials, from the environment: what is in the arguments, every
/// process of the machine can read.
#[expect(clippy::disallowed_methods, reason = "the edge, at which configuration is read")]
fn credentials(variable: &str) -> Result<(String, String), CliError> {
    let usage = |why: &str| CliError::Usage(format!("--credentials-env {variable}: {why}"));
    let line = std::env::var(variable).map_err(|_| usage("there is no such variable, or it is no text"))?;
    let (name, value) = line
        .split_once(':')
        .ok_or_else(|| usage("its value has to be a header line, such as `Authorization: Bearer ...`"))?;
    let (name, value) = (name.trim().to_lowercase(), value.trim().to_owned());
    let is_header = hyper::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
        && hyper::header::HeaderValue::from_str(&value).is_ok();
    if is_header { Ok((name, value)) } else { Err(usage("its value is no header line")) }
}
