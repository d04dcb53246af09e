//! Pages of plain files, read one by one in no order.

use std::io;

use holdfast::disk::{Disk, File, Name, OpenOptions, os::OsDisk, read_exact};

use crate::Stopwatch;

const PAGE_LEN: usize = 4096;
const PAGE: u64 = PAGE_LEN as u64;
/// Open files at a time: a process may have a thousand.
const FILES_MAX: usize = 512;
/// An odd number far from a simple fraction of 2^64: its multiples fall everywhere.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Files whose pages are read. Those beyond the first 512 are left out.
pub struct RandomPages {
    files: Vec<(Box<dyn File>, u64)>,
    pages: u64,
}

impl RandomPages {
    /// Opens them. Empty files are passed over.
    pub fn open(disk: &OsDisk, names: &[Name]) -> io::Result<Self> {
        let mut files = Vec::new();
        let mut pages = 0;
        for name in names.iter().take(FILES_MAX) {
            let file = disk.open(name, OpenOptions::READ)?;
            let here = file.len()? / PAGE;
            if here > 0 {
                files.push((file, pages));
                pages += here;
            }
        }
        Ok(Self { files, pages })
    }

    /// Reads so many pages of 4 KiB, those that the numbers from `from` on fall on, with one `pread` each, and gives the reads a second.
    pub fn read(&self, from: u64, count: u64) -> io::Result<f64> {
        let mut page = [0; PAGE_LEN];
        let watch = Stopwatch::start();
        for number in from..from + count {
            let place = (u128::from(number.wrapping_mul(SPREAD)) * u128::from(self.pages)) >> 64;
            let place = u64::try_from(place).expect("below the number of pages");
            let index = self.files.partition_point(|(_, first)| *first <= place);
            let Some((file, first)) = index.checked_sub(1).and_then(|index| self.files.get(index)) else { break };
            read_exact(&**file, &mut page, (place - first) * PAGE)?;
        }
        Ok(crate::figure(count) / watch.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_all_files_are_read_and_none_behind_their_ends() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let disk = OsDisk::create(place.path().join("files")).expect("made");
        let names = ["a", "empty", "b"].map(|name| Name::new(name).expect("a flat name"));
        for (name, len) in names.iter().zip([3 * PAGE, 100, PAGE + 1]) {
            disk.open(name, OpenOptions::CREATE).and_then(|file| file.set_len(len)).expect("made");
        }
        let pages = RandomPages::open(&disk, &names).expect("opened");
        assert_eq!((pages.files.len(), pages.pages), (2, 4));
        assert!(pages.read(7, 1000).expect("read") > 0.0);
        assert!(RandomPages::open(&disk, &[]).and_then(|none| none.read(0, 10)).is_ok());
    }
}
