//! The parts of a run alone, for `bench`: what is left of its cost without the store, and without HTTP.

use crate::access::{EVERY, operation};
use crate::belief;
use bytes::Bytes;
use destinations::{Assumptions, Contract};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use sim::belief::Belief;
use sim::disk::DiskImage;
use sim::fault::{Call, ExchangeName, Fault, Keep, Loss, Phase, Place, What, When};
use sim::plan::{DeskPlan, Plan, Workload};
use sim::scenario::{
    Believes, BoxError, BoxFuture, Choice, Decision, DrawnFaults, Goal, Node, Scenario, Seen, Serves, Story,
    Stream,
};
use sim::seed::Seed;
use std::convert::Infallible;
use std::sync::Arc;
use workflow::http::Io;
use workflow::licence::LicenceGround;
use workflow::operation::{Fingerprint, FrozenRequest, OperationKey, WireKey};
use workflow::state::State;
use workflow::store::{Finding, Intent, NewDelivery, NewEvidence, NewException, NewOperation, StoreAt};
use workflow::{Store, Timestamp};

const STORY: Story = Story {
    lines: "A part of a run, alone.\nOne answer is lost.\nOne crash strikes.\nNothing is concluded from it.\nIt is measured.",
    danger: "none of its own",
    holds: "nothing: it is measured, not judged",
};

/// A part of a run.
struct Bare {
    name: &'static str,
    requests: u32,
    boot: fn(Node, u32) -> BoxFuture<'static, Result<(), BoxError>>,
    believes: Believes,
    faults: fn(Seed) -> Vec<Fault>,
}

/// The same exchanges over HTTP, and no store.
pub fn without_store(requests: u32) -> Box<dyn Scenario> {
    let boot =
        |node, requests| -> BoxFuture<'static, Result<(), BoxError>> { Box::pin(serve(node, requests)) };
    let believes: Believes = |_| Ok(Belief::default());
    Box::new(Bare { name: "no-store", requests, boot, believes, faults: faults_on_the_wire })
}

/// The same commits, and no HTTP.
pub fn without_http(requests: u32) -> Box<dyn Scenario> {
    let boot =
        |node, requests| -> BoxFuture<'static, Result<(), BoxError>> { Box::pin(commit(node, requests)) };
    Box::new(Bare { name: "no-http", requests, boot, believes: belief::read, faults: faults_on_the_disk })
}

impl Scenario for Bare {
    fn name(&self) -> &'static str {
        self.name
    }

    fn story(&self) -> Story {
        STORY
    }

    fn contracts(&self) -> Vec<Arc<Contract>> {
        destinations::named(EVERY[1]).map(Arc::new).into_iter().collect()
    }

    fn assumptions(&self, _: &Contract) -> Assumptions {
        Assumptions::default()
    }

    fn workload(&self, _: &Contract, seed: Seed) -> Workload {
        let desk = DeskPlan { service_ms: 20, lag_ms: 0, seed: seed.0 };
        Workload { desk, ..Workload::default() }
    }

    fn faults(&self, _: &Contract, _: &Workload, seed: Seed) -> DrawnFaults {
        DrawnFaults { own: (self.faults)(seed), more: vec![] }
    }

    fn boot(&self, node: Node) -> BoxFuture<'static, Result<(), BoxError>> {
        (self.boot)(node, self.requests)
    }

    fn image(&self) -> DiskImage {
        belief::fresh_store()
    }

    fn believes(&self) -> Believes {
        self.believes
    }

    fn serves(&self) -> Serves {
        |seen: Seen<'_>| (seen.call == Call::Fetch).then(|| operation("R17"))
    }

    fn decision(&self, _: &str, _: &Choice, _: &Plan) -> Option<Decision> {
        None
    }

    fn settles_within_s(&self, _: &Contract) -> u64 {
        3_600
    }

    fn max_sends(&self) -> u32 {
        u32::MAX
    }

    fn goals(&self) -> Vec<Goal> {
        vec![]
    }
}

fn crash(rng: &mut sim::seed::Rng) -> What {
    let down = rng.within(10..=200);
    if rng.chance(500) { What::Kill(down) } else { What::PowerCut { down, keep: Keep::Mixed } }
}

fn faults_on_the_wire(seed: Seed) -> Vec<Fault> {
    let mut rng = seed.stream("faults");
    let fetch = |nth| ExchangeName { call: Call::Fetch, about: operation("R17"), nth };
    let lost = Fault { at: Place::Exchange(fetch(1)), what: What::LoseResponse(Loss::Reset) };
    let at = Place::Phase {
        exchange: fetch(2),
        phase: *rng.pick(&[Phase::BeforeSend, Phase::Sent, Phase::Answered]),
    };
    vec![lost, Fault { at, what: crash(&mut rng) }]
}

fn faults_on_the_disk(seed: Seed) -> Vec<Fault> {
    let mut rng = seed.stream("faults");
    let at = Place::Sync { boot: 1, nth: rng.within(3..=5) as u32, when: When::Before };
    vec![Fault { at, what: crash(&mut rng) }]
}

/// Delivers to itself and asks the desk once for each delivery, until an answer is heard; remembers nothing.
async fn serve(node: Node, requests: u32) -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind(&node.listen).await?;
    tokio::spawn(take_in(listener));
    for _ in 0..requests {
        let stream = tokio::net::TcpStream::connect(&node.listen).await?;
        let _ = exchange(stream, "/deliveries").await;
        while exchange((node.connect)(node.desk.clone()).await?, "/tickets/T0").await.is_none() {}
    }
    std::future::pending().await
}

async fn take_in(listener: tokio::net::TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<Incoming>| async move {
                let _ = request.into_body().collect().await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            let _ = http.auto_date_header(false).serve_connection(Io::new(stream), service).await;
        });
    }
}

/// One exchange; none where no answer was heard.
async fn exchange(stream: impl Stream + 'static, path: &str) -> Option<Bytes> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(Io::new(stream)).await.ok()?;
    let request = Request::get(path).header("host", "desk").body(Full::<Bytes>::default()).ok()?;
    let task = tokio::spawn(connection);
    let answer = sender.send_request(request).await.ok()?.into_body().collect().await.ok();
    task.abort();
    answer.map(|body| body.to_bytes())
}

/// Commits what each request commits: the delivery, the intent, and what became of it.
async fn commit(node: Node, requests: u32) -> Result<(), BoxError> {
    let store =
        Store::open(&StoreAt { connections: crate::access::connections(true), ..StoreAt::file(node.store) })?;
    store.open_operations().await?;
    for n in 0..requests {
        let name = format!("R{}", 17 + n);
        let key = OperationKey::from_printed(operation(&name));
        let frozen = FrozenRequest {
            method: "POST".into(),
            target: "/tickets".into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: format!(
                r#"{{"external_id":"wf1-{n:026}","requester":"c17","title":"{name}: access to the archive"}}"#
            ),
        };
        one_request(&store, &name, key, frozen).await?;
    }
    std::future::pending().await
}

async fn one_request(
    store: &Store,
    name: &str,
    key: OperationKey,
    frozen: FrozenRequest,
) -> Result<(), BoxError> {
    let digest = frozen.digest();
    let wire_key = WireKey::from_stored(format!("wf1-{name}"));
    let delivery =
        NewDelivery { source: "forms".into(), delivery_id: format!("{name}/1"), digest: digest.clone() };
    let operation = NewOperation {
        key: key.clone(),
        wire_key: wire_key.clone(),
        fingerprint: Fingerprint::from_stored(digest.clone()),
        frozen,
        state: State::Ready,
    };
    let nobody = NewException {
        reason: workflow::licence::Reason::ChangedRequest,
        owner: String::new(),
        deadline: Timestamp(0),
        escalate_to: String::new(),
        facts: String::new(),
        lookup: String::new(),
        key_lapses: None,
    };
    store.accept(delivery, operation, move |_| nobody.clone()).await?;
    let state = State::Sent;
    let send_not_after = store.now();
    let ground = LicenceGround::First;
    let intent = Intent {
        key: key.clone(),
        version: 1,
        state,
        wire_key,
        digest,
        whole_digest: String::new(),
        send_not_after,
        ground,
        authorisation: None,
        recreation: None,
    };
    let _ = store.intend(intent).await?;
    let evidence = NewEvidence { class: "refused", source: "create".into(), detail: "422 validation".into() };
    let state = State::RefusedByDestination;
    let finding = Finding {
        key,
        version: 2,
        state,
        evidence,
        not_before: Timestamp(0),
        external_ref: None,
        counts_check: false,
        exception: None,
        owner: String::new(),
    };
    let _ = store.find(finding).await?;
    Ok(())
}
