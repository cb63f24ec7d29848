//! A crash leaves only what it may: checked against a model that keeps every version of every file.

use super::*;
use proptest::prelude::*;
use std::sync::atomic::AtomicUsize;

#[derive(Clone, Debug)]
enum Step {
    Write { file: usize, offset: u64, len: usize },
    SetLen { file: usize, len: u64 },
    Sync { file: usize },
    SyncDirectory,
    Delete { file: usize },
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0..NAMES.len();
    let step = prop_oneof![
        6 => (file.clone(), 0..3000u64, 1..1800usize)
            .prop_map(|(file, offset, len)| Step::Write { file, offset, len }),
        2 => (file.clone(), 0..4000u64).prop_map(|(file, len)| Step::SetLen { file, len }),
        2 => file.clone().prop_map(|file| Step::Sync { file }),
        1 => Just(Step::SyncDirectory),
        1 => file.prop_map(|file| Step::Delete { file }),
    ];
    prop::collection::vec(step, 1..40)
}

/// Every version since the last sync, the durable one first; each with the number of its change.
type Versions<T> = Vec<(u64, T)>;

/// An own account of what the machine did: whole contents instead of changes.
struct Model {
    files: Vec<Versions<Vec<u8>>>,
    names: BTreeMap<&'static str, Versions<Option<usize>>>,
    changes: u64,
}

impl Model {
    fn new() -> Self {
        let names = NAMES.iter().map(|name| (*name, vec![(0, None)])).collect();
        Model { files: vec![], names, changes: 0 }
    }

    fn open(&mut self, name: &'static str) -> usize {
        let current = self.names[name].last().unwrap().1;
        current.unwrap_or_else(|| {
            self.files.push(vec![(0, vec![])]);
            self.rename(name, Some(self.files.len() - 1));
            self.files.len() - 1
        })
    }

    fn rename(&mut self, name: &'static str, file: Option<usize>) {
        self.changes += 1;
        self.names.get_mut(name).unwrap().push((self.changes, file));
    }

    fn edit(&mut self, file: usize, edit: impl FnOnce(&mut Vec<u8>)) {
        self.changes += 1;
        let mut bytes = self.files[file].last().unwrap().1.clone();
        edit(&mut bytes);
        self.files[file].push((self.changes, bytes));
    }

    fn sync_names(&mut self, durable: impl Fn(Option<usize>) -> bool) {
        for versions in self.names.values_mut() {
            let last = versions.iter().skip(1).rposition(|version| durable(version.1));
            versions.drain(..last.map_or(0, |at| at + 1));
        }
    }

    /// The disk as it is when only the changes up to number `cut` happened.
    fn until(&self, cut: u64) -> BTreeMap<&'static str, (usize, Vec<u8>)> {
        let file = |(name, versions): (&&'static str, &Versions<Option<usize>>)| {
            let file = at(versions, cut).to_owned()?;
            Some((*name, (file, at(&self.files[file], cut).clone())))
        };
        self.names.iter().filter_map(file).collect()
    }
}

/// The last version that is not newer than change `cut`; the durable one counts as old.
fn at<T>(versions: &Versions<T>, cut: u64) -> &T {
    let newer = versions.iter().skip(1).filter(|version| version.0 > cut).count();
    &versions[versions.len() - 1 - newer].1
}

/// Runs the steps on a machine and on the model.
fn run(steps: &[Step], seed: u64) -> (Arc<Machine>, Model) {
    let machine = Machine::boot(DiskImage::empty(), no_hooks(), seed);
    let mut model = Model::new();
    for (n, step) in steps.iter().enumerate() {
        let fill = n as u8 + 1;
        match *step {
            Step::Write { file, offset, len } => {
                let data: Vec<u8> = (0..len).map(|i| fill ^ (i as u8).wrapping_mul(31)).collect();
                machine.open(NAMES[file], true).unwrap().unwrap().write(offset, &data).unwrap();
                let file = model.open(NAMES[file]);
                model.edit(file, |bytes| {
                    let end = offset as usize + len;
                    bytes.resize(bytes.len().max(end), 0);
                    bytes[offset as usize..end].copy_from_slice(&data);
                });
            }
            Step::SetLen { file, len } => {
                machine.open(NAMES[file], true).unwrap().unwrap().set_len(len).unwrap();
                let file = model.open(NAMES[file]);
                model.edit(file, |bytes| bytes.resize(len as usize, 0));
            }
            Step::Sync { file } => {
                let Some(opened) = machine.open(NAMES[file], false).unwrap() else { continue };
                opened.sync(&|| true).unwrap();
                let file = model.open(NAMES[file]);
                let last = model.files[file].pop().unwrap();
                model.files[file] = vec![last];
                model.sync_names(|version| version.is_none_or(|synced| synced == file));
            }
            Step::SyncDirectory => {
                machine.sync_directory(&|| true).unwrap();
                model.sync_names(|_| true);
            }
            Step::Delete { file } => {
                if machine.delete(NAMES[file]).unwrap() {
                    model.rename(NAMES[file], None);
                }
            }
        }
    }
    (machine, model)
}

fn contents(image: &DiskImage) -> BTreeMap<String, Vec<u8>> {
    image.files().map(|name| (name.to_owned(), image.bytes(name).unwrap())).collect()
}

/// A file's sector, with zeros past the end of the file.
fn sector(bytes: &[u8], n: usize) -> Vec<u8> {
    let start = (n * SECTOR as usize).min(bytes.len());
    let mut sector = bytes[start..bytes.len().min(start + SECTOR as usize)].to_vec();
    sector.resize(SECTOR as usize, 0);
    sector
}

/// Whether `found` is a mixture of the versions, sector by sector.
fn is_mixed(found: &[u8], versions: &Versions<Vec<u8>>, torn: bool) -> bool {
    let cut = |version: &(u64, Vec<u8>), n| {
        let mut sector = sector(&version.1, n);
        let end = found.len().saturating_sub(n * SECTOR as usize).min(SECTOR as usize);
        sector[end..].fill(0);
        sector
    };
    let legal = |n: usize| {
        let got = sector(found, n);
        let same = |version| cut(version, n) == got;
        let tears = |pair: &[(u64, Vec<u8>)]| {
            let (old, new) = (cut(&pair[0], n), cut(&pair[1], n));
            let changed = got.iter().zip(&old).rposition(|(got, old)| got != old).map_or(0, |at| at + 1);
            got[..changed] == new[..changed]
        };
        versions.iter().any(same) || torn && versions.windows(2).any(tears)
    };
    versions.iter().any(|version| version.1.len() == found.len())
        && (0..found.len().div_ceil(SECTOR as usize)).all(legal)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn nothing_is_the_durable_image_and_everything_the_cache(steps in steps(), seed: u64) {
        let (machine, model) = run(&steps, seed);
        let strip = |files: BTreeMap<&'static str, (usize, Vec<u8>)>| -> BTreeMap<String, Vec<u8>> {
            files.into_iter().map(|(name, (_, bytes))| (name.to_owned(), bytes)).collect()
        };
        let (durable, cache) = (strip(model.until(0)), strip(model.until(u64::MAX)));
        prop_assert_eq!(contents(&machine.durable_image()), durable.clone());
        prop_assert_eq!(contents(&machine.cache_image()), cache.clone());
        prop_assert_eq!(contents(&machine.crash(&CrashKeep::Nothing)), durable);
        prop_assert_eq!(contents(&machine.crash(&CrashKeep::Everything)), cache);
    }

    #[test]
    fn a_prefix_is_the_state_between_two_changes_or_within_one(steps in steps(), seed: u64, how: u64) {
        let (machine, model) = run(&steps, seed);
        let image = machine.crash(&CrashKeep::Prefix(how));
        let found = contents(&image);
        let legal = (0..=model.changes).any(|cut| {
            let (old, new) = (model.until(cut), model.until(cut + 1));
            let within = |(name, (file, old)): (&&'static str, &(usize, Vec<u8>))| {
                let new = new.get(name).filter(|new| new.0 == *file).map_or(old, |new| &new.1);
                let found = &found[*name];
                let differs = found.iter().zip(old).rposition(|(found, old)| found != old);
                let longer = found.len() > old.len();
                let changed = if longer { found.len() } else { differs.map_or(0, |at| at + 1) };
                new.len() >= changed && found[..changed] == new[..changed]
                    && (found == new || found.len() == old.len() || changed % SECTOR as usize == 0)
            };
            found.keys().eq(old.keys()) && old.iter().all(within)
        });
        prop_assert!(legal, "no prefix leaves {:?}", image);
    }

    #[test]
    fn a_mixture_has_only_versions_that_were(steps in steps(), seed: u64, how: u64, torn: bool) {
        let (machine, model) = run(&steps, seed);
        let keep = CrashKeep::Mixed { seed: how, torn };
        let image = machine.crash(&keep);
        prop_assert!(image == machine.crash(&keep), "a crash is a function of its arguments");
        for (name, versions) in &model.names {
            let Some(found) = image.bytes(name) else {
                prop_assert!(versions.iter().any(|version| version.1.is_none()), "{} is lost", name);
                continue;
            };
            let mut files = versions.iter().filter_map(|version| version.1);
            let legal = files.any(|file| is_mixed(&found, &model.files[file], torn));
            prop_assert!(legal, "{} was never so", name);
        }
    }

    #[test]
    fn what_was_synced_survives_every_cut(steps in steps(), seed: u64, how: u64) {
        let keeps = [
            CrashKeep::Nothing,
            CrashKeep::Everything,
            CrashKeep::Prefix(how),
            CrashKeep::Mixed { seed: how, torn: false },
            CrashKeep::Mixed { seed: how, torn: true },
        ];
        for keep in keeps {
            let (machine, _) = run(&steps, seed);
            for name in NAMES {
                machine.open(name, true).unwrap().unwrap().sync(&|| true).unwrap();
            }
            let cache = machine.cache_image();
            prop_assert!(machine.crash(&keep) == cache, "{:?} lost what was synced", keep);
        }
    }
}

#[test]
fn a_mixture_reaches_every_version_and_tears() {
    let old = [1u8; 512];
    let mut seen = std::collections::BTreeSet::new();
    let mut torn_at = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let machine = Machine::boot(DiskImage::from_files([("f", old)]), no_hooks(), 9);
        let file = machine.open("f", false).unwrap().unwrap();
        file.write(0, &[2; 512]).unwrap();
        file.write(0, &[3; 512]).unwrap();
        let bytes = machine.crash(&CrashKeep::Mixed { seed, torn: true }).bytes("f").unwrap();
        seen.insert((bytes[0], bytes[511]));
        torn_at.extend(bytes.windows(2).position(|pair| pair[0] != pair[1]));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]);
    assert!(torn_at.len() > 100, "{} places of tearing", torn_at.len());
}

/// Fails, lies or cuts the power at the n-th question.
#[derive(Default)]
struct Trouble {
    fail: AtomicBool,
    full: AtomicBool,
    cut_at_write: AtomicBool,
    machine: Mutex<Weak<Machine>>,
    reported: AtomicUsize,
}

impl DiskHooks for Trouble {
    fn wrote(&self, _: &str, _: u64, _: u32) {
        self.reported.fetch_add(1, Relaxed);
        if self.cut_at_write.load(Relaxed) {
            self.machine.lock().unwrap().upgrade().unwrap().power_off();
        }
    }

    fn sync_error(&self, _: &str) -> bool {
        self.fail.swap(false, Relaxed)
    }

    fn full(&self, _: &str, _: u32) -> bool {
        self.full.load(Relaxed)
    }
}

fn troubled() -> (Arc<Trouble>, Arc<Machine>) {
    let trouble = Arc::new(Trouble::default());
    let machine = Machine::boot(DiskImage::from_files([("f", [1; 1024])]), trouble.clone(), 1);
    *trouble.machine.lock().unwrap() = Arc::downgrade(&machine);
    (trouble, machine)
}

#[test]
fn after_a_failed_sync_only_what_is_written_again_becomes_durable() {
    let (trouble, machine) = troubled();
    let file = machine.open("f", false).unwrap().unwrap();
    file.write(0, &[2; 1024]).unwrap();
    trouble.fail.store(true, Relaxed);
    assert_eq!(file.sync(&|| true), Err(DiskError::Sync));
    let mut seen = [0; 1024];
    assert_eq!(file.read(0, &mut seen), Ok(1024));
    assert_eq!(seen, [2; 1024], "the page cache keeps it");
    file.write(512, &[3; 512]).unwrap();
    assert_eq!(file.sync(&|| true), Ok(()), "the next sync succeeds");
    let left = machine.crash(&CrashKeep::Everything).bytes("f").unwrap();
    assert_eq!((left[0], left[511], left[512], left[1023]), (1, 1, 3, 3));
}

#[test]
fn a_full_disk_writes_nothing() {
    let (trouble, machine) = troubled();
    trouble.full.store(true, Relaxed);
    let file = machine.open("f", false).unwrap().unwrap();
    assert_eq!(file.write(0, &[2; 8]), Err(DiskError::Full));
    assert_eq!(machine.cache_image(), machine.durable_image());
    assert_eq!(trouble.reported.load(Relaxed), 0);
}

#[test]
fn the_write_that_meets_the_power_cut_may_happen_in_part() {
    let (trouble, machine) = troubled();
    trouble.cut_at_write.store(true, Relaxed);
    let file = machine.open("f", false).unwrap().unwrap();
    assert_eq!(file.write(0, &[2; 1024]), Err(DiskError::Dead));
    assert_eq!(file.write(0, &[3; 1024]), Err(DiskError::Dead));
    let left = |seed| {
        let bytes = machine.crash(&CrashKeep::Prefix(seed)).bytes("f").unwrap();
        (bytes[0], bytes[1023])
    };
    let seen: std::collections::BTreeSet<_> = (0..100).map(left).collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 1), (2, 2)]);
}

#[test]
fn flipping_damages_one_byte_of_one_copy() {
    let whole = DiskImage::from_files([("f", [7u8; 5000])]);
    let mut damaged = whole.clone();
    damaged.flip("f", 4500, 0x81);
    assert_eq!(damaged.bytes("f").unwrap()[4500], 0x86);
    assert_eq!(whole.bytes("f").unwrap(), [7u8; 5000]);
    damaged.flip("f", 4500, 0x81);
    assert_eq!(damaged, whole);
}

/// One bit of one file, the same one for the same seed, for programs and after a power cut alike.
#[test]
fn a_disk_decays_by_one_bit() {
    let files = [("a", vec![0_u8; 700]), ("b", vec![0; 5000]), ("empty", vec![])];
    let flipped = |seed| {
        let machine = Machine::boot(DiskImage::from_files(files.clone()), no_hooks(), 7);
        assert!(machine.flip_bit(seed));
        let (seen, kept) = (machine.cache_image(), machine.durable_image());
        let ones = |image: &DiskImage| -> Vec<(usize, u32)> {
            let bytes = files.iter().flat_map(|(name, _)| image.bytes(name).unwrap());
            bytes
                .enumerate()
                .filter(|(_, byte)| *byte != 0)
                .map(|(at, byte)| (at, byte.count_ones()))
                .collect()
        };
        assert_eq!(ones(&seen), ones(&kept));
        ones(&kept)
    };
    let all: Vec<_> = (0..40).map(flipped).collect();
    assert!(all.iter().all(|ones| matches!(ones[..], [(_, 1)])), "{all:?}");
    assert_eq!(flipped(3), all[3]);
    assert!(all.iter().any(|ones| ones[0].0 < 700) && all.iter().any(|ones| ones[0].0 >= 700));
    assert!(!Machine::boot(DiskImage::empty(), no_hooks(), 0).flip_bit(1), "an empty disk has no bit");
}
