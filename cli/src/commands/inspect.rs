//! `inspect`: what is in a file of a store, as the independent parser reads it.

use std::path::{Path, PathBuf};

use clap::Args;
use holdfast::{Error, Kind};
use holdfast_format_spec::{
    Bytes, FileName, ReadSeek,
    inspect::{Context, Record, inspect_file},
    manifest::Manifest,
    manifest_names, read_vec,
    segment::Lane,
    superblock,
};
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    exit_code::{Failure, Outcome, help},
    files::Base,
    output::shown,
    session::Session,
};

/// A manifest that is longer is not read for its hints; inspect it by itself.
const MANIFEST_MAX: u64 = 64 << 20;

/// Show what is in a file of a store, also of one that cannot be opened
///
/// It prints places, lengths and hashes: no payload, no name and no key. What does not hold is marked as damage; the unsynced end of a
/// log after a crash looks the same in one file alone, so it is `verify` that judges. No lock is taken.
#[derive(Args)]
#[command(after_help = help(
    &["holdfast inspect ./files/superblock", "holdfast inspect --frames ./files/segment-1"],
    &[0, 1, 2, 6],
))]
pub(crate) struct InspectArgs {
    /// The file
    file: PathBuf,
    /// Every frame of a segment, one by one
    #[arg(long)]
    frames: bool,
}

/// A record as a line of JSON.
struct Line<'a>(&'a Record);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Fields<'a>(&'a [(String, String)]);
        impl Serialize for Fields<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(field, value)| (field, value)))
            }
        }
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("offset", &self.0.offset)?;
        map.serialize_entry("kind", self.0.kind)?;
        map.serialize_entry("fields", &Fields(&self.0.fields))?;
        map.end()
    }
}

pub(crate) fn run(args: &InspectArgs, session: &Session) -> Outcome {
    let name = args.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = open(&args.file)?;
    let mut printed = Ok(());
    let read = inspect_file(&name, &bytes, context(&args.file, &name), args.frames, &mut |record| {
        if printed.is_ok() {
            printed = print(&record, session);
        }
    });
    printed?;
    read.map_err(|error| Failure::from(Error::new(Kind::Io, error.to_string())))
}

fn print(record: &Record, session: &Session) -> Outcome {
    use std::fmt::Write as _;
    let mut text = format!("{:>12}  {}", record.offset, record.kind);
    for (field, value) in &record.fields {
        write!(text, "\n{:14}{field}: {}", "", shown(value)).expect("a String takes everything");
    }
    session.output.line(&Line(record), text)
}

fn open(path: &Path) -> Result<ReadSeek<std::fs::File>, Error> {
    let text = shown(&path.to_string_lossy());
    let (file, _) =
        Base::Anywhere.open(path).map_err(|error| Error::new(error.kind(), format!("{text}: {}", error.message())))?;
    ReadSeek::new(file).map_err(|error| Error::new(Kind::Io, format!("{text}: {error}")))
}

/// What the files beside it say about a segment, for the case that both of its headers are damaged. A hint: where it cannot be had,
/// the frames of such a segment are not read.
fn context(path: &Path, name: &str) -> Option<Context> {
    let Some(FileName::Segment(id)) = FileName::parse(name) else { return None };
    let beside = |name: &str| open(&path.with_file_name(name)).ok();
    let file = beside("superblock")?;
    let chosen = superblock::choose(&read_vec(&file, 0, file.len().min(superblock::LEN)).ok()?).ok()?.superblock;
    if chosen.log_head == id {
        return Some(Context { uuid: chosen.uuid, epoch: chosen.log_head_epoch, lane: Lane::Log });
    }
    let file = beside(&manifest_names(chosen.manifest_generation)[0]).filter(|file| file.len() <= MANIFEST_MAX)?;
    let manifest = Manifest::parse(&read_vec(&file, 0, file.len()).ok()?).ok()?;
    let segment = manifest.segments.iter().find(|segment| segment.id == id)?;
    Some(Context { uuid: chosen.uuid, epoch: segment.epoch, lane: segment.lane })
}
