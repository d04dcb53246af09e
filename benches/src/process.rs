//! What the system counts about this process and about the files of a directory. Linux only, as the store is.

use std::{io, path::Path};

use rustix::fs::{Mode, OFlags, open, syncfs};

/// Bytes that this process made the system write to disks, past the page cache or through it, up to now.
pub fn written_bytes() -> io::Result<u64> {
    value_of("/proc/self/io", "write_bytes:")
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
    #[expect(clippy::disallowed_methods, reason = "a file of the system, not of a store")]
    let text = std::fs::read(file)?;
    let text = String::from_utf8_lossy(&text);
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| io::Error::other(format!("{file} has no {key}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_what_this_process_took() {
        assert!(memory_peak().expect("Linux") >= memory_anonymous().expect("Linux"));
        assert!(memory_anonymous().expect("Linux") > 0);
        written_bytes().expect("Linux");
        assert!(value_of("/proc/self/status", "Nothing:").is_err());
    }
}
