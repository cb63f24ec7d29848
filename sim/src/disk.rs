//! A simulated disk: a machine's files as programs see them, and what of them survives a power cut.
//!
//! A write changes the page cache at once and the durable contents at the next sync of its file; until
//! then it is pending. [`Machine::crash`] chooses which pending changes a power cut keeps.
//!
//! Names behave as on a journalling file system without further promises: the creation of a file becomes
//! durable with the first sync of that file, a deletion with the next sync of any file. A failed sync behaves
//! as on Linux: the pages count as clean afterwards, reads still see them, but no later sync writes them out;
//! a power cut loses them unless they were written again.

mod crash;
mod image;
pub(crate) mod kept;
pub(crate) mod process;
pub(crate) mod share;
#[cfg(test)]
mod sqlite_tests;
#[cfg(test)]
mod tests;

pub use crash::CrashKeep;
pub use image::DiskImage;
pub use process::Process;

use image::Image;
use share::Share;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The unit that the disk writes, in bytes.
pub const SECTOR: u64 = 512;

/// The name under which a sync of the directory itself is reported.
pub const DIRECTORY: &str = ".";

/// The moment of a hook relative to the sync's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Nothing of the sync has happened.
    Before,
    /// The contents are durable, the caller does not know it yet.
    After,
}

/// What a simulation wants to know of a disk and decides for it. Every method has a harmless default.
///
/// A hook may cut the power or kill the process: the call that it interrupts then fails. Hooks are called
/// from within SQLite, where a panic ends the program.
pub trait DiskHooks: Send + Sync {
    /// `file` is about to be synced, or has just been.
    fn sync(&self, machine: &Machine, file: &str, side: Side) {
        let _ = (machine, file, side);
    }

    /// `len` bytes were written to the page cache; a length of 0 tells that the file now ends at `offset`.
    fn wrote(&self, file: &str, offset: u64, len: u32) {
        let _ = (file, offset, len);
    }

    /// Whether this sync fails.
    fn sync_error(&self, file: &str) -> bool {
        let _ = file;
        false
    }

    /// Whether this sync claims success without doing anything: no program can survive such a disk.
    fn sync_lies(&self, file: &str) -> bool {
        let _ = file;
        false
    }

    /// Whether this read fails.
    fn read_error(&self, file: &str) -> bool {
        let _ = file;
        false
    }

    /// Whether this write of `len` bytes meets a full disk.
    fn full(&self, file: &str, len: u32) -> bool {
        let _ = (file, len);
        false
    }
}

/// Hooks that do nothing.
pub fn no_hooks() -> Arc<dyn DiskHooks> {
    struct NoHooks;
    impl DiskHooks for NoHooks {}
    Arc::new(NoHooks)
}

/// Why a disk call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The machine has no power, or the calling process is dead.
    #[error("the machine or the process is dead")]
    Dead,
    /// The disk is full; nothing was written.
    #[error("the disk is full")]
    Full,
    /// The read failed; nothing was read.
    #[error("the read failed")]
    Read,
    /// The sync failed; what was pending is not durable and will not become so.
    #[error("the sync failed")]
    Sync,
}

/// One machine: its files share one power supply.
pub struct Machine {
    supply: Arc<Supply>,
    directory: Mutex<Directory>,
    seed: u64,
    /// For the files that are created later.
    this: Weak<Machine>,
}

/// What a machine and its files have in common.
struct Supply {
    off: AtomicBool,
    /// Numbers the changes in the order of issue.
    issued: AtomicU64,
    hooks: Arc<dyn DiskHooks>,
}

type Names = BTreeMap<Arc<str>, Arc<SimFile>>;

#[derive(Default)]
struct Directory {
    current: Names,
    durable: Names,
    pending: Vec<Entry>,
}

/// A change of the directory: from now on `name` is `file`, or nothing.
struct Entry {
    seq: u64,
    name: Arc<str>,
    file: Option<Arc<SimFile>>,
}

impl Machine {
    /// Switches on a machine that finds `image` on its disk.
    ///
    /// `hooks` should hold no strong reference to the machine. `seed` takes part in what a crash leaves.
    pub fn boot(image: DiskImage, hooks: Arc<dyn DiskHooks>, seed: u64) -> Arc<Machine> {
        let supply = Arc::new(Supply { off: AtomicBool::new(false), issued: AtomicU64::new(0), hooks });
        Arc::new_cyclic(|this| {
            let load = |(name, image): (Arc<str>, Image)| {
                let content = Content { cache: image.clone(), durable: image, pending: vec![] };
                (name.clone(), SimFile::new(this, &supply, name, content))
            };
            let durable: Names = image.into_images().map(load).collect();
            let directory = Directory { current: durable.clone(), durable, pending: vec![] };
            let this = this.clone();
            Machine { supply: supply.clone(), directory: Mutex::new(directory), seed, this }
        })
    }

    /// Cuts the power: every later call fails.
    pub fn power_off(&self) {
        self.supply.off.store(true, Relaxed);
    }

    /// Whether the power is off.
    pub fn is_dead(&self) -> bool {
        self.supply.off.load(Relaxed)
    }

    /// What programs see: what the death of a process leaves, while the machine goes on.
    pub fn cache_image(&self) -> DiskImage {
        let copy = |(name, file): (&Arc<str>, &Arc<SimFile>)| (name.clone(), file.content().cache.clone());
        DiskImage::from_images(self.directory().current.iter().map(copy))
    }

    /// Whether something was written, made or deleted that no sync has made durable.
    pub fn has_unsynced(&self) -> bool {
        let directory = self.directory();
        let files = directory.current.values().chain(directory.durable.values());
        !directory.pending.is_empty() || files.into_iter().any(|file| !file.content().pending.is_empty())
    }

    /// What survives any power cut.
    pub fn durable_image(&self) -> DiskImage {
        let copy = |(name, file): (&Arc<str>, &Arc<SimFile>)| (name.clone(), file.content().durable.clone());
        DiskImage::from_images(self.directory().durable.iter().map(copy))
    }

    /// The file of this name, made if it does not exist and `create` is set.
    ///
    /// # Errors
    /// [`DiskError::Dead`] without power.
    pub fn open(&self, name: &str, create: bool) -> Result<Option<Arc<SimFile>>, DiskError> {
        self.supply.powered()?;
        let mut directory = self.directory();
        if let Some(file) = directory.current.get(name) {
            return Ok(Some(file.clone()));
        }
        if !create {
            return Ok(None);
        }
        let file = SimFile::new(&self.this, &self.supply, Arc::from(name), Content::default());
        directory.change(self.supply.next(), file.name.clone(), Some(file.clone()));
        Ok(Some(file))
    }

    /// Removes a name; false if it does not exist. Those who have the file open can go on using it.
    ///
    /// # Errors
    /// [`DiskError::Dead`] without power.
    pub fn delete(&self, name: &str) -> Result<bool, DiskError> {
        self.supply.powered()?;
        let mut directory = self.directory();
        let Some(file) = directory.current.get(name).cloned() else { return Ok(false) };
        directory.change(self.supply.next(), file.name.clone(), None);
        Ok(true)
    }

    /// Makes all changes of the directory durable, as a sync of the directory does.
    ///
    /// # Errors
    /// As [`SimFile::sync`].
    pub fn sync_directory(&self, alive: &dyn Fn() -> bool) -> Result<(), DiskError> {
        self.around_sync(DIRECTORY, alive, |failed| {
            if !failed {
                self.directory().flush(|_| true);
            }
        })
    }

    /// Reports both sides of a sync; `act` does it, or what is left of it if it fails.
    fn around_sync(
        &self,
        file: &str,
        alive: &dyn Fn() -> bool,
        act: impl FnOnce(bool),
    ) -> Result<(), DiskError> {
        let hooks = &self.supply.hooks;
        let fenced = || if alive() { self.supply.powered() } else { Err(DiskError::Dead) };
        fenced()?;
        hooks.sync(self, file, Side::Before);
        fenced()?;
        let failed = hooks.sync_error(file);
        if failed || !hooks.sync_lies(file) {
            act(failed);
        }
        if failed {
            return Err(DiskError::Sync);
        }
        hooks.sync(self, file, Side::After);
        fenced()
    }

    fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().expect("no panic while the directory is locked")
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("dead", &self.is_dead()).field("seed", &self.seed).finish()
    }
}

impl Supply {
    fn powered(&self) -> Result<(), DiskError> {
        if self.off.load(Relaxed) { Err(DiskError::Dead) } else { Ok(()) }
    }

    fn next(&self) -> u64 {
        self.issued.fetch_add(1, Relaxed)
    }
}

impl Directory {
    fn change(&mut self, seq: u64, name: Arc<str>, file: Option<Arc<SimFile>>) {
        let entry = Entry { seq, name, file };
        entry.apply(&mut self.current);
        self.pending.push(entry);
    }

    /// Makes the deletions durable, and those creations that `creation` picks.
    fn flush(&mut self, creation: impl Fn(&Arc<SimFile>) -> bool) {
        let mut kept: Vec<Entry> = vec![];
        for entry in std::mem::take(&mut self.pending) {
            if entry.file.as_ref().is_none_or(&creation) {
                entry.apply(&mut self.durable);
                kept.retain(|earlier| earlier.name != entry.name);
            } else {
                kept.push(entry);
            }
        }
        self.pending = kept;
    }
}

impl Entry {
    fn apply(&self, names: &mut Names) {
        match &self.file {
            Some(file) => names.insert(self.name.clone(), file.clone()),
            None => names.remove(&self.name),
        };
    }
}

/// A file of a [`Machine`].
pub struct SimFile {
    name: Arc<str>,
    machine: Weak<Machine>,
    supply: Arc<Supply>,
    content: Mutex<Content>,
    share: Mutex<Share>,
}

#[derive(Default)]
struct Content {
    /// What reads see.
    cache: Image,
    /// What certainly survives.
    durable: Image,
    /// The changes since the last sync, oldest first.
    pending: Vec<Change>,
}

struct Change {
    seq: u64,
    op: Op,
}

enum Op {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

impl SimFile {
    fn new(machine: &Weak<Machine>, supply: &Arc<Supply>, name: Arc<str>, content: Content) -> Arc<Self> {
        let (machine, supply) = (machine.clone(), supply.clone());
        Arc::new(SimFile { name, machine, supply, content: Mutex::new(content), share: Mutex::default() })
    }

    /// The length in bytes.
    ///
    /// # Errors
    /// [`DiskError::Dead`] without power.
    pub fn size(&self) -> Result<u64, DiskError> {
        self.supply.powered()?;
        Ok(self.content().cache.len())
    }

    /// Reads what there is from `offset` on and returns the number of bytes.
    ///
    /// # Errors
    /// [`DiskError::Read`], and [`DiskError::Dead`] without power.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize, DiskError> {
        self.supply.powered()?;
        if self.supply.hooks.read_error(&self.name) {
            return Err(DiskError::Read);
        }
        let content = self.content();
        let n = content.cache.len().saturating_sub(offset).min(out.len() as u64) as usize;
        content.cache.read(offset, &mut out[..n]);
        Ok(n)
    }

    /// Writes to the page cache. A write during which the power fails may survive like any other.
    ///
    /// # Errors
    /// [`DiskError::Full`], and [`DiskError::Dead`] without power.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.supply.powered()?;
        let len = u32::try_from(data.len()).expect("a single write is below 4 GiB");
        if self.supply.hooks.full(&self.name, len) {
            return Err(DiskError::Full);
        }
        self.change(Op::Write(offset, data.to_vec()));
        self.supply.hooks.wrote(&self.name, offset, len);
        self.supply.powered()
    }

    /// Cuts the file off, or extends it with zeros.
    ///
    /// # Errors
    /// [`DiskError::Dead`] without power.
    pub fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.supply.powered()?;
        self.change(Op::SetLen(len));
        self.supply.hooks.wrote(&self.name, len, 0);
        self.supply.powered()
    }

    /// Makes the contents durable, and the file's name.
    ///
    /// `alive` tells whether the calling process still lives: a hook may kill it.
    ///
    /// # Errors
    /// [`DiskError::Sync`], and [`DiskError::Dead`] if power or process are gone, before or after the effect.
    pub fn sync(self: &Arc<Self>, alive: &dyn Fn() -> bool) -> Result<(), DiskError> {
        let machine = self.machine.upgrade().ok_or(DiskError::Dead)?;
        machine.around_sync(&self.name, alive, |failed| {
            if failed {
                self.content().pending.clear();
            } else {
                self.content().flush();
                machine.directory().flush(|created| Arc::ptr_eq(created, self));
            }
        })
    }

    pub(crate) fn share(&self) -> MutexGuard<'_, Share> {
        self.share.lock().expect("no panic while the locks are locked")
    }

    fn change(&self, op: Op) {
        let mut content = self.content();
        op.apply(&mut content.cache);
        content.pending.push(Change { seq: self.supply.next(), op });
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no panic while the contents are locked")
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFile").field("name", &self.name).finish()
    }
}

impl Content {
    fn flush(&mut self) {
        for change in self.pending.drain(..) {
            change.op.apply(&mut self.durable);
        }
    }
}

impl Op {
    fn apply(&self, image: &mut Image) {
        match self {
            Op::Write(offset, data) => image.write(*offset, data),
            Op::SetLen(len) => image.set_len(*len),
        }
    }

    /// The length of a file that had `len` bytes before.
    fn len_after(&self, len: u64) -> u64 {
        match self {
            Op::Write(offset, data) => len.max(offset + data.len() as u64),
            Op::SetLen(len) => *len,
        }
    }
}
