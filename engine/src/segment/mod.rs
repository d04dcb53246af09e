//! One segment file: its name, header, frames, end. It knows nothing of the log, the catalog or who owns what.

use crate::{
    disk::{self, Disk, File, Name, OpenOptions},
    error::{Error, Kind, Result},
    format::{
        Bad,
        fields::is_zero,
        segment_header::{self, SegmentHeader},
    },
    ids::{FileId, StoreUuid},
};

pub mod reader;
pub mod registry;
pub mod scanner;
pub mod seal;
mod visits;
pub mod window;
pub mod writer;

pub use registry::{SegmentFile, Segments};
pub use visits::{Visit, Visits};

/// Name of a segment.
pub fn name(id: FileId) -> Name {
    Name::new(&format!("segment-{id}")).expect("a decimal id makes a flat name")
}

/// Name of a reserve.
pub fn reserve_name(id: FileId) -> Name {
    Name::new(&format!("reserve-{id}")).expect("a decimal id makes a flat name")
}

/// Id of a segment or reserve name; ids have one text, without leading zeros.
pub fn parse_name(name: &Name, prefix: &str) -> Option<FileId> {
    let digits = name.as_str().strip_prefix(prefix)?;
    let id = digits.parse::<u64>().ok()?;
    (id >= 1 && id.to_string() == digits).then_some(FileId(id))
}

/// A header that was read.
pub struct HeaderRead {
    /// What either copy says.
    pub header: Option<SegmentHeader>,
    /// Copies that are damaged, with what is wrong.
    pub damaged: Vec<(u64, Bad)>,
}

/// What is wrong with the second of two copies that hold.
pub const COPIES_DIFFER: &str = "segment header copies differ";

/// Reads both copies of a header. An error is an error of the disk; damage is in the answer.
pub fn read_header(file: &dyn File, uuid: StoreUuid, id: FileId) -> Result<HeaderRead> {
    let mut read = HeaderRead { header: None, damaged: Vec::new() };
    for copy in 0..segment_header::COPIES {
        let offset = u64::from(copy) * segment_header::LEN as u64;
        let mut bytes = [0; segment_header::LEN];
        disk::read_full(file, &mut bytes, offset).map_err(|e| Error::io(e, name(id), "read a segment header"))?;
        match SegmentHeader::decode(&bytes, uuid, id, copy) {
            Ok(header) if read.header.is_none_or(|first| first == header) => read.header = Some(header),
            Ok(_) => read.damaged.push((offset, Bad::damaged(COPIES_DIFFER))),
            Err(bad) if bad.newer => return Err(Error::newer(bad.what).at(name(id), offset)),
            Err(bad) => read.damaged.push((offset, bad)),
        }
    }
    Ok(read)
}

/// Opens a segment for reading.
pub fn open(disk: &dyn Disk, id: FileId, options: OpenOptions) -> Result<Box<dyn File>> {
    let name = name(id);
    disk::retry(|| disk.open(&name, options)).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::io(e, &name, "a segment is missing").with_kind(Kind::Corrupt),
        _ => Error::io(e, &name, "open a segment"),
    })
}

/// First offset at or behind `from` whose byte is not zero, if any.
pub fn first_non_zero(file: &dyn File, what: &Name, from: u64) -> Result<Option<u64>> {
    let mut found = None;
    each_part(file, what, from, &mut |offset, bytes| {
        if !is_zero(bytes) {
            found = bytes.iter().position(|b| *b != 0).map(|at| offset + at as u64);
        }
        found.is_none()
    })?;
    Ok(found)
}

/// Last offset at or behind `from` whose byte is not zero, if any.
pub fn last_non_zero(file: &dyn File, what: &Name, from: u64) -> Result<Option<u64>> {
    let mut found = None;
    each_part(file, what, from, &mut |offset, bytes| {
        if !is_zero(bytes) {
            found = bytes.iter().rposition(|b| *b != 0).map(|at| offset + at as u64);
        }
        true
    })?;
    Ok(found)
}

/// Step in which a file is read through.
const PART: usize = 256 << 10;

/// Reads from an offset to the end of the file, part by part, while the answer is true.
fn each_part(file: &dyn File, what: &Name, from: u64, see: &mut dyn FnMut(u64, &[u8]) -> bool) -> Result<()> {
    let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, what, "read a length"))?;
    if from >= len {
        return Ok(());
    }
    let mut bytes = vec![0; PART.min(usize::try_from(len.saturating_sub(from)).unwrap_or(PART) + 1)];
    let mut offset = from;
    loop {
        let read =
            disk::read_full(file, &mut bytes, offset).map_err(|e| Error::io(e, what, "read behind the frames"))?;
        if !see(offset, &bytes[..read]) || read < bytes.len() {
            return Ok(());
        }
        offset += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_name() {
        assert_eq!(parse_name(&name(FileId(7)), "segment-"), Some(FileId(7)));
        for text in ["segment-07", "segment-0", "segment-", "segment-18446744073709551616", "reserve-7"] {
            assert_eq!(parse_name(&Name::new(text).expect("flat"), "segment-"), None, "{text}");
        }
    }
}
