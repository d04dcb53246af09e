//! `init`: makes a store.

use std::{path::Path, sync::Arc};

use clap::Args;
use holdfast::{
    Error, InitOptions, Store, World, clock::OsClock, disk::os::OsDisk, entropy::OsEntropy, format::VERSION,
    format::superblock::Options,
};
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    output::{invalid, shown},
    session::{Session, cannot_enter},
    values::byte_size,
};

/// Make a store in a new or empty directory
#[derive(Args, Default)]
#[command(after_help = help(
    &["holdfast init --store ./files", "holdfast init --store ./files --segment-size 64M"],
    &[0, 1, 2, 5, 6, 7],
))]
pub(crate) struct InitArgs {
    /// Size of the segments that long files go to [default: 256M]
    #[arg(long, value_name = "N", value_parser = byte_size)]
    segment_size: Option<u64>,
    /// Size that segments of the log grow to; the first ones have 4M, or this if it is less [default: 64M]
    #[arg(long, value_name = "N", value_parser = byte_size)]
    log_segment_size: Option<u64>,
}

impl InitArgs {
    fn options(&self) -> Result<InitOptions, Error> {
        let mut options = Options::DEFAULT;
        if let Some(size) = self.segment_size {
            options.bulk_segment = size;
        }
        if let Some(size) = self.log_segment_size {
            options.log_segment_max = size;
            options.log_segment_first = options.log_segment_first.min(size);
        }
        options.check().map_err(invalid)?;
        Ok(InitOptions { options })
    }
}

#[derive(Serialize)]
struct Made {
    store: String,
    uuid: String,
    format: u32,
}

pub(crate) fn run(args: &InitArgs, session: &Session) -> Outcome {
    let dir = session.dir()?;
    let made = init(args, dir)?;
    session
        .output
        .line(&made, format!("made the store {} (format {}) in {}", made.uuid, made.format, shown(&made.store)))
}

fn init(args: &InitArgs, dir: &Path) -> Result<Made, Error> {
    let options = args.options()?;
    let disk = OsDisk::create(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::io(error, dir.to_string_lossy(), "its parent directory"),
        _ => cannot_enter(dir, error),
    })?;
    let world = World { disk: Arc::new(disk), clock: Arc::new(OsClock), entropy: Arc::new(OsEntropy) };
    let uuid = Store::init(&world, &options)?;
    Ok(Made { store: dir.to_string_lossy().into_owned(), uuid: uuid.to_string(), format: VERSION })
}
