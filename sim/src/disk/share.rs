//! What the operating system shares among those who have one file open: locks and mapped memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The size of one region of the WAL index in bytes, as SQLite asks for it.
pub(crate) const REGION: usize = 32 * 1024;

/// The number of locks on the WAL index.
pub(crate) const INDEX_LOCKS: u32 = 8;

/// Both copies of the WAL index's header and the checkpoint information behind them, in bytes.
const INDEX_HEADER: usize = 136;

/// One region of memory. SQLite reads and writes it through a raw pointer, hence the atomics.
pub(crate) type Region = Arc<[AtomicU64]>;

/// How far a handle has locked the database file: SQLite's five levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[default]
    Unlocked,
    Shared,
    Reserved,
    Pending,
    Exclusive,
}

/// Another handle holds a lock in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// The shared memory of one file.
#[derive(Default)]
pub(crate) struct Shm {
    regions: Mutex<Vec<Region>>,
}

impl Shm {
    /// Region `n`, made with all before it if `extend` is set.
    pub(crate) fn region(&self, n: usize, extend: bool) -> Option<Region> {
        let mut regions = self.regions();
        while extend && regions.len() <= n {
            regions.push((0..REGION / 8).map(|_| AtomicU64::new(0)).collect());
        }
        regions.get(n).cloned()
    }

    /// Invalidates the WAL index: its next reader rebuilds it from the WAL.
    pub(crate) fn reset(&self) {
        if let Some(first) = self.regions().first() {
            first[..INDEX_HEADER / 8].iter().for_each(|word| word.store(0, Relaxed));
        }
    }

    /// A copy of the memory.
    pub(crate) fn save(&self) -> Vec<Vec<u64>> {
        let copy = |region: &Region| region.iter().map(|word| word.load(Relaxed)).collect();
        self.regions().iter().map(copy).collect()
    }

    /// Puts back what [`Shm::save`] copied.
    pub(crate) fn restore(&self, saved: &[Vec<u64>]) {
        for (region, words) in self.regions().iter().zip(saved) {
            region.iter().zip(words).for_each(|(to, from)| to.store(*from, Relaxed));
        }
    }

    fn regions(&self) -> std::sync::MutexGuard<'_, Vec<Region>> {
        self.regions.lock().expect("no panic while the regions are locked")
    }
}

/// What one handle holds.
pub(crate) struct Holder {
    handle: u64,
    level: Level,
    attached: bool,
    /// Locks on the WAL index, one bit each.
    shared: u8,
    exclusive: u8,
}

/// The locks and the shared memory of one file.
#[derive(Default)]
pub(crate) struct Share {
    holders: Vec<Holder>,
    /// Lives while a handle is attached; those who were attached keep it alive for their pointers.
    shm: Option<Arc<Shm>>,
}

impl Share {
    /// Raises the lock of `handle` to `want`; it may get half the way, as SQLite's own file systems do.
    pub(crate) fn lock(&mut self, handle: u64, want: Level) -> Result<(), Busy> {
        let others = self.others(handle).map(|other| other.level).max().unwrap_or_default();
        let own = self.holder(handle);
        if own.level >= want {
            return Ok(());
        }
        let blocked_at = if want == Level::Shared { Level::Pending } else { Level::Reserved };
        if others >= blocked_at {
            return Err(Busy);
        }
        if want == Level::Exclusive && others >= Level::Shared {
            // New readers are kept out while the present ones leave.
            own.level = Level::Pending;
            return Err(Busy);
        }
        own.level = want;
        Ok(())
    }

    /// Lowers the lock of `handle` to `level`.
    pub(crate) fn unlock(&mut self, handle: u64, level: Level) {
        let own = self.holder(handle);
        own.level = own.level.min(level);
    }

    /// Whether anyone holds more than a shared lock.
    pub(crate) fn reserved(&self) -> bool {
        self.holders.iter().any(|holder| holder.level >= Level::Reserved)
    }

    /// Joins the shared memory of the file, making it for the first one.
    pub(crate) fn attach(&mut self, handle: u64) -> Arc<Shm> {
        self.holder(handle).attached = true;
        self.shm.get_or_insert_default().clone()
    }

    /// Brings memory along to a file whose memory nobody has joined yet.
    pub(crate) fn adopt(&mut self, handle: u64, shm: Arc<Shm>) {
        assert!(self.shm.is_none(), "someone has the other file's WAL index open");
        self.holder(handle).attached = true;
        self.shm = Some(shm);
    }

    /// Takes locks on the WAL index; `locks` has one bit for each.
    pub(crate) fn lock_index(&mut self, handle: u64, locks: u8, exclusive: bool) -> Result<(), Busy> {
        let held = |other: &Holder| other.exclusive | if exclusive { other.shared } else { 0 };
        if self.others(handle).any(|other| held(other) & locks != 0) {
            return Err(Busy);
        }
        let own = self.holder(handle);
        let mask = if exclusive { &mut own.exclusive } else { &mut own.shared };
        *mask |= locks;
        Ok(())
    }

    /// Gives up locks on the WAL index.
    pub(crate) fn unlock_index(&mut self, handle: u64, locks: u8) {
        let own = self.holder(handle);
        own.shared &= !locks;
        own.exclusive &= !locks;
    }

    /// Leaves the shared memory; the last one to leave takes it away.
    pub(crate) fn detach(&mut self, handle: u64) {
        self.unlock_index(handle, u8::MAX);
        self.holder(handle).attached = false;
        if !self.holders.iter().any(|holder| holder.attached) {
            self.shm = None;
        }
    }

    /// Gives up everything that `handle` holds.
    pub(crate) fn release(&mut self, handle: u64) {
        self.detach(handle);
        self.holders.retain(|holder| holder.handle != handle);
    }

    /// Takes `handle` out with everything that it believes to hold.
    pub(crate) fn take(&mut self, handle: u64) -> Option<Holder> {
        let at = self.holders.iter().position(|holder| holder.handle == handle)?;
        let holder = self.holders.swap_remove(at);
        if !self.holders.iter().any(|holder| holder.attached) {
            self.shm = None;
        }
        Some(holder)
    }

    /// Puts a handle in that was taken out elsewhere, with what it believes to hold.
    pub(crate) fn put(&mut self, holder: Holder) {
        assert!(self.holders.is_empty(), "only a file of its own holds what another has taken away");
        self.holders.push(holder);
    }

    /// Whether `shm` is the memory that new handles join.
    pub(crate) fn shares(&self, shm: &Arc<Shm>) -> bool {
        self.shm.as_ref().is_some_and(|current| Arc::ptr_eq(current, shm))
    }

    /// The lock level of `handle`, if it is outside transactions and nobody else holds anything.
    pub(crate) fn sole_and_quiet(&self, handle: u64) -> Option<Level> {
        let quiet = |own: &Holder| own.level <= Level::Shared && own.shared | own.exclusive == 0;
        let idle = |other: &Holder| other.level == Level::Unlocked && !other.attached;
        let own = self.holders.iter().find(|holder| holder.handle == handle);
        let sole = self.others(handle).all(idle);
        (sole && own.is_none_or(quiet)).then(|| own.map_or(Level::Unlocked, |own| own.level))
    }

    fn others(&self, handle: u64) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(move |holder| holder.handle != handle)
    }

    fn holder(&mut self, handle: u64) -> &mut Holder {
        let known = self.holders.iter().position(|holder| holder.handle == handle);
        let at = known.unwrap_or_else(|| {
            let level = Level::Unlocked;
            self.holders.push(Holder { handle, level, attached: false, shared: 0, exclusive: 0 });
            self.holders.len() - 1
        });
        &mut self.holders[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Level::{Exclusive, Pending, Reserved, Shared, Unlocked};

    #[test]
    fn file_locks_keep_out_whom_they_must() {
        let rows = [
            (Unlocked, [true, true, true]),
            (Shared, [true, true, false]),
            (Reserved, [true, false, false]),
            (Pending, [false, false, false]),
            (Exclusive, [false, false, false]),
        ];
        for (held, allowed) in rows {
            for (want, allowed) in [Shared, Reserved, Exclusive].into_iter().zip(allowed) {
                let mut share = Share::default();
                share.holder(1).level = held;
                let got = share.lock(2, Shared).and_then(|()| share.lock(2, want));
                assert_eq!(got.is_ok(), allowed, "{want:?} beside {held:?}");
            }
        }
    }

    #[test]
    fn who_waits_for_the_readers_keeps_new_ones_out() {
        let mut share = Share::default();
        assert_eq!((share.lock(1, Shared), share.lock(2, Shared)), (Ok(()), Ok(())));
        assert_eq!((share.lock(2, Reserved), share.lock(2, Exclusive)), (Ok(()), Err(Busy)));
        assert_eq!(share.lock(3, Shared), Err(Busy), "pending");
        share.unlock(1, Unlocked);
        assert_eq!(share.lock(2, Exclusive), Ok(()));
        share.unlock(2, Shared);
        assert_eq!((share.lock(3, Shared), share.reserved()), (Ok(()), false));
    }

    #[test]
    fn index_locks_are_shared_or_exclusive_one_by_one() {
        let mut share = Share::default();
        assert_eq!(share.lock_index(1, 0b0100, false), Ok(()));
        assert_eq!(share.lock_index(2, 0b0100, false), Ok(()), "shared");
        assert_eq!(share.lock_index(2, 0b0110, true), Err(Busy), "one of two is taken");
        assert_eq!(share.lock_index(3, 0b0010, true), Ok(()), "and the other one was not");
        assert_eq!(share.lock_index(1, 0b0010, false), Err(Busy));
        share.unlock_index(1, 0b0100);
        share.release(2);
        assert_eq!(share.lock_index(3, 0b0100, true), Ok(()));
        assert_eq!(share.lock_index(1, 0b0100, false), Err(Busy));
    }

    #[test]
    fn the_last_one_takes_the_memory_away() {
        let mut share = Share::default();
        let (first, second) = (share.attach(1), share.attach(2));
        assert!(Arc::ptr_eq(&first, &second));
        share.release(1);
        assert!(share.shares(&second));
        share.detach(2);
        assert!(!share.shares(&second));
        assert!(!Arc::ptr_eq(&share.attach(3), &second), "the next one starts afresh");
    }
}
