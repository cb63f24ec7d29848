//! Failures that are remembered without being asked: found, not committed, run first next time.

use crate::case::CaseFile;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A pending case that has held so often is forgotten.
pub(super) const HELD_MAX: u32 = 3;

/// The folder of pending cases.
#[derive(Clone, Debug)]
pub(super) struct Pending(pub(super) PathBuf);

impl Pending {
    /// Where a case is or would be.
    pub(super) fn path(&self, case: &CaseFile) -> PathBuf {
        self.0.join(case.name()).with_extension("toml")
    }

    /// Writes a case; the same failure has one file. Whoever reads it meanwhile finds a whole one.
    pub(super) fn write(&self, case: &CaseFile) -> io::Result<PathBuf> {
        let path = self.path(case);
        fs::create_dir_all(&self.0)?;
        let half = path.with_extension("half");
        fs::write(&half, case.to_string())?;
        fs::rename(&half, &path)?;
        self.failed(&path)?;
        Ok(path)
    }

    /// It failed again: how often it held before does not count.
    pub(super) fn failed(&self, path: &Path) -> io::Result<()> {
        remove(&count(path))
    }

    /// It held once more; how often in a row. The last time it is forgotten.
    pub(super) fn held(&self, path: &Path) -> io::Result<u32> {
        // A count that cannot be read begins anew: the case is run once too often.
        let before = fs::read_to_string(count(path)).ok().and_then(|text| text.trim().parse().ok());
        let held = before.unwrap_or(0) + 1;
        if held >= HELD_MAX {
            self.forget(path)?;
        } else {
            fs::write(count(path), format!("{held}\n"))?;
        }
        Ok(held)
    }

    /// Forgets a case.
    pub(super) fn forget(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)?;
        remove(&count(path))
    }

    /// Whether a file is one of these.
    pub(super) fn has(&self, path: &Path) -> bool {
        let folder = |path: &Path| path.canonicalize().ok();
        path.parent().is_some_and(|parent| folder(parent).is_some() && folder(parent) == folder(&self.0))
    }
}

/// The file that counts how often a case has held.
fn count(path: &Path) -> PathBuf {
    path.with_extension("held")
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
