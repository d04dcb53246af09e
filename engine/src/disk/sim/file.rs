//! An open file of the simulated disk: the calls, their limits, and their entry in the log.

use std::io;

use super::{Op, State, SyncFault, errno, os_error};
use crate::{
    disk::{BLOCK, File, Mapped, SyncKind, is_block_range},
    sync::{Arc, Mutex},
};

/// An open file.
pub(super) struct SimFile {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) ino: u64,
    pub(super) write: bool,
    pub(super) direct: bool,
}

impl SimFile {
    /// Says whether a call that changes the file may, with the end of the range it touches.
    fn may_change(&self, offset: u64, len: u64) -> io::Result<()> {
        if !self.write {
            return os_error(errno::EBADF);
        }
        // The largest file that a signed offset reaches.
        match offset.checked_add(len) {
            Some(end) if i64::try_from(end).is_ok() => Ok(()),
            _ => os_error(errno::EFBIG),
        }
    }
}

impl File for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.state.lock().inode(self.ino).live.read(bytes, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let len = bytes.len() as u64;
        self.may_change(offset, len)?;
        let aligned = is_block_range(bytes.as_ptr().addr() as u64, 0) && is_block_range(offset, len);
        if self.direct && !aligned {
            return os_error(errno::EINVAL);
        }
        let mut state = self.state.lock();
        let room = state.room();
        let fits = state.inode(self.ino).live.fits(offset, len, room);
        if fits == 0 && len > 0 {
            return os_error(errno::ENOSPC);
        }
        let count = usize::try_from(fits).expect("no more than was given");
        if count > 0 {
            let bytes = &bytes[..count];
            state.change(self.ino, |content| content.write(offset, bytes));
            state.record_data(Op::Write { ino: self.ino, offset, bytes: bytes.into() });
        }
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().inode(self.ino).live.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.state.lock().inode(self.ino).live.allocated() * BLOCK)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.may_change(len, 0)?;
        let mut state = self.state.lock();
        state.change(self.ino, |content| content.set_len(len));
        state.record_data(Op::SetLen { ino: self.ino, len });
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.may_change(offset, len)?;
        if !is_block_range(offset, len) {
            return os_error(errno::EINVAL);
        }
        let mut state = self.state.lock();
        state.change(self.ino, |content| content.punch(offset, len));
        state.record_data(Op::Punch { ino: self.ino, offset, len });
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.may_change(offset, len)?;
        if self.direct && !is_block_range(offset, len) {
            return os_error(errno::EINVAL);
        }
        let mut state = self.state.lock();
        let room = state.room();
        let fits = state.inode(self.ino).live.fits(offset, len, room);
        if fits > 0 {
            state.change(self.ino, |content| content.zero(offset, fits));
            state.record_data(Op::Zero { ino: self.ino, offset, len: fits });
        }
        if fits < len { os_error(errno::ENOSPC) } else { Ok(()) }
    }

    /// The same as zeros that are written: until a sync both may be lost in each way.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.zero(offset, len)
    }

    fn sync(&self, kind: SyncKind) -> io::Result<()> {
        let mut state = self.state.lock();
        if let Some(fault) = state.sync_fault.take() {
            let inode = state.inode(self.ino);
            inode.since_loss = Some(Vec::new());
            if fault == SyncFault::EioRevert {
                let durable = inode.durable.clone();
                state.change(self.ino, |content| *content = durable);
            }
            state.record(Op::SyncLost { ino: self.ino });
            return os_error(errno::EIO);
        }
        let inode = state.inode(self.ino);
        match &mut inode.since_loss {
            None => inode.durable = inode.live.clone(),
            Some(ops) => ops.drain(..).for_each(|op| op.apply_to(&mut inode.durable)),
        }
        state.record(Op::Sync { ino: self.ino, kind });
        Ok(())
    }

    fn map(&self, offset: u64, len: usize) -> io::Result<Mapped> {
        let mut state = self.state.lock();
        let live = &state.inode(self.ino).live;
        match offset.checked_add(len as u64) {
            None => os_error(errno::EINVAL),
            Some(end) if end > live.len() => Err(io::ErrorKind::UnexpectedEof.into()),
            Some(_) => {
                let mut bytes = vec![0; len];
                live.read(&mut bytes, offset);
                Ok(Mapped::new(bytes))
            }
        }
    }

    fn align(&self) -> u32 {
        if self.direct { u32::try_from(BLOCK).expect("a small number") } else { 1 }
    }

    fn drop_cache(&self, _offset: u64, _len: u64) {}
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.state.lock().close(self.ino);
    }
}
