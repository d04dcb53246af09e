//! What a process does first: writes a line, or begins a table. A kill at the second leaves a checkpoint or a merge half done.

use std::{io::BufReader, mem::MaybeUninit, path::Path, process::ChildStdout};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init},
    io::Errno,
};

/// A directory whose new files are told of from now on.
pub(super) struct Watch(OwnedFd);

impl Watch {
    pub(super) fn new(dir: &Path) -> Result<Self, String> {
        let io = |e: Errno| format!("watch {}: {e}", dir.display());
        let fd = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(io)?;
        add_watch(&fd, dir, WatchFlags::CREATE).map_err(io)?;
        Ok(Self(fd))
    }

    /// Sleeps until there is a line, or the end of all lines, or a table was begun: `true` for the last.
    pub(super) fn table_before_line(&self, lines: &BufReader<ChildStdout>) -> Result<bool, String> {
        while lines.buffer().is_empty() {
            let mut both = [PollFd::new(&self.0, PollFlags::IN), PollFd::new(lines.get_ref(), PollFlags::IN)];
            match poll(&mut both, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(format!("poll: {e}")),
            }
            let has_line = !both[1].revents().is_empty();
            if self.table_was_begun()? {
                return Ok(true);
            }
            if has_line {
                break;
            }
        }
        Ok(false)
    }

    fn table_was_begun(&self) -> Result<bool, String> {
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.0, &mut bytes);
        loop {
            match events.next() {
                Ok(event) if event.file_name().is_some_and(|name| name.to_bytes().starts_with(b"table-")) => {
                    return Ok(true);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(e) => return Err(format!("watch: {e}")),
            }
        }
    }
}
