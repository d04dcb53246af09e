//! What must hold at the end: everything is listed and reads back, the store verifies, and no file is there that nothing names. The
//! independent parser reads the same directory and says so too.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use holdfast::{AccountScope, Get, OpenMode, OpenOptions, Store, World};
use holdfast_format_spec::{Bytes, Error, Files, Place, ReadSeek, Result as SpecResult, store};

use super::{Counts, content, rig::Rig};

const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "default" };

/// Looks at everything.
pub(super) fn check(rig: &Rig, counts: &mut Counts) -> Result<(), String> {
    all_listed(rig)?;
    all_read_back(rig, counts)?;
    let verified = String::from_utf8_lossy(&rig.binary.succeed(&["verify", "--deep", "--refs"])?).into_owned();
    for list in ["problems", "strange_files", "unnamed_files"] {
        if !verified.contains(&format!("\"{list}\":[]")) {
            return Err(format!("verify: {}", verified.trim_end()));
        }
    }
    all_named(rig.binary.store(), counts)
}

fn all_listed(rig: &Rig) -> Result<(), String> {
    let mut number = 0;
    rig.binary.each_line(&["list"], &mut |line| {
        if rig.known.get(number) != Some(&rig.is_number(line, number as u64)?) {
            return Err(format!("artifact {number} is listed with another id"));
        }
        number += 1;
        Ok(())
    })?;
    let known = rig.known.len();
    if number == known { Ok(()) } else { Err(format!("{known} artifacts are known, and {number} are listed")) }
}

/// Through the engine of this build: a process for each would take hours.
fn all_read_back(rig: &Rig, counts: &mut Counts) -> Result<(), String> {
    let world = World::os(rig.binary.store()).map_err(|e| e.to_string())?;
    let text = |e: holdfast::Error| e.to_string();
    let store = Store::open(world, &OpenOptions::new(OpenMode::Read, "campaign")).map_err(text)?;
    for (id, number) in rig.known.iter().zip(0..) {
        let mut bytes = Vec::new();
        store.get(SCOPE, *id, &Get::WHOLE, &mut bytes).map_err(|e| format!("artifact {number}: {e}"))?;
        if bytes != content::of(rig.seed, number) {
            return Err(format!("artifact {number} reads back as something else"));
        }
        counts.read_back += 1;
    }
    store.close().map_err(text)
}

fn all_named(dir: &Path, counts: &mut Counts) -> Result<(), String> {
    let directory = Directory(dir);
    let image = store::Store::read(&directory).map_err(|e| format!("the independent parser: {e}"))?;
    counts.files = directory.names().len() as u64;
    if let Some(problem) = image.problems.first() {
        return Err(format!("the independent parser: {problem}"));
    }
    let (orphans, strangers) = (&image.orphans, &image.strangers);
    if orphans.is_empty() && strangers.is_empty() {
        return Ok(());
    }
    Err(format!("nothing names {orphans:?}, and {strangers:?} are not of a store"))
}

/// A directory as the independent parser sees it.
struct Directory<'d>(&'d Path);

impl Files for Directory<'_> {
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn open(&self, name: &str) -> SpecResult<Option<Box<dyn Bytes + '_>>> {
        match File::open(self.0.join(name)) {
            Ok(file) => Ok(Some(Box::new(ReadSeek::new(file)?))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Io(Place { structure: "file", field: "bytes", offset: 0 }, error.kind())),
        }
    }
}
