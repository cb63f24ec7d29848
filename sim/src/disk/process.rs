//! A simulated process and its open files: what a kill ends and a power cut does not spare.

use super::share::{Busy, Level, Region, Shm};
use super::{DiskError, DiskImage, Machine, SimFile, no_hooks};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The length of the process's number in a path.
const DIGITS: usize = 16;

/// Numbers processes and handles, over all threads: a path never means two processes.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The processes that were started on this thread.
    pub(super) static PROCESSES: RefCell<BTreeMap<u64, Weak<Process>>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// A simulated process on a [`Machine`]. Its files are named `/<number>/<name>`: SQLite opens and deletes
/// files at any time, so the path itself has to tell whose they are.
///
/// A process is found only from the thread that started it. Its number differs from run to run: keep paths
/// out of histories.
#[derive(Debug)]
pub struct Process {
    number: u64,
    machine: Mutex<Arc<Machine>>,
    killed: AtomicBool,
    /// Whether its connections may outlive the run.
    keepable: AtomicBool,
    handles: Mutex<Vec<Weak<Handle>>>,
}

impl Process {
    /// Starts a process on `machine`.
    pub fn start(machine: Arc<Machine>) -> Arc<Process> {
        let process = Arc::new(Process {
            number: NUMBERS.fetch_add(1, Relaxed),
            machine: Mutex::new(machine),
            killed: AtomicBool::new(false),
            keepable: AtomicBool::new(true),
            handles: Mutex::default(),
        });
        PROCESSES.with_borrow_mut(|all| all.insert(process.number, Arc::downgrade(&process)));
        process
    }

    /// The path of the file `name` for the VFS "sim".
    pub fn path(&self, name: &str) -> String {
        format!("/{:0DIGITS$x}/{name}", self.number)
    }

    /// The address of the file `name`, to be opened with `SQLITE_OPEN_URI`.
    pub fn uri(&self, name: &str) -> String {
        format!("file://{}?vfs=sim", self.path(name))
    }

    /// Kills the process: its locks are released and every later call of it fails, while what it wrote stays
    /// in the page cache. Its shared memory stays valid for its own connections until they are dropped; a
    /// process that comes later gets other memory, unless a third one lives that uses the old (see
    /// [`Process::bury`]).
    pub fn kill(&self) {
        self.killed.store(true, Relaxed);
        for handle in self.handles() {
            // What the dead believe to hold stays true for each connection alone, on a file that nobody else
            // can open: two connections of one process hold locks on the same file.
            let nowhere = Machine::boot(DiskImage::empty(), no_hooks(), 0);
            let mut mount = handle.mount();
            let file = nowhere.open(&handle.name, true).ok().flatten();
            let file = file.expect("a machine with power creates files");
            let held = mount.file.share().take(handle.number);
            if let Some(holder) = held {
                file.share().put(holder);
            }
            mount.left = Some(std::mem::replace(&mut mount.file, file));
            nowhere.power_off();
        }
    }

    /// Whether the process was killed or its machine lost power.
    pub fn is_dead(&self) -> bool {
        self.killed.load(Relaxed) || self.mounted().is_dead()
    }

    /// The machine that the process runs on.
    pub fn machine(&self) -> Arc<Machine> {
        self.mounted().clone()
    }

    /// Drops what a dead process leaves (connections, transactions) without letting it change the memory of
    /// the living.
    ///
    /// SQLite's rollback writes to the WAL index without any call to the file system. A kill takes that
    /// memory from the dead process only if no other one uses it: then it has to be put back after the drop.
    ///
    /// # Panics
    /// If the process lives.
    pub fn bury<T>(&self, remains: T) {
        assert!(self.is_dead(), "the living are not buried");
        let mut saved = vec![];
        for handle in self.handles() {
            let mount = handle.mount();
            let left = mount.left.as_ref().unwrap_or(&mount.file);
            if let Some(shm) = mount.shm.clone().filter(|shm| left.share().shares(shm)) {
                saved.push((shm.save(), shm));
            }
        }
        drop(remains);
        saved.iter().for_each(|(words, shm)| shm.restore(words));
    }

    /// Exchanges the machine under the open connection of a process, dead or alive, which keeps its prepared
    /// statements and lives from then on.
    ///
    /// The new files take the place of the old ones of the same names, and the WAL index is invalidated.
    /// Sound only outside transactions, for one connection a database file (a second one could keep its cache
    /// of the old contents), for databases in WAL mode, and for databases with the same schema: SQLite
    /// compares no more than the schema's version number.
    ///
    /// # Panics
    /// If the new machine has no power, a transaction is open, or a file has more than one connection.
    pub fn remount(&self, machine: Arc<Machine>) {
        assert!(!machine.is_dead(), "the new machine has power");
        for handle in self.handles() {
            let mut mount = handle.mount();
            let file =
                machine.open(&handle.name, true).ok().flatten().expect("a machine with power creates files");
            let level = mount.file.share().sole_and_quiet(handle.number);
            let level = level.expect("one connection outside transactions");
            file.share().lock(handle.number, level).expect("nobody else has the new file open");
            if let Some(shm) = &mount.shm {
                shm.reset();
                file.share().adopt(handle.number, shm.clone());
            }
            mount.file.share().release(handle.number);
            (mount.file, mount.left) = (file, None);
        }
        *self.mounted() = machine;
        self.killed.store(false, Relaxed);
    }

    /// Its connections end with it: they may have read what a decayed disk says of its schema.
    pub fn never_keep(&self) {
        self.keepable.store(false, Relaxed);
    }

    /// Whether its connections may serve another run.
    pub(crate) fn can_be_kept(&self) -> bool {
        self.keepable.load(Relaxed) && self.can_be_remounted()
    }

    /// Whether [`Process::remount`] is possible: outside transactions, one connection a file.
    pub(crate) fn can_be_remounted(&self) -> bool {
        let handles = self.handles();
        let alone =
            |handle: &Arc<Handle>| handles.iter().filter(|other| other.name == handle.name).count() == 1;
        let quiet =
            |handle: &Arc<Handle>| handle.mount().file.share().sole_and_quiet(handle.number).is_some();
        handles.iter().all(|handle| alone(handle) && quiet(handle))
    }

    fn mounted(&self) -> MutexGuard<'_, Arc<Machine>> {
        self.machine.lock().expect("no panic while the machine is locked")
    }

    fn handles(&self) -> Vec<Arc<Handle>> {
        self.handles
            .lock()
            .expect("no panic while the handles are locked")
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that ends with its thread finds the registry gone already.
        let _ = PROCESSES.try_with(|all| all.borrow_mut().remove(&self.number));
    }
}

/// The process that an address names, dead or alive.
pub(crate) fn lookup(uri: &str) -> Option<Arc<Process>> {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    let (number, _) = path.strip_prefix('/')?.split_at_checked(DIGITS)?;
    let number = u64::from_str_radix(number, 16).ok()?;
    PROCESSES.try_with(|all| all.borrow().get(&number).and_then(Weak::upgrade)).ok()?
}

/// The living process that a path names, and the name of its file.
pub(crate) fn find(path: &str) -> Option<(Arc<Process>, &str)> {
    let (number, name) = path.strip_prefix('/')?.split_at_checked(DIGITS)?;
    let number = u64::from_str_radix(number, 16).ok()?;
    // A connection that is dropped as its thread ends finds the registry gone.
    let process = PROCESSES.try_with(|all| all.borrow().get(&number).and_then(Weak::upgrade)).ok()??;
    (!process.is_dead()).then_some((process, name.strip_prefix('/')?))
}

/// An open file of a process.
#[derive(Debug)]
pub(crate) struct Handle {
    number: u64,
    process: Arc<Process>,
    name: String,
    mount: Mutex<Mount>,
}

/// What [`Process::remount`] exchanges.
struct Mount {
    file: Arc<SimFile>,
    /// The file that a kill took from the handle.
    left: Option<Arc<SimFile>>,
    shm: Option<Arc<Shm>>,
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(f)
    }
}

impl Handle {
    /// Opens a file; `None` if it does not exist and `create` is not set.
    pub(crate) fn open(path: &str, create: bool) -> Option<Arc<Handle>> {
        let (process, name) = find(path)?;
        Self::on(process, name, create)
    }

    /// Opens a temporary file without a name, on a disk of its own.
    pub(crate) fn temporary() -> Option<Arc<Handle>> {
        let machine = Machine::boot(DiskImage::empty(), no_hooks(), 0);
        Self::on(Process::start(machine), "temporary", true)
    }

    fn on(process: Arc<Process>, name: &str, create: bool) -> Option<Arc<Handle>> {
        let file = process.machine().open(name, create).ok().flatten()?;
        let number = NUMBERS.fetch_add(1, Relaxed);
        let mount = Mutex::new(Mount { file, left: None, shm: None });
        let handle = Arc::new(Handle { number, process: process.clone(), name: name.to_owned(), mount });
        let mut handles = process.handles.lock().expect("no panic while the handles are locked");
        handles.push(Arc::downgrade(&handle));
        drop(handles);
        Some(handle)
    }

    /// The file, for a living process.
    fn file(&self) -> Result<Arc<SimFile>, DiskError> {
        if self.process.is_dead() { Err(DiskError::Dead) } else { Ok(self.mount().file.clone()) }
    }

    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize, DiskError> {
        self.file()?.read(offset, out)
    }

    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.file()?.write(offset, data)?;
        self.file().map(drop)
    }

    pub(crate) fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.file()?.set_len(len)?;
        self.file().map(drop)
    }

    pub(crate) fn size(&self) -> Result<u64, DiskError> {
        self.file()?.size()
    }

    pub(crate) fn sync(&self) -> Result<(), DiskError> {
        self.file()?.sync(&|| !self.process.is_dead())
    }

    pub(crate) fn lock(&self, level: Level) -> Result<Result<(), Busy>, DiskError> {
        Ok(self.file()?.share().lock(self.number, level))
    }

    /// Unlocking always works, also for the dead: SQLite's idea of its locks stays true.
    pub(crate) fn unlock(&self, level: Level) {
        self.mount().file.share().unlock(self.number, level);
    }

    pub(crate) fn reserved(&self) -> Result<bool, DiskError> {
        Ok(self.file()?.share().reserved())
    }

    /// Region `n` of the WAL index, if it exists or `extend` is set.
    pub(crate) fn map(&self, n: usize, extend: bool) -> Result<Option<Region>, DiskError> {
        let file = self.file()?;
        let mut mount = self.mount();
        let shm = mount.shm.get_or_insert_with(|| file.share().attach(self.number));
        Ok(shm.region(n, extend))
    }

    pub(crate) fn lock_index(&self, locks: u8, exclusive: bool) -> Result<Result<(), Busy>, DiskError> {
        Ok(self.file()?.share().lock_index(self.number, locks, exclusive))
    }

    pub(crate) fn unlock_index(&self, locks: u8) {
        self.mount().file.share().unlock_index(self.number, locks);
    }

    /// Leaves the WAL index; SQLite uses no pointer into it afterwards.
    pub(crate) fn unmap(&self) {
        let mut mount = self.mount();
        mount.file.share().detach(self.number);
        mount.shm = None;
    }

    /// Gives up everything that the handle holds.
    pub(crate) fn close(&self) {
        let mut handles = self.process.handles.lock().expect("no panic while the handles are locked");
        handles.retain(|handle| handle.as_ptr() != std::ptr::from_ref(self));
        drop(handles);
        let mount = self.mount();
        mount.file.share().release(self.number);
    }

    fn mount(&self) -> MutexGuard<'_, Mount> {
        self.mount.lock().expect("no panic while the mount is locked")
    }
}
