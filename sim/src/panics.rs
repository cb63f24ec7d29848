//! The last panic of this thread: where and what, kept instead of printed.

use std::cell::RefCell;
use std::fmt;
use std::panic::{set_hook, take_hook, PanicHookInfo};
use std::sync::Once;

/// A panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panic {
    pub(crate) message: String,
    file: String,
    line: u32,
}

thread_local! {
    static LAST: RefCell<Option<Panic>> = const { RefCell::new(None) };
    static QUIET: RefCell<bool> = const { RefCell::new(false) };
}

/// Keeps each further panic of a thread that runs plans; other threads panic as before.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            let quiet = QUIET.with(|quiet| *quiet.borrow());
            LAST.with(|last| *last.borrow_mut() = Some(Panic::from(info)));
            if !quiet {
                before(info);
            }
        }));
    });
    QUIET.with(|quiet| *quiet.borrow_mut() = true);
    LAST.with(|last| *last.borrow_mut() = None);
}

/// The last panic of this thread since [`install`].
pub(crate) fn last() -> Option<Panic> {
    QUIET.with(|quiet| *quiet.borrow_mut() = false);
    LAST.with(|last| last.borrow().clone())
}

impl Panic {
    /// Whether the harness itself panicked: a bug of ours, not of the system under test.
    pub(crate) fn is_ours(&self) -> bool {
        let ours = ["sim/src/", "destinations/src/", "madsim"];
        ours.iter().any(|part| self.file.contains(part))
    }
}

impl From<&PanicHookInfo<'_>> for Panic {
    fn from(info: &PanicHookInfo<'_>) -> Self {
        let message = info.payload_as_str().unwrap_or("a panic without a text").to_owned();
        let (file, line) = info.location().map_or(("?".into(), 0), |at| (at.file().to_owned(), at.line()));
        Panic { message, file, line }
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        write!(f, "panicked at {name}:{}: {}", self.line, self.message)
    }
}
