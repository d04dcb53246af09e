//! What the system counts about this process and about the files of a directory. Linux only, as the store is.

use std::{io, path::Path};

use rustix::fs::{Mode, OFlags, major, minor, open, stat, syncfs};

/// Unit of the counters of a block device, whatever its blocks are.
const SECTOR: u64 = 512;

/// Bytes that were written up to now to the block device of a directory, by whoever wrote them, once its filesystem has nothing left to
/// write. Where no single device stands behind it, those that this process wrote: the system then counts a page of the cache whole for
/// every write within it.
pub fn written_bytes(directory: &Path) -> io::Result<u64> {
    settle(directory)?;
    match device_counters(directory)? {
        Some(counters) => sectors_written(&counters).map(|sectors| sectors * SECTOR),
        None => value_of("/proc/self/io", "write_bytes:"),
    }
}

fn device_counters(directory: &Path) -> io::Result<Option<String>> {
    let device = stat(directory)?.st_dev;
    match text_of(&format!("/sys/dev/block/{}:{}/stat", major(device), minor(device))) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The seventh field of the kernel's `Documentation/block/stat.rst`.
fn sectors_written(counters: &str) -> io::Result<u64> {
    let field = counters.split_whitespace().nth(6).and_then(|field| field.parse().ok());
    field.ok_or_else(|| io::Error::other("the counters of the block device cannot be read"))
}

/// The most memory that this process had resident at once, in bytes.
pub fn memory_peak() -> io::Result<u64> {
    value_of("/proc/self/status", "VmHWM:").map(|kib| kib << 10)
}

/// Memory that this process has resident now and that no file stands behind, in bytes.
pub fn memory_anonymous() -> io::Result<u64> {
    value_of("/proc/self/status", "RssAnon:").map(|kib| kib << 10)
}

/// Waits until the filesystem of a directory has nothing left to write, so that a measurement does not pay for the one before it.
pub fn settle(directory: &Path) -> io::Result<()> {
    let fd = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(syncfs(fd)?)
}

fn value_of(file: &str, key: &str) -> io::Result<u64> {
    let value = text_of(file)?.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| io::Error::other(format!("{file} has no {key}")))
}

/// The text of a file of the system, which is none of a store's.
fn text_of(file: &str) -> io::Result<String> {
    std::fs::read_to_string(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_what_this_process_took() {
        assert!(memory_peak().expect("Linux") >= memory_anonymous().expect("Linux"));
        assert!(memory_anonymous().expect("Linux") > 0);
        written_bytes(Path::new(".")).expect("Linux");
        assert!(value_of("/proc/self/status", "Nothing:").is_err());
    }

    #[test]
    fn a_device_counts_the_sectors_written_in_its_seventh_field() {
        let counters =
            "   12063     4501  2468354    10040     1999    21722  1857344    14530        0     6624    26607\n";
        assert_eq!(sectors_written(counters).ok(), Some(1_857_344));
        assert!(sectors_written("1 2 3").is_err());
    }
}
