//! The superblock file: choosing its state at open, and the one way to change it.

use crate::{
    canary::{self, Canary},
    disk::{self, Disk, File, Name, OpenOptions, SyncKind},
    error::{Error, Kind, Result},
    format::{
        Bad,
        superblock::{COPIES, LEN, Superblock},
    },
    health::Health,
    ids::{FileId, TenantNumber},
    limits::{BLOCK, CEILING_STEP, FILE_ID_MAX},
    sync::{Arc, Mutex},
};

/// Its name.
pub fn name() -> Name {
    Name::new("superblock").expect("a flat name")
}

/// What the four copies say.
pub struct SuperblockRead {
    /// The state that counts.
    pub superblock: Superblock,
    /// Copies that are damaged, by offset. A copy of an older sequence is not.
    pub damaged: Vec<(u64, Bad)>,
}

/// Reads the superblock. `Ok(None)`: the file is absent, or holds only zeros.
pub fn read(disk: &dyn Disk) -> Result<Option<SuperblockRead>> {
    let name = name();
    let file = match disk::retry(|| disk.open(&name, OpenOptions::READ)) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(e, &name, "open the superblock")),
    };
    let mut blank = true;
    let mut copies = Vec::new();
    for copy in 0..COPIES {
        let mut bytes = [0; LEN];
        let offset = u64::from(copy) * BLOCK;
        disk::read_full(&*file, &mut bytes, offset).map_err(|e| Error::io(e, &name, "read the superblock"))?;
        blank &= bytes.iter().all(|b| *b == 0);
        copies.push((offset, Superblock::decode(&bytes, copy)));
    }
    if blank { Ok(None) } else { choose(&copies).map(Some) }
}

/// The highest sequence at which two copies agree. "The highest sequence" alone would take a first write of a pair whose sync
/// was never waited for.
fn choose(copies: &[(u64, Result<Superblock, Bad>)]) -> Result<SuperblockRead> {
    let name = name();
    if let Some((offset, Err(bad))) = copies.iter().find(|(_, copy)| copy.as_ref().is_err_and(|bad| bad.newer)) {
        return Err(Error::newer(bad.what).at(&name, *offset));
    }
    let good: Vec<&Superblock> = copies.iter().filter_map(|(_, copy)| copy.as_ref().ok()).collect();
    let agreeing = |candidate: &Superblock| good.iter().filter(|other| **other == candidate).count();
    let chosen = good.iter().filter(|candidate| agreeing(candidate) >= 2).max_by_key(|candidate| candidate.sequence);
    let Some(superblock) = chosen.map(|s| (*s).clone()) else {
        return Err(Error::corrupt(&name, 0, "no two copies of the superblock agree"));
    };
    if good.iter().any(|other| other.sequence == superblock.sequence && **other != superblock && agreeing(other) >= 2) {
        return Err(Error::corrupt(&name, 0, "two pairs of superblock copies contradict each other"));
    }
    let damaged = copies.iter().filter_map(|(offset, copy)| copy.as_ref().err().map(|bad| (*offset, *bad))).collect();
    Ok(SuperblockRead { superblock, damaged })
}

/// The superblock of a store that is open for writing.
pub struct Root {
    file: Box<dyn File>,
    state: Mutex<State>,
    health: Arc<Health>,
}

struct State {
    superblock: Superblock,
    next_file: u64,
    next_generation: u64,
}

impl Root {
    /// Makes the file of a new store. The caller has synced everything that it names.
    pub fn create(disk: &dyn Disk, superblock: &Superblock) -> Result<()> {
        let name = name();
        let options = OpenOptions { create_new: false, ..OpenOptions::CREATE };
        let file = match disk::retry(|| disk.open(&name, OpenOptions::CREATE)) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => disk::retry(|| disk.open(&name, options)),
            result => result,
        }
        .map_err(|e| Error::io(e, &name, "make the superblock"))?;
        write_pair(&*file, superblock, 0)?;
        disk::retry(|| disk.sync_dir()).map_err(|e| Error::io(e, ".", "sync the directory"))?;
        write_pair(&*file, superblock, 2)
    }

    /// Takes over the superblock that was read, once the second pair of copies is sure to carry it: the next write overwrites the
    /// first pair, and until that is synced the second is all there is. Ids start at the ceiling, whatever the last process used
    /// below it.
    pub fn open(disk: &dyn Disk, superblock: Superblock, health: Arc<Health>) -> Result<Self> {
        let name = name();
        let file = disk::retry(|| disk.open(&name, OpenOptions::WRITE))
            .map_err(|e| Error::io(e, &name, "open the superblock"))?;
        secure(&*file, &superblock)?;
        let reused = canary::sings(Canary::FileIdReused);
        let next_file = if reused { superblock.log_head.0.0 + 1 } else { superblock.ceiling_file.0 };
        let next_generation = superblock.ceiling_generation;
        Ok(Self { file, state: Mutex::new(State { superblock, next_file, next_generation }), health })
    }

    /// The state as it is on disk.
    pub fn current(&self) -> Superblock {
        self.state.lock().superblock.clone()
    }

    /// Changes the state: written two and two, durable when this returns. A failure leaves it unknown which state counts, so it
    /// poisons the store.
    pub fn update(&self, change: impl FnOnce(&mut Superblock)) -> Result<()> {
        let mut state = self.state.lock();
        self.write(&mut state, change)
    }

    fn write(&self, state: &mut State, change: impl FnOnce(&mut Superblock)) -> Result<()> {
        self.health.check()?;
        let mut next = state.superblock.clone();
        change(&mut next);
        next.sequence = next.sequence.checked_add(1).ok_or_else(used_up)?;
        if next.ceiling_file.0 > FILE_ID_MAX {
            return Err(used_up());
        }
        write_pair(&*self.file, &next, 0)
            .and_then(|()| write_pair(&*self.file, &next, 2))
            .map_err(|e| self.health.fail(e))?;
        state.superblock = next;
        Ok(())
    }

    /// An id that was never used. The ceiling is raised, and durable, before the id is.
    pub fn allocate_file(&self) -> Result<FileId> {
        let mut state = self.state.lock();
        if state.next_file >= state.superblock.ceiling_file.0 {
            self.write(&mut state, |s| s.ceiling_file.0 += CEILING_STEP)?;
        }
        state.next_file += 1;
        Ok(FileId(state.next_file - 1))
    }

    /// A tenant's number that was never used, likewise.
    pub fn allocate_tenant(&self) -> Result<TenantNumber> {
        let mut state = self.state.lock();
        let number = state.superblock.ceiling_tenant;
        let next = number.checked_add(1).ok_or_else(used_up)?;
        self.write(&mut state, |s| s.ceiling_tenant = next)?;
        Ok(TenantNumber(number))
    }

    /// A generation that was never used, likewise.
    pub fn allocate_generation(&self) -> Result<u64> {
        let mut state = self.state.lock();
        if state.next_generation >= state.superblock.ceiling_generation {
            self.write(&mut state, |s| s.ceiling_generation += CEILING_STEP)?;
        }
        state.next_generation += 1;
        Ok(state.next_generation - 1)
    }
}

/// No store that was only written by us comes here.
fn used_up() -> Error {
    Error::new(Kind::Corrupt, "the numbers of the superblock are used up").at(name(), 0)
}

/// Makes the second pair of copies carry a state that two copies show. After a crash that pair may be torn, or older. After a kill or
/// a failed sync the page cache may show copies that never reached the disk, so those that a write would have reached last are
/// written again. No step touches the two copies that count until two others are synced.
fn secure(file: &dyn File, superblock: &Superblock) -> Result<()> {
    let mut carries = [false; COPIES as usize];
    for (copy, carries) in (0..).zip(&mut carries) {
        let mut bytes = [0; LEN];
        disk::read_full(file, &mut bytes, u64::from(copy) * BLOCK)
            .map_err(|e| Error::io(e, name(), "read the superblock"))?;
        *carries = Superblock::decode(&bytes, copy).is_ok_and(|found| found == *superblock);
    }
    match carries {
        [true, true, true, true] => write_copies(file, superblock, &[2, 3]),
        // The next write was under way: it began after these were synced.
        [_, _, true, true] => Ok(()),
        [true, true, _, _] => {
            write_copies(file, superblock, &[0, 1])?;
            write_copies(file, superblock, &[2, 3])
        }
        [_, _, true, false] => write_copies(file, superblock, &[3]),
        _ => write_copies(file, superblock, &[2]),
    }
}

/// Writes two neighbouring copies and syncs.
fn write_pair(file: &dyn File, superblock: &Superblock, first: u32) -> Result<()> {
    write_copies(file, superblock, &[first, first + 1])
}

fn write_copies(file: &dyn File, superblock: &Superblock, copies: &[u32]) -> Result<()> {
    let name = name();
    for copy in copies {
        disk::write_all(file, &superblock.encode(*copy), u64::from(*copy) * BLOCK)
            .map_err(|e| Error::io(e, &name, "write the superblock"))?;
    }
    disk::retry(|| file.sync(SyncKind::Data)).map_err(|e| Error::io(e, &name, "sync the superblock"))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, ops::ControlFlow};

    use super::*;
    use crate::{
        disk::sim::{Budget, Crashes, Image, SimDisk},
        format::superblock::tests::sample,
    };

    fn copies(sequences: [Option<u64>; 4]) -> Vec<(u64, Result<Superblock, Bad>)> {
        sequences
            .into_iter()
            .map(|s| (0, s.map(|sequence| Superblock { sequence, ..sample() }).ok_or(Bad::damaged("torn"))))
            .collect()
    }

    #[test]
    fn the_highest_sequence_that_two_copies_share_counts() {
        let chosen = |c| choose(&copies(c)).map(|read| read.superblock.sequence).ok();
        assert_eq!(chosen([Some(5), Some(5), Some(4), Some(4)]), Some(5));
        assert_eq!(chosen([Some(5), None, Some(4), Some(4)]), Some(4));
        assert_eq!(chosen([Some(5), Some(5), None, Some(4)]), Some(5));
        assert_eq!(chosen([None, None, Some(4), Some(4)]), Some(4));
        assert_eq!(chosen([Some(5), Some(4), None, None]), None);
        assert_eq!(chosen([Some(3), Some(5), Some(4), Some(6)]), None);
    }

    #[test]
    fn two_pairs_of_one_sequence_that_contradict_each_other_are_damage() {
        let mut copies = copies([Some(5), Some(5), Some(5), Some(5)]);
        for (_, copy) in &mut copies[2..] {
            copy.as_mut().expect("valid").incarnation = 9;
        }
        assert!(choose(&copies).is_err());
    }

    #[test]
    fn two_copies_of_one_sequence_with_other_fields_do_not_agree() {
        let mut copies = copies([Some(5), Some(5), None, None]);
        if let (_, Ok(copy)) = &mut copies[1] {
            copy.incarnation = 9;
        }
        assert!(choose(&copies).is_err());
    }

    /// Every state that a crash in the middle of a superblock's next write could leave, each once.
    fn crashes_of_a_write(image: &Image) -> Vec<Image> {
        let disk = SimDisk::from_image(image, 1);
        let found = read(&disk).expect("two copies agree").expect("a superblock");
        let root = Root::open(&disk, found.superblock, Arc::default()).expect("opens");
        root.update(|s| s.ceiling_file.0 += 1).expect("writes");
        let (log, mut images, mut seen) = (disk.log(), Vec::new(), BTreeSet::new());
        let budget = Budget { per_mode: 20, ..Budget::default() };
        let _ = Crashes::new(&log, 1, budget).for_each_image(log.indexes(), &mut |image, _| {
            if seen.insert(image.digest()) {
                images.push(image.clone());
            }
            ControlFlow::Continue(())
        });
        images
    }

    #[test]
    fn a_crash_in_a_write_behind_a_crash_in_a_write_leaves_two_copies_that_agree() {
        let disk = SimDisk::new(1);
        Root::create(&disk, &sample()).expect("is made");
        let mut count = 0;
        for image in crashes_of_a_write(&disk.image()) {
            for image in crashes_of_a_write(&image) {
                let found = read(&SimDisk::from_image(&image, 1)).expect("two copies agree");
                assert!(found.expect("a superblock").superblock.sequence >= sample().sequence);
                count += 1;
            }
        }
        assert!(count > 100, "{count}");
    }
}
