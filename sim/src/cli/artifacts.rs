//! The files of an exploration: `target/in-doubt/runs/<time>/` with a folder for each failure, and `latest`
//! that points to the newest one.

use crate::enumerate::Certificate;
use crate::report::{ToldFailure, certificate, json, ledger};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// So many runs are kept.
const RUNS_MAX: usize = 20;

/// The folder of one exploration.
pub(super) struct Folder {
    root: PathBuf,
    run: PathBuf,
}

impl Folder {
    /// A folder named by the time.
    pub(super) fn create(root: &Path) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "a folder is named by the wall clock; no run sees it")]
        let now = std::time::SystemTime::now();
        let stamp = humantime::format_rfc3339_millis(now).to_string().replace(':', "-");
        let run = root.join("runs").join(stamp);
        fs::create_dir_all(&run)?;
        let folder = Folder { root: root.to_owned(), run };
        folder.point_latest();
        Ok(folder)
    }

    /// Writes the files of a failure; the folder with them.
    pub(super) fn write(&self, told: &ToldFailure<'_>, seeds_run: u64) -> io::Result<String> {
        let case = &told.answer.question.case;
        let mut name = format!("{}-{}-{}", case.scenario, case.contract, case.seed);
        if let Some(mutant) = &told.answer.question.mutant {
            name += &format!("-{mutant}");
        }
        // One case may fail in several ways: an enumeration changes the tape and nothing else.
        let fingerprint = &told.failure.fingerprint.0;
        let ends = fingerprint.split('/').next().into_iter().chain(fingerprint.rsplit('/').next());
        ends.for_each(|end| name += &format!("-{end}"));
        let folder = self.run.join(&name);
        fs::create_dir_all(&folder)?;
        let lines = |lines: Vec<String>| lines.join("\n") + "\n";
        fs::write(folder.join("story.txt"), lines(told.story()))?;
        let ran = &told.answer.ran.run;
        let words = ran.history.events().iter().map(ToString::to_string).collect();
        fs::write(folder.join("history.jsonl"), lines(json::history(told.answer, None)))?;
        fs::write(folder.join("history.txt"), lines(words))?;
        fs::write(folder.join("ledger.jsonl"), lines(ledger::json(ran)))?;
        fs::write(folder.join("ledger.txt"), lines(ledger::text(ran)))?;
        fs::write(folder.join("report.json"), json::failure(told, seeds_run) + "\n")?;
        let latest = self.root.join("latest").join(&name);
        let shown = if latest.is_dir() { latest } else { folder };
        Ok(shown.display().to_string())
    }

    fn point_latest(&self) {
        let latest = self.root.join("latest");
        let target = self.run.strip_prefix(&self.root).unwrap_or(&self.run);
        // `latest` is a comfort: where links cannot be made, the folder's own name is shown.
        let _ = fs::remove_file(&latest);
        #[cfg(unix)]
        let _ = std::os::unix::fs::symlink(target, &latest);
        #[cfg(not(unix))]
        let _ = target;
    }

    /// Forgets the oldest runs.
    pub(super) fn prune(&self) {
        let Ok(entries) = fs::read_dir(self.root.join("runs")) else { return };
        let mut runs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        runs.sort();
        let old = runs.len().saturating_sub(RUNS_MAX);
        for run in &runs[..old] {
            // What cannot be removed now is tried again after the next exploration.
            let _ = fs::remove_dir_all(run);
        }
    }
}

/// Writes the certificates of the last enumeration, a line each.
pub(super) fn write_certificates(root: &Path, certificates: &[Certificate]) -> io::Result<()> {
    if certificates.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(root)?;
    let lines = certificates.iter().map(certificate::json).collect::<Vec<_>>().join("\n");
    fs::write(root.join("certificates.jsonl"), lines + "\n")
}
