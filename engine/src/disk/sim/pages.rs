//! The bytes of one simulated file: pages that copies share until one of them writes.
//!
//! A copy costs a pointer for each 128 KiB, a hole nothing, a page of written zeros no memory. It knows nothing of names, syncs
//! or crashes. Digests are remembered where the bytes are, so that an image costs only what differs from the one before.

use std::collections::BTreeMap;

use crate::sync::{Arc, OnceLock};

/// Unit of sharing, and of allocation.
pub(super) const PAGE: u64 = super::super::BLOCK;
const PAGE_LEN: usize = 4096;
/// Pages of a leaf.
const FAN: usize = 32;
/// BLAKE3 of what is not all zeros; zeros of any kind are this.
const ZERO_DIGEST: [u8; 32] = [0; 32];

/// One page of a file.
#[derive(Clone, Default)]
enum Page {
    /// Not allocated.
    #[default]
    Hole,
    /// Allocated and never written with anything but zeros.
    Zero,
    Data(Arc<Sheet>),
}

/// Bytes of a page.
#[derive(Clone)]
pub(super) struct Sheet {
    bytes: [u8; PAGE_LEN],
    digest: OnceLock<[u8; 32]>,
}

impl Sheet {
    fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let zeros = self.bytes.iter().all(|b| *b == 0);
            if zeros { ZERO_DIGEST } else { *blake3::hash(&self.bytes).as_bytes() }
        })
    }
}

impl Page {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Hole | Self::Zero => None,
            Self::Data(sheet) => Some(&sheet.bytes),
        }
    }

    /// The bytes, to be changed: the page's own from here on.
    fn bytes_mut(&mut self) -> &mut [u8; PAGE_LEN] {
        if let Self::Hole | Self::Zero = self {
            *self = Self::Data(Arc::new(Sheet { bytes: [0; PAGE_LEN], digest: OnceLock::new() }));
        }
        let Self::Data(sheet) = self else { unreachable!("made one line above") };
        let sheet = Arc::make_mut(sheet);
        sheet.digest = OnceLock::new();
        &mut sheet.bytes
    }
}

/// Neighbouring pages.
#[derive(Clone, Default)]
struct Leaf {
    pages: [Page; FAN],
    digest: OnceLock<[u8; 32]>,
}

impl Leaf {
    fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            for (index, page) in (0u8..).zip(&self.pages) {
                if let Page::Data(sheet) = page
                    && *sheet.digest() != ZERO_DIGEST
                {
                    hasher.update(&[index]).update(sheet.digest());
                }
            }
            if hasher.count() == 0 { ZERO_DIGEST } else { *hasher.finalize().as_bytes() }
        })
    }
}

/// The bytes of a file.
#[derive(Clone, Default)]
pub(super) struct Content {
    len: u64,
    allocated: u64,
    leaves: BTreeMap<u64, Arc<Leaf>>,
    digest: OnceLock<[u8; 32]>,
}

/// A part of one page: its number, and the range within it.
struct Part {
    page: u64,
    start: usize,
    end: usize,
}

impl Part {
    fn is_whole(&self) -> bool {
        (self.start, self.end) == (0, PAGE_LEN)
    }
}

/// Cuts a range at page borders.
fn parts(offset: u64, len: u64) -> impl Iterator<Item = Part> {
    let end = offset.saturating_add(len);
    let mut at = offset;
    std::iter::from_fn(move || {
        let page = at / PAGE;
        let stop = end.min((page + 1).saturating_mul(PAGE));
        let within = |n: u64| usize::try_from(n - page * PAGE).expect("within a page");
        let part = (at < end).then(|| Part { page, start: within(at), end: within(stop) });
        at = stop;
        part
    })
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Allocated pages.
    pub(super) fn allocated(&self) -> u64 {
        self.allocated
    }

    fn page(&self, page: u64) -> &Page {
        let leaf = self.leaves.get(&(page / FAN as u64));
        leaf.map_or(&Page::Hole, |leaf| &leaf.pages[slot(page)])
    }

    /// Changes a page, and keeps the count and the digests true.
    fn change<T>(&mut self, page: u64, change: impl FnOnce(&mut Page) -> T) -> T {
        self.digest = OnceLock::new();
        let leaf = Arc::make_mut(self.leaves.entry(page / FAN as u64).or_default());
        leaf.digest = OnceLock::new();
        let place = &mut leaf.pages[slot(page)];
        let before = u64::from(!matches!(place, Page::Hole));
        let result = change(place);
        self.allocated = self.allocated - before + u64::from(!matches!(place, Page::Hole));
        result
    }

    /// Reads up to the end of the file; gives the number of bytes.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> usize {
        let count = (bytes.len() as u64).min(self.len.saturating_sub(offset));
        let mut done = 0;
        for part in parts(offset, count) {
            let piece = &mut bytes[done..done + part.end - part.start];
            match self.page(part.page).bytes() {
                Some(page) => piece.copy_from_slice(&page[part.start..part.end]),
                None => piece.fill(0),
            }
            done += piece.len();
        }
        done
    }

    /// All bytes.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.len).expect("the caller reads files that fit into memory")];
        self.read(&mut bytes, 0);
        bytes
    }

    /// Bytes from `offset` on, at most `len`, that can be written before `room` pages are allocated.
    pub(super) fn fits(&self, offset: u64, len: u64, mut room: u64) -> u64 {
        for part in parts(offset, len) {
            if matches!(self.page(part.page), Page::Hole) {
                if room == 0 {
                    return (part.page * PAGE).max(offset) - offset;
                }
                room -= 1;
            }
        }
        len
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        for part in parts(offset, bytes.len() as u64) {
            let piece = &bytes[done..done + part.end - part.start];
            self.change(part.page, |page| page.bytes_mut()[part.start..part.end].copy_from_slice(piece));
            done += piece.len();
        }
        self.extend(offset, bytes.len() as u64);
    }

    /// Writes zeros, which allocates.
    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        for part in parts(offset, len) {
            self.change(part.page, |page| match page {
                Page::Data(_) if !part.is_whole() => page.bytes_mut()[part.start..part.end].fill(0),
                _ => *page = Page::Zero,
            });
        }
        self.extend(offset, len);
    }

    /// Writes other bytes than the writer's: what a page held in another life, or one byte again and again.
    pub(super) fn scribble(&mut self, offset: u64, len: u64, mut source: impl FnMut(u64) -> Option<Arc<Sheet>>) {
        for part in parts(offset, len) {
            let sheet = source(part.page);
            self.change(part.page, |page| {
                let piece = &mut page.bytes_mut()[part.start..part.end];
                match &sheet {
                    Some(sheet) => piece.copy_from_slice(&sheet.bytes[part.start..part.end]),
                    None => piece.fill(0xff),
                }
            });
        }
        self.extend(offset, len);
    }

    /// Frees whole pages; the range is aligned to them.
    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let (first, last) = (offset / PAGE, offset.saturating_add(len) / PAGE);
        self.free(first, last);
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.free(len.div_ceil(PAGE), u64::MAX / PAGE);
            // What the file held behind its new end must not come back when it grows again.
            let tail = len.next_multiple_of(PAGE) - len;
            if let Page::Data(_) = self.page(len / PAGE)
                && tail > 0
            {
                self.zero(len, tail);
            }
        }
        self.digest = OnceLock::new();
        self.len = len;
    }

    /// Turns the pages from `first` to before `last` into holes, going only over those that are there.
    fn free(&mut self, first: u64, last: u64) {
        let fan = FAN as u64;
        let leaves: Vec<u64> = self.leaves.range(first / fan..last.div_ceil(fan)).map(|(leaf, _)| *leaf).collect();
        for leaf in leaves {
            for page in first.max(leaf * fan)..last.min((leaf + 1) * fan) {
                self.change(page, |page| *page = Page::Hole);
            }
            if self.leaves[&leaf].pages.iter().all(|page| matches!(page, Page::Hole)) {
                self.leaves.remove(&leaf);
            }
        }
    }

    fn extend(&mut self, offset: u64, len: u64) {
        if len > 0 {
            self.len = self.len.max(offset.saturating_add(len));
        }
        self.digest = OnceLock::new();
    }

    /// Pages of a range that hold bytes, with their numbers.
    pub(super) fn sheets(&self, offset: u64, len: u64) -> impl Iterator<Item = (u64, &Arc<Sheet>)> {
        let (first, last) = (offset / PAGE, offset.saturating_add(len).div_ceil(PAGE));
        let fan = FAN as u64;
        let leaves = self.leaves.range(first / fan..last.div_ceil(fan).max(first / fan));
        let pages = leaves.flat_map(move |(leaf, pages)| (leaf * fan..).zip(&pages.pages));
        pages.filter_map(move |(page, place)| match place {
            Page::Data(sheet) if (first..last).contains(&page) => Some((page, sheet)),
            _ => None,
        })
    }

    /// Identity of length and bytes; a hole and written zeros are the same.
    pub(super) fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&self.len.to_le_bytes());
            for (index, leaf) in &self.leaves {
                if *leaf.digest() != ZERO_DIGEST {
                    hasher.update(&index.to_le_bytes()).update(leaf.digest());
                }
            }
            *hasher.finalize().as_bytes()
        })
    }
}

fn slot(page: u64) -> usize {
    usize::try_from(page % FAN as u64).expect("less than the fan")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same file as plain bytes.
    fn same(content: &Content, bytes: &[u8]) {
        assert_eq!(content.len(), bytes.len() as u64);
        assert_eq!(content.to_vec(), bytes);
    }

    #[test]
    fn pages_behave_as_plain_bytes() {
        let (mut content, mut plain) = (Content::default(), Vec::new());
        let mut random = super::super::Random::new(7);
        for step in 0..2000u64 {
            let offset = random.below(5 * PAGE);
            let len = random.below(2 * PAGE);
            let at = usize::try_from(offset).expect("small");
            let end = at + usize::try_from(len).expect("small");
            match random.below(4) {
                0 | 1 => {
                    let byte = u8::try_from(step % 251).expect("a byte");
                    let byte = if random.below(2) == 0 { 0 } else { byte };
                    plain.resize(plain.len().max(if len > 0 { end } else { 0 }), 0);
                    if len > 0 {
                        plain[at..end].fill(byte);
                    }
                    if byte == 0 { content.zero(offset, len) } else { content.write(offset, &vec![byte; end - at]) }
                }
                2 => {
                    let len = random.below(6 * PAGE);
                    plain.resize(usize::try_from(len).expect("small"), 0);
                    content.set_len(len);
                }
                _ => {
                    let (first, pages) = (offset / PAGE * PAGE, len / PAGE * PAGE);
                    content.punch(first, pages);
                    let first = usize::try_from(first).expect("small");
                    let end = (first + usize::try_from(pages).expect("small")).min(plain.len());
                    if first < end {
                        plain[first..end].fill(0);
                    }
                }
            }
            same(&content, &plain);
            let mut again = Content::default();
            again.write(0, &plain);
            assert_eq!(content.digest(), again.digest(), "step {step}: equal bytes have equal digests");
        }
    }

    #[test]
    fn a_copy_keeps_its_bytes_and_its_digest() {
        let mut content = Content::default();
        content.write(0, &[1; 10_000]);
        let copy = content.clone();
        let digest = *copy.digest();
        content.write(5000, &[2]);
        assert_ne!(content.digest(), &digest);
        assert_eq!(copy.to_vec(), [1; 10_000]);
        content.write(5000, &[1]);
        assert_eq!(content.digest(), &digest);
    }

    #[test]
    fn holes_and_written_zeros_differ_in_space_only() {
        let (mut hole, mut zeros) = (Content::default(), Content::default());
        hole.set_len(1 << 40);
        zeros.zero(0, 1 << 20);
        zeros.set_len(1 << 40);
        assert_eq!((hole.allocated(), zeros.allocated()), (0, 256));
        assert_eq!(hole.digest(), zeros.digest());
        zeros.punch(0, 8192);
        assert_eq!((zeros.allocated(), zeros.fits(0, 3 * PAGE, 1), zeros.fits(0, 3 * PAGE, 2)), (254, PAGE, 3 * PAGE));
        zeros.set_len(0);
        assert_eq!((zeros.allocated(), zeros.leaves.len()), (0, 0));
    }
}
