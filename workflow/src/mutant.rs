//! The known mistakes that the simulator can switch on, one at a time, to show that it would notice them.
//!
//! A production build has no way to switch one on: without the feature, [`Mutant::is`] is a constant `false`,
//! and the feature refuses to compile outside the simulator.

mod seams;

pub(crate) use seams::rendered_anew;

#[cfg(all(feature = "mutants", not(madsim)))]
compile_error!("the feature `mutants` is for the simulated build alone");

/// One mistake: the real workflow with one small thing wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Each further attempt carries a new key.
    FreshKeyPerRetry,
    /// A time-out is recorded as a rejection.
    TimeoutIsRejection,
    /// The request leaves before its intent is durable.
    SendBeforeIntent,
    /// Commits are not synced to the disk.
    SkipFsync,
    /// Each delivery looks up, then creates, without a claim.
    LookupThenCreate,
    /// A key is used after the destination may have forgotten it.
    IgnoreSafeUntil,
    /// The operation's key contains the id of the delivery.
    DeliveryIdInKey,
    /// Two operations carry the same key.
    SameKeyForAll,
    /// The request is sent without its key and its reference.
    KeyLeftOut,
    /// Each start of the process makes new keys for what is open.
    KeyPerProcess,
    /// Each further attempt renders its body again, with the attempt's number in it.
    BodyRenderedAnew,
    /// A repeat with another meaning replaces what is sent.
    ChangedPayloadSent,
    /// A delivery is acknowledged before it is durable.
    AcknowledgedBeforeDurable,
    /// A repeat is acknowledged and not recorded.
    RepeatNotRecorded,
    /// A repeat of an operation that has ended begins it anew.
    RepeatStartsOver,
    /// Repeats are known by the memory of one process.
    MemoryOnlyDedupe,
    /// A source that hangs up stops the taking of its delivery half way.
    HangUpCutsShort,
    /// A delivery that cannot be read ends whoever reads it.
    PanicOnPoison,
    /// An undocumented error is recorded as a rejection.
    ErrorIsRejection,
    /// "it exists already" is recorded as a rejection.
    ConflictIsFailure,
    /// "it exists already" is answered with a new key.
    ConflictRetriedFresh,
    /// A success without an id is taken for no success and sent again.
    SuccessWithoutIdResends,
    /// A success without an id is recorded as completed.
    SuccessWithoutIdCompletes,
    /// A documented refusal is sent again for as long as it is refused.
    RefusalRetried,
    /// A success that cannot be read ends the worker.
    PanicOnUnreadable,
    /// The HTTP client sends again by itself when the connection breaks.
    ClientRetries,
    /// An answer is waited for without end.
    NoSendTimeout,
    /// It is sent again while the first request may still be in flight.
    ResendInFlight,
    /// Sends have no budget.
    BudgetNotKept,
    /// Each start of the process begins a new budget.
    BudgetForgottenAtStart,
    /// A send is counted when its answer has come.
    CountedAtEnd,
    /// A look-up that finds nothing decides before late commits can have come.
    SettleWithoutHorizon,
    /// A look-up that finds nothing decides without its control.
    NoPositiveControl,
    /// A look-up that fails counts as one that finds nothing.
    LookupErrorIsMiss,
    /// A look-up reads one page.
    FirstPageOnly,
    /// Whatever a look-up finds is taken for ours.
    AnyMatchIsOurs,
    /// Look-ups have no budget, so that nobody is ever asked.
    LooksForEver,
    /// What cannot be resolved is recorded as failed instead of asked.
    DoubtExpires,
    /// An interrupted send is ready to be sent after a crash.
    CrashReturnsToReady,
    /// An interrupted send is taken for done after a crash.
    CrashMeansDone,
    /// An interrupted send is taken for failed after a crash.
    CrashMeansFailed,
    /// What was open before a start is not taken up.
    ForgetsOpenAtStart,
    /// What had ended is taken up again at a start.
    EndedTakenUpAgain,
    /// What an opened store shows is believed as it is.
    NothingAfterOpening,
    /// The checkpoint after opening is not followed by a write.
    NoWriteAfterCheckpoint,
    /// A commit that failed is taken for committed.
    UnknownCommitStands,
    /// After a commit that failed, the same process goes on with a new attempt.
    UnknownCommitRetried,
    /// Evidence is dropped when the store cannot take it at once.
    EvidenceDropped,
    /// An operation is given up when the store cannot serve it at once.
    GivenUpWhenFull,
    /// A case has no owner.
    ExceptionWithoutOwner,
    /// A case is opened and nobody is told.
    ExceptionWithoutAlert,
    /// A person's reference is believed without reading the record.
    ConfirmUnchecked,
    /// A record that cannot be read is taken for one that is not there.
    UnfetchedIsProof,
    /// A person's decision leaves no row in the chain.
    DecisionUntraced,
    /// A record is declared absent while one can still come.
    AbsenceTooEarly,
    /// A person's permission is not used up by the send that it permits.
    AuthorisationReusable,
    /// What a person permitted is not taken up after a crash.
    AuthorisationForgotten,
    /// A permitted send that had no effect is repeated without a further permission.
    CreationRetried,
    /// A person who hangs up stops the taking of their decision half way.
    HangUpCutsDecision,
    /// What is cancelled while it may have been applied is taken for withdrawn.
    CancelIsRejection,
    /// What was cancelled is sent again all the same.
    CancelNotKept,
    /// A reconciliation reports what it has seen once.
    NoSecondLook,
    /// Another version of a step begins while the one before it has the request.
    VersionStartsBeside,
    /// Nothing is kept of an operation whose records are removed.
    TombstoneDropped,
    /// A reconciliation looks only for what is recorded, not for what is there besides.
    ReconciledOneWay,
}

/// Name, mistake, the invariant that must catch it, and the mistake in words.
pub const MISTAKES: &[(&str, Mistake, &str, &str)] = &[
    ("fresh-key-per-retry", Mistake::FreshKeyPerRetry, "V7", "each further attempt carries a new key"),
    ("timeout-is-rejection", Mistake::TimeoutIsRejection, "V3", "a time-out is recorded as a rejection"),
    (
        "send-before-intent",
        Mistake::SendBeforeIntent,
        "V2",
        "the request leaves before its intent is durable",
    ),
    ("skip-fsync", Mistake::SkipFsync, "V10", "commits are not synced to the disk"),
    (
        "lookup-then-create",
        Mistake::LookupThenCreate,
        "V1",
        "each delivery looks up, then creates, without a claim",
    ),
    (
        "ignore-safe-until",
        Mistake::IgnoreSafeUntil,
        "V6",
        "a key is used after the destination may have forgotten it",
    ),
    (
        "delivery-id-in-key",
        Mistake::DeliveryIdInKey,
        "V7",
        "the operation's key contains the id of the delivery",
    ),
    ("same-key-for-all", Mistake::SameKeyForAll, "V7", "two operations carry the same key"),
    ("key-left-out", Mistake::KeyLeftOut, "V1", "the request is sent without its key and its reference"),
    (
        "key-per-process",
        Mistake::KeyPerProcess,
        "V7",
        "each start of the process makes new keys for what is open",
    ),
    (
        "body-rendered-anew",
        Mistake::BodyRenderedAnew,
        "V7",
        "each further attempt renders its body again, with the attempt's number in it",
    ),
    (
        "changed-payload-sent",
        Mistake::ChangedPayloadSent,
        "V7",
        "a repeat with another meaning replaces what is sent",
    ),
    (
        "acknowledged-before-durable",
        Mistake::AcknowledgedBeforeDurable,
        "V10",
        "a delivery is acknowledged before it is durable",
    ),
    ("repeat-not-recorded", Mistake::RepeatNotRecorded, "V10", "a repeat is acknowledged and not recorded"),
    (
        "repeat-starts-over",
        Mistake::RepeatStartsOver,
        "V1",
        "a repeat of an operation that has ended begins it anew",
    ),
    ("memory-only-dedupe", Mistake::MemoryOnlyDedupe, "V1", "repeats are known by the memory of one process"),
    (
        "hang-up-cuts-short",
        Mistake::HangUpCutsShort,
        "V18",
        "a source that hangs up stops the taking of its delivery half way",
    ),
    ("panic-on-poison", Mistake::PanicOnPoison, "V0", "a delivery that cannot be read ends whoever reads it"),
    (
        "error-is-rejection",
        Mistake::ErrorIsRejection,
        "V3",
        "an undocumented error is recorded as a rejection",
    ),
    (
        "conflict-is-failure",
        Mistake::ConflictIsFailure,
        "V3",
        "\"it exists already\" is recorded as a rejection",
    ),
    (
        "conflict-retried-fresh",
        Mistake::ConflictRetriedFresh,
        "V7",
        "\"it exists already\" is answered with a new key",
    ),
    (
        "success-without-id-resends",
        Mistake::SuccessWithoutIdResends,
        "V1",
        "a success without an id is taken for no success and sent again",
    ),
    (
        "success-without-id-completes",
        Mistake::SuccessWithoutIdCompletes,
        "V4",
        "a success without an id is recorded as completed",
    ),
    (
        "refusal-retried",
        Mistake::RefusalRetried,
        "V22",
        "a documented refusal is sent again for as long as it is refused",
    ),
    (
        "panic-on-unreadable",
        Mistake::PanicOnUnreadable,
        "V0",
        "a success that cannot be read ends the worker",
    ),
    (
        "client-retries",
        Mistake::ClientRetries,
        "V6",
        "the HTTP client sends again by itself when the connection breaks",
    ),
    ("no-send-timeout", Mistake::NoSendTimeout, "V18", "an answer is waited for without end"),
    (
        "resend-in-flight",
        Mistake::ResendInFlight,
        "V6",
        "it is sent again while the first request may still be in flight",
    ),
    ("budget-not-kept", Mistake::BudgetNotKept, "V11", "sends have no budget"),
    (
        "budget-forgotten-at-start",
        Mistake::BudgetForgottenAtStart,
        "V11",
        "each start of the process begins a new budget",
    ),
    ("counted-at-end", Mistake::CountedAtEnd, "V11", "a send is counted when its answer has come"),
    (
        "settle-without-horizon",
        Mistake::SettleWithoutHorizon,
        "V21",
        "a look-up that finds nothing decides before late commits can have come",
    ),
    (
        "no-positive-control",
        Mistake::NoPositiveControl,
        "V21",
        "a look-up that finds nothing decides without its control",
    ),
    (
        "lookup-error-is-miss",
        Mistake::LookupErrorIsMiss,
        "V21",
        "a look-up that fails counts as one that finds nothing",
    ),
    ("first-page-only", Mistake::FirstPageOnly, "V21", "a look-up reads one page"),
    ("any-match-is-ours", Mistake::AnyMatchIsOurs, "V4", "whatever a look-up finds is taken for ours"),
    ("looks-for-ever", Mistake::LooksForEver, "V18", "look-ups have no budget, so that nobody is ever asked"),
    (
        "doubt-expires",
        Mistake::DoubtExpires,
        "V5",
        "what cannot be resolved is recorded as failed instead of asked",
    ),
    (
        "crash-returns-to-ready",
        Mistake::CrashReturnsToReady,
        "V6",
        "an interrupted send is ready to be sent after a crash",
    ),
    (
        "crash-means-done",
        Mistake::CrashMeansDone,
        "V5",
        "an interrupted send is taken for done after a crash",
    ),
    (
        "crash-means-failed",
        Mistake::CrashMeansFailed,
        "V3",
        "an interrupted send is taken for failed after a crash",
    ),
    (
        "forgets-open-at-start",
        Mistake::ForgetsOpenAtStart,
        "V18",
        "what was open before a start is not taken up",
    ),
    (
        "ended-taken-up-again",
        Mistake::EndedTakenUpAgain,
        "V13",
        "what had ended is taken up again at a start",
    ),
    (
        "nothing-after-opening",
        Mistake::NothingAfterOpening,
        "V18",
        "what an opened store shows is believed as it is",
    ),
    (
        "no-write-after-checkpoint",
        Mistake::NoWriteAfterCheckpoint,
        "V18",
        "the checkpoint after opening is not followed by a write",
    ),
    (
        "unknown-commit-stands",
        Mistake::UnknownCommitStands,
        "V20",
        "a commit that failed is taken for committed",
    ),
    (
        "unknown-commit-retried",
        Mistake::UnknownCommitRetried,
        "V20",
        "after a commit that failed, the same process goes on with a new attempt",
    ),
    (
        "evidence-dropped",
        Mistake::EvidenceDropped,
        "V18",
        "evidence is dropped when the store cannot take it at once",
    ),
    (
        "given-up-when-full",
        Mistake::GivenUpWhenFull,
        "V18",
        "an operation is given up when the store cannot serve it at once",
    ),
    ("exception-without-owner", Mistake::ExceptionWithoutOwner, "V9", "a case has no owner"),
    ("exception-without-alert", Mistake::ExceptionWithoutAlert, "V9", "a case is opened and nobody is told"),
    (
        "confirm-unchecked",
        Mistake::ConfirmUnchecked,
        "V4",
        "a person's reference is believed without reading the record",
    ),
    (
        "unfetched-is-proof",
        Mistake::UnfetchedIsProof,
        "V3",
        "a record that cannot be read is taken for one that is not there",
    ),
    ("decision-untraced", Mistake::DecisionUntraced, "V17", "a person's decision leaves no row in the chain"),
    (
        "absence-too-early",
        Mistake::AbsenceTooEarly,
        "V21",
        "a record is declared absent while one can still come",
    ),
    (
        "authorisation-reusable",
        Mistake::AuthorisationReusable,
        "V7",
        "a person's permission is not used up by the send that it permits",
    ),
    (
        "authorisation-forgotten",
        Mistake::AuthorisationForgotten,
        "V18",
        "what a person permitted is not taken up after a crash",
    ),
    (
        "creation-retried",
        Mistake::CreationRetried,
        "V6",
        "a permitted send that had no effect is repeated without a further permission",
    ),
    (
        "hang-up-cuts-decision",
        Mistake::HangUpCutsDecision,
        "V18",
        "a person who hangs up stops the taking of their decision half way",
    ),
    (
        "cancel-is-rejection",
        Mistake::CancelIsRejection,
        "V3",
        "what is cancelled while it may have been applied is taken for withdrawn",
    ),
    (
        "no-second-look",
        Mistake::NoSecondLook,
        "V16",
        "a reconciliation reports what it has seen once, while more is on its way",
    ),
    (
        "version-starts-beside",
        Mistake::VersionStartsBeside,
        "V1",
        "a newer version of a step begins anew what the older one has in hand",
    ),
    (
        "tombstone-dropped",
        Mistake::TombstoneDropped,
        "V15",
        "nothing is kept of an operation whose records are removed",
    ),
    (
        "reconciled-one-way",
        Mistake::ReconciledOneWay,
        "V16",
        "a reconciliation looks for what is recorded, and not for what is there besides",
    ),
    ("cancel-not-kept", Mistake::CancelNotKept, "V6", "what was cancelled is sent again all the same"),
];

/// The mistake that an engine runs with: none, except in the simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mutant {
    #[cfg(feature = "mutants")]
    mistake: Option<Mistake>,
}

impl Mutant {
    /// The mutant of this name.
    #[cfg(feature = "mutants")]
    pub fn named(name: &str) -> Option<Mutant> {
        let (_, mistake, _, _) = MISTAKES.iter().find(|(known, ..)| *known == name)?;
        Some(Mutant { mistake: Some(*mistake) })
    }

    /// Whether the engine makes this mistake.
    #[cfg(feature = "mutants")]
    pub fn is(self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// Whether the engine makes this mistake: never.
    #[cfg(not(feature = "mutants"))]
    pub const fn is(self, _mistake: Mistake) -> bool {
        false
    }
}
