//! The contents of a disk: files whose pages are copied only when they are written.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The granule of copy-on-write, in bytes.
const PAGE: usize = 4096;

type Page = Arc<[u8; PAGE]>;

/// What is on a disk: file names and their contents. A clone shares its pages with the original.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DiskImage {
    files: BTreeMap<Arc<str>, Image>,
}

impl DiskImage {
    /// A disk without files.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A disk with these files.
    pub fn from_files<N, B>(files: impl IntoIterator<Item = (N, B)>) -> Self
    where
        N: AsRef<str>,
        B: AsRef<[u8]>,
    {
        let load = |(name, bytes): (N, B)| {
            let mut image = Image::default();
            image.write(0, bytes.as_ref());
            (Arc::from(name.as_ref()), image)
        };
        DiskImage { files: files.into_iter().map(load).collect() }
    }

    pub(super) fn from_images(images: impl IntoIterator<Item = (Arc<str>, Image)>) -> Self {
        DiskImage { files: images.into_iter().collect() }
    }

    pub(super) fn into_images(self) -> impl Iterator<Item = (Arc<str>, Image)> {
        self.files.into_iter()
    }

    /// The names of the files, in order.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(AsRef::as_ref)
    }

    /// The contents of a file, if it exists.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.files.get(name).map(Image::bytes)
    }

    /// The length of a file in bytes, if it exists.
    pub fn len(&self, name: &str) -> Option<u64> {
        self.files.get(name).map(Image::len)
    }

    /// Damages one byte: inverts its bits that are set in `mask`.
    ///
    /// # Panics
    /// If the file does not exist or ends before `offset`: the damage would be no damage.
    pub fn flip(&mut self, name: &str, offset: u64, mask: u8) {
        let image = self.files.get_mut(name).expect("the file to be damaged exists");
        assert!(offset < image.len, "offset {offset} is past the end of {name} ({} bytes)", image.len);
        let mut byte = [0];
        image.read(offset, &mut byte);
        image.write(offset, &[byte[0] ^ mask]);
    }
}

impl fmt::Debug for DiskImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.files.iter().map(|(name, image)| (name, image.len))).finish()
    }
}

/// The contents of one file. Invariant: what a page holds past the end of the file is zero.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Image {
    pages: Vec<Page>,
    len: u64,
}

impl Image {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; self.len as usize];
        self.read(0, &mut out);
        out
    }

    /// Cuts the file off, or extends it with zeros.
    pub(super) fn set_len(&mut self, len: u64) {
        let pages = (len as usize).div_ceil(PAGE);
        self.pages.resize_with(pages, zero_page);
        let tail = len as usize % PAGE;
        if len < self.len && tail != 0 {
            Arc::make_mut(&mut self.pages[pages - 1])[tail..].fill(0);
        }
        self.len = len;
    }

    /// Fills `out` from `offset` on; what lies past the end of the file reads as zeros.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) {
        let mut at = offset as usize;
        let mut out = out;
        while !out.is_empty() {
            let within = at % PAGE;
            let n = (PAGE - within).min(out.len());
            let (head, rest) = out.split_at_mut(n);
            match self.pages.get(at / PAGE) {
                Some(page) => head.copy_from_slice(&page[within..within + n]),
                None => head.fill(0),
            }
            out = rest;
            at += n;
        }
    }

    /// Puts `data` at `offset`, extending the file where it is too short.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        if end > self.len {
            self.set_len(end);
        }
        let mut at = offset as usize;
        let mut data = data;
        while !data.is_empty() {
            let within = at % PAGE;
            let n = (PAGE - within).min(data.len());
            Arc::make_mut(&mut self.pages[at / PAGE])[within..within + n].copy_from_slice(&data[..n]);
            data = &data[n..];
            at += n;
        }
    }
}

fn zero_page() -> Page {
    static ZERO: OnceLock<Page> = OnceLock::new();
    ZERO.get_or_init(|| Arc::new([0; PAGE])).clone()
}
