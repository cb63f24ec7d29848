//! What a power cut leaves of the changes that were not yet synced.

use super::image::Image;
use super::{Content, Directory, DiskImage, Machine, Op, SECTOR, SimFile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much of what was not synced survives a power cut. What was synced always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrashKeep {
    /// Everything that was not synced is lost.
    Nothing,
    /// Everything that was issued survives.
    Everything,
    /// The first so many changes of the machine survive, over all its files in the order of issue; the
    /// write at the cut may have happened in part.
    Prefix(u64),
    /// Every sector holds any of the versions that it had since the last sync, every file any of its
    /// lengths, every name any of its files.
    Mixed {
        /// Chooses among the versions.
        seed: u64,
        /// Some sectors are a newer version up to some byte and an older one from there on.
        torn: bool,
    },
}

impl Machine {
    /// Switches the machine off and gives what the next boot finds on its disk.
    ///
    /// A deterministic function of the machine (its boot seed included) and `how`.
    pub fn crash(&self, how: &CrashKeep) -> DiskImage {
        self.power_off();
        let directory = self.directory();
        match *how {
            CrashKeep::Nothing => directory.kept_until(0, 0),
            CrashKeep::Everything => directory.kept_until(u64::MAX, 0),
            CrashKeep::Prefix(seed) => {
                let mut rng = self.crash_rng(seed);
                let issued = directory.issued();
                let cut = rng.below(issued.len() as u64 + 1) as usize;
                let sectors = rng.below(9);
                directory.kept_until(issued.get(cut).copied().unwrap_or(u64::MAX), sectors)
            }
            CrashKeep::Mixed { seed, torn } => directory.mixed(&mut self.crash_rng(seed), torn),
        }
    }

    /// Flips one bit of what is durable, and of what programs see of it; `seed` takes part in which. False
    /// where the disk holds nothing.
    pub fn flip_bit(&self, seed: u64) -> bool {
        let mut rng = self.crash_rng(seed);
        let directory = self.directory();
        let holds = |file: &&Arc<SimFile>| file.content().durable.len() > 0;
        let files: Vec<_> = directory.durable.values().filter(holds).collect();
        if files.is_empty() {
            return false;
        }
        let mut content = files[rng.below(files.len() as u64) as usize].content();
        let (offset, bit) = (rng.below(content.durable.len()), rng.below(8));
        let Content { durable, cache, .. } = &mut *content;
        for image in [durable, cache] {
            if offset < image.len() {
                let mut byte = [0];
                image.read(offset, &mut byte);
                image.write(offset, &[byte[0] ^ 1 << bit]);
            }
        }
        true
    }

    fn crash_rng(&self, seed: u64) -> Rng {
        Rng(Rng(self.seed).next() ^ seed)
    }
}

impl Directory {
    /// The numbers of all changes that are not synced, in the order of issue.
    fn issued(&self) -> Vec<u64> {
        let mut issued: Vec<u64> = self.pending.iter().map(|entry| entry.seq).collect();
        for file in self.reachable() {
            issued.extend(file.content().pending.iter().map(|change| change.seq));
        }
        issued.sort_unstable();
        issued.dedup();
        issued
    }

    /// Every file that a crash can leave, each once.
    fn reachable(&self) -> Vec<Arc<SimFile>> {
        let pending = self.pending.iter().filter_map(|entry| entry.file.clone());
        let mut files: Vec<Arc<SimFile>> = self.durable.values().cloned().chain(pending).collect();
        files.sort_by_key(Arc::as_ptr);
        files.dedup_by(|a, b| Arc::ptr_eq(a, b));
        files
    }

    /// All changes before number `cut`, and the first `sectors` of the write with that number.
    fn kept_until(&self, cut: u64, sectors: u64) -> DiskImage {
        let mut names = self.durable.clone();
        for entry in self.pending.iter().filter(|entry| entry.seq < cut) {
            entry.apply(&mut names);
        }
        let keep = |(name, file): (Arc<str>, Arc<SimFile>)| {
            let image = file.content().kept_until(cut, sectors);
            (name, image)
        };
        DiskImage::from_images(names.into_iter().map(keep))
    }

    fn mixed(&self, rng: &mut Rng, torn: bool) -> DiskImage {
        let mut names = self.durable.clone();
        let mut changed: Vec<&Arc<str>> = self.pending.iter().map(|entry| &entry.name).collect();
        changed.sort_unstable();
        changed.dedup();
        for name in changed {
            let versions: Vec<_> = self.pending.iter().filter(|entry| entry.name == *name).collect();
            let kept = rng.below(versions.len() as u64 + 1) as usize;
            versions[..kept].iter().for_each(|entry| entry.apply(&mut names));
        }
        let mix = |(name, file): (Arc<str>, Arc<SimFile>)| {
            let image = file.content().mixed(rng, torn);
            (name, image)
        };
        DiskImage::from_images(names.into_iter().map(mix))
    }
}

/// The part of one change that lies in one sector.
struct Piece<'a> {
    sector: u64,
    offset: u64,
    bytes: &'a [u8],
}

impl Content {
    fn kept_until(&self, cut: u64, sectors: u64) -> Image {
        let mut image = self.durable.clone();
        for change in &self.pending {
            match &change.op {
                op if change.seq < cut => op.apply(&mut image),
                Op::Write(offset, data) if change.seq == cut => {
                    let end = ((offset / SECTOR + sectors) * SECTOR).saturating_sub(*offset) as usize;
                    if end > 0 {
                        image.write(*offset, &data[..end.min(data.len())]);
                    }
                }
                Op::Write(..) | Op::SetLen(_) => {}
            }
        }
        image
    }

    fn mixed(&self, rng: &mut Rng, torn: bool) -> Image {
        let (pieces, lengths) = self.pieces();
        let mut versions: BTreeMap<u64, u64> = BTreeMap::new();
        for piece in &pieces {
            *versions.entry(piece.sector).or_default() += 1;
        }
        // For each sector: how many of its pieces survive in full, and up to which byte the next one does.
        let mut kept: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (sector, count) in versions {
            let full = rng.below(count + 1);
            let tear = torn && full < count && rng.below(2) == 0;
            kept.insert(sector, (full, if tear { 1 + rng.below(SECTOR - 1) } else { 0 }));
        }
        let mut image = self.durable.clone();
        for piece in pieces {
            let (full, tear) = kept.get_mut(&piece.sector).expect("every piece's sector was counted");
            if *full > 0 {
                *full -= 1;
                image.write(piece.offset, piece.bytes);
            } else {
                let end =
                    (piece.sector * SECTOR + std::mem::take(tear)).saturating_sub(piece.offset) as usize;
                if end > 0 {
                    image.write(piece.offset, &piece.bytes[..end.min(piece.bytes.len())]);
                }
            }
        }
        image.set_len(lengths[rng.below(lengths.len() as u64) as usize]);
        image
    }

    /// The pending changes cut at sector boundaries, in the order of issue, and all lengths that the file
    /// had.
    ///
    /// Cutting a file off counts as writing zeros over its old end.
    fn pieces(&self) -> (Vec<Piece<'_>>, Vec<u64>) {
        const ZEROS: &[u8] = &[0; SECTOR as usize];
        let mut len = self.durable.len();
        let mut lengths = vec![len];
        let mut pieces = vec![];
        for change in &self.pending {
            let (start, end, data) = match &change.op {
                Op::Write(offset, data) => (*offset, offset + data.len() as u64, Some(data)),
                Op::SetLen(cut) => (*cut, len, None),
            };
            let mut at = start;
            while at < end {
                let stop = ((at / SECTOR + 1) * SECTOR).min(end);
                let bytes = match data {
                    Some(data) => &data[(at - start) as usize..(stop - start) as usize],
                    None => &ZEROS[..(stop - at) as usize],
                };
                pieces.push(Piece { sector: at / SECTOR, offset: at, bytes });
                at = stop;
            }
            len = change.op.len_after(len);
            lengths.push(len);
        }
        (pieces, lengths)
    }
}

/// The generator of a crash's choices: SplitMix64 (Steele, Lea, Flood 2014).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`; the bias of the remainder does not matter for the small `n` of a crash.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
