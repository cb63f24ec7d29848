//! The VFS "sim": SQLite on a simulated disk, for the processes of a simulation.
//!
//! Open with `rusqlite::Connection::open_with_flags` on [`Process::uri`] and the flags `READ_WRITE`,
//! `CREATE`, `URI` and `NO_MUTEX`. The functions here translate; what they translate to is in
//! [`crate::disk`].
//!
//! # Safety
//! SQLite calls the functions of `METHODS` with a file that `open` filled in and `close` has not yet
//! taken back, never two at once on one file, and with buffers of the length that it says. Every block below
//! relies on no more than that.

#![expect(unsafe_code, reason = "SQLite's interface for file systems is one of C; this file alone speaks it")]

pub use crate::disk::kept::{keep, kept};
pub use crate::disk::process::Process;

use crate::disk::process::{Handle, find};
use crate::disk::share::{Busy, INDEX_LOCKS, Level, REGION};
use crate::disk::{DiskError, SECTOR};
use rusqlite::ffi::*;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, Once};

/// The Unix epoch in milliseconds of the Julian day, as SQLite counts time.
const EPOCH: i64 = 210_866_760_000_000;

thread_local! {
    /// The state of this run's generator.
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    /// This run's clock, in milliseconds since the Unix epoch.
    static CLOCK: RefCell<Box<dyn Fn() -> i64>> = RefCell::new(Box::new(|| 0));
}

/// Makes the VFS "sim" known to SQLite; it does not become the default one. Call it before anything else
/// uses SQLite: only then can the allocation statistics be switched off, which cost a tenth of the speed.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a call of C with the argument that this option takes; too late a call is refused.
        unsafe { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0 as c_int) };
        // The description must outlive every connection.
        let vfs = Box::leak(Box::new(description()));
        // SAFETY: `vfs` is complete and lives until the end of the program.
        let code = unsafe { sqlite3_vfs_register(vfs, 0) };
        assert_eq!(code, SQLITE_OK, "SQLite takes the VFS");
    });
}

/// Gives this thread's SQLite the randomness and the time of a run; the clock stands still at `now_ms`
/// (milliseconds since the Unix epoch) until [`set_clock`].
///
/// SQLite has one generator for the whole program. It feeds the salts of the WAL: with runs on several
/// threads the bytes of a disk differ from run to run, its offsets and lengths do not.
pub fn seed_randomness(seed: u64, now_ms: i64) {
    RANDOM.set(seed);
    set_clock(move || now_ms);
    // SQLite takes 32 bits and has a meaning of its own for zero. The multiplier is that of Fibonacci
    // hashing.
    let folded = (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32;
    let folded = folded.max(1) as c_int;
    let no_database = std::ptr::null_mut::<sqlite3>();
    // SAFETY: this operation takes an int and a connection or null; it also resets the generator.
    unsafe { sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, folded, no_database) };
}

/// Gives this thread's SQLite a clock: milliseconds since the Unix epoch.
pub fn set_clock(clock: impl Fn() -> i64 + 'static) {
    CLOCK.set(Box::new(clock));
}

fn description() -> sqlite3_vfs {
    sqlite3_vfs {
        iVersion: 2,
        szOsFile: size_of::<File>() as c_int,
        mxPathname: 512,
        pNext: std::ptr::null_mut(),
        zName: c"sim".as_ptr(),
        pAppData: std::ptr::null_mut(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_path),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: Some(current_time_ms),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// SQLite's file, extended by ours: it allocates both.
#[repr(C)]
struct File {
    base: sqlite3_file,
    /// From `Arc::into_raw` in [`open`], taken back in [`close`].
    handle: *const Handle,
}

/// The handle of an open file.
///
/// # Safety
/// `file` was opened by [`open`] and not closed during `'a`.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a Handle {
    // SAFETY: the caller promises that `open` filled in the handle.
    unsafe { &*(*file.cast::<File>()).handle }
}

/// The name that SQLite passes, if it is one that we gave out.
///
/// # Safety
/// `name` is null or ends with a zero, and lives during `'a`.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a str> {
    if name.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller promises the rest.
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}

/// SQLite's code of a result; `failed` is the one of this operation.
fn code<T>(result: Result<T, DiskError>, failed: c_int) -> c_int {
    match result {
        Ok(_) => SQLITE_OK,
        Err(DiskError::Full) => SQLITE_FULL,
        Err(DiskError::Dead | DiskError::Read | DiskError::Sync) => failed,
    }
}

fn lock_code(result: Result<Result<(), Busy>, DiskError>, failed: c_int) -> c_int {
    match result {
        Ok(Err(Busy)) => SQLITE_BUSY,
        other => code(other, failed),
    }
}

fn level(level: c_int) -> Level {
    match level {
        SQLITE_LOCK_NONE => Level::Unlocked,
        SQLITE_LOCK_SHARED => Level::Shared,
        SQLITE_LOCK_RESERVED => Level::Reserved,
        SQLITE_LOCK_PENDING => Level::Pending,
        _ => Level::Exclusive,
    }
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: the name, if any, is a string of C.
    let opened = match unsafe { text(name) } {
        Some(name) => Handle::open(name, flags & SQLITE_OPEN_CREATE != 0),
        None => Handle::temporary(),
    };
    // SAFETY: SQLite allocated `szOsFile` bytes for `file`; null methods tell it not to close.
    unsafe { (*file).pMethods = std::ptr::null() };
    let Some(opened) = opened else { return SQLITE_CANTOPEN };
    // SAFETY: as above, and `out_flags` may be null but not wrong.
    unsafe {
        (*file.cast::<File>()).handle = Arc::into_raw(opened);
        (*file).pMethods = &raw const METHODS;
        if let Some(out_flags) = out_flags.as_mut() {
            *out_flags = flags;
        }
    }
    SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    // SAFETY: the name is a string of C.
    let Some((process, name)) = unsafe { text(name) }.and_then(find) else { return SQLITE_IOERR_DELETE };
    let machine = process.machine();
    match machine.delete(name) {
        Ok(true) if sync_directory != 0 => {
            code(machine.sync_directory(&|| !process.is_dead()), SQLITE_IOERR_DIR_FSYNC)
        }
        Ok(true) => SQLITE_OK,
        Ok(false) => SQLITE_IOERR_DELETE_NOENT,
        Err(error) => code(Err::<(), _>(error), SQLITE_IOERR_DELETE),
    }
}

unsafe extern "C" fn access(_: *mut sqlite3_vfs, name: *const c_char, _: c_int, out: *mut c_int) -> c_int {
    // SAFETY: the name is a string of C.
    let Some((process, name)) = unsafe { text(name) }.and_then(find) else { return SQLITE_IOERR_ACCESS };
    // As in SQLite's own file systems, an empty file does not count.
    let found = process.machine().open(name, false).and_then(|file| file.map_or(Ok(0), |file| file.size()));
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *out = c_int::from(found.is_ok_and(|size| size > 0)) };
    code(found, SQLITE_IOERR_ACCESS)
}

unsafe extern "C" fn full_path(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: the name is a string of C.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if bytes.len() > room as usize {
        return SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has `room` bytes, apart from those of the name.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    SQLITE_OK
}

unsafe extern "C" fn randomness(_: *mut sqlite3_vfs, len: c_int, out: *mut c_char) -> c_int {
    // SAFETY: `out` has `len` bytes.
    let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), len as usize) };
    for byte in out {
        // A linear congruential generator (Knuth, MMIX); its high bits are the good ones.
        let next =
            RANDOM.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        RANDOM.set(next);
        *byte = (next >> 56) as u8;
    }
    len
}

/// Only SQLite's busy handler sleeps; nothing can change while it does, so it does not wait.
unsafe extern "C" fn sleep(_: *mut sqlite3_vfs, micros: c_int) -> c_int {
    micros
}

unsafe extern "C" fn current_time_ms(_: *mut sqlite3_vfs, out: *mut i64) -> c_int {
    let now = CLOCK.with_borrow(|clock| clock());
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *out = EPOCH + now };
    SQLITE_OK
}

unsafe extern "C" fn current_time(vfs: *mut sqlite3_vfs, out: *mut f64) -> c_int {
    let mut now = 0;
    // SAFETY: the same promises hold for both functions.
    unsafe {
        current_time_ms(vfs, &raw mut now);
        *out = now as f64 / 86_400_000.0;
    }
    SQLITE_OK
}

unsafe extern "C" fn last_error(_: *mut sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    0
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: `open` made this from an `Arc`, and SQLite does not use the file after it has closed it.
    let handle = unsafe { Arc::from_raw((*file.cast::<File>()).handle) };
    handle.close();
    SQLITE_OK
}

unsafe extern "C" fn read(file: *mut sqlite3_file, out: *mut c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: an open file, and a buffer of `len` bytes.
    let (handle, out) =
        unsafe { (handle(file), std::slice::from_raw_parts_mut(out.cast::<u8>(), len as usize)) };
    match handle.read(offset as u64, out) {
        Ok(got) if got < out.len() => {
            // SQLite demands that the rest be zero.
            out[got..].fill(0);
            SQLITE_IOERR_SHORT_READ
        }
        other => code(other, SQLITE_IOERR_READ),
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, data: *const c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: an open file, and a buffer of `len` bytes.
    let (handle, data) =
        unsafe { (handle(file), std::slice::from_raw_parts(data.cast::<u8>(), len as usize)) };
    code(handle.write(offset as u64, data), SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, len: i64) -> c_int {
    // SAFETY: an open file.
    code(unsafe { handle(file) }.set_len(len as u64), SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    // SAFETY: an open file.
    code(unsafe { handle(file) }.sync(), SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn size(file: *mut sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: an open file.
    let size = unsafe { handle(file) }.size();
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *out = size.unwrap_or(0) as i64 };
    code(size, SQLITE_IOERR_FSTAT)
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, want: c_int) -> c_int {
    // SAFETY: an open file.
    lock_code(unsafe { handle(file) }.lock(level(want)), SQLITE_IOERR_LOCK)
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, to: c_int) -> c_int {
    // SAFETY: an open file.
    unsafe { handle(file) }.unlock(level(to));
    SQLITE_OK
}

unsafe extern "C" fn check_reserved(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open file.
    let reserved = unsafe { handle(file) }.reserved();
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *out = c_int::from(reserved.unwrap_or(false)) };
    code(reserved, SQLITE_IOERR_CHECKRESERVEDLOCK)
}

unsafe extern "C" fn control(_: *mut sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut sqlite3_file) -> c_int {
    SECTOR as c_int
}

/// Promises what SQLite's own VFS for Unix promises by default, and what the crash model keeps: a torn write
/// never changes bytes outside the range that was written.
unsafe extern "C" fn characteristics(_: *mut sqlite3_file) -> c_int {
    SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    n: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    assert_eq!(size as usize, REGION, "SQLite asks for regions of one size");
    // SAFETY: an open file.
    let region = unsafe { handle(file) }.map(n as usize, extend != 0);
    // The handle keeps the region alive until it is unmapped or closed; atomics may be written through a
    // pointer from a shared reference.
    let pointer = match &region {
        Ok(Some(region)) => region.as_ptr().cast_mut().cast(),
        Ok(None) | Err(_) => std::ptr::null_mut(),
    };
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *out = pointer };
    code(region, SQLITE_IOERR_SHMMAP)
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, first: c_int, n: c_int, flags: c_int) -> c_int {
    let (first, n) = (first as u32, n as u32);
    assert!(n >= 1 && first + n <= INDEX_LOCKS, "SQLite has {INDEX_LOCKS} locks on the WAL index");
    let locks = (((1u16 << n) - 1) << first) as u8;
    // SAFETY: an open file.
    let handle = unsafe { handle(file) };
    if flags & SQLITE_SHM_UNLOCK != 0 {
        handle.unlock_index(locks);
        return SQLITE_OK;
    }
    lock_code(handle.lock_index(locks, flags & SQLITE_SHM_EXCLUSIVE != 0), SQLITE_IOERR_SHMLOCK)
}

unsafe extern "C" fn shm_barrier(_: *mut sqlite3_file) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: an open file.
    unsafe { handle(file) }.unmap();
    SQLITE_OK
}
