//! `bench`: what this machine's disk and the store on it can do, side by side.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::{
    bench::{
        catalog::{self, CatalogArgs},
        large,
        place::Place,
        small,
    },
    exit_code::{Outcome, help},
    output::invalid,
    session::Session,
    values::byte_size,
};

/// Measure a store on this machine's disk beside what the machine does without one
///
/// Every figure stands beside a yardstick that is measured in the same run, alternately with it; each is the best of all rounds. The
/// store is made for this in a new directory, and removed afterwards. `large` measures long streams that do not compress, `small`
/// durable puts of a few KiB by one and by many writers, `catalog` a catalog of many chunks.
///
/// The rows of `large`: put, `put_again` (the same bytes once more) against SHA-256 in memory on one core; `get_hot` against BLAKE3
/// likewise; `get_cold` against a cold read of a plain file, both taken out of the page cache by `posix_fadvise`; `put_four` (four
/// streams at once) against the faster of a direct and a buffered sequential write with fdatasync; `put_written`, `put_allocated` and
/// `put_again_written`: bytes written to, and taken of, the disk, against bytes put; `insert_front`: bytes added by the same stream
/// with 1 MiB in front of it; `memory_peak`: of a process that puts and gets one stream of 4 times the size, made of one repeated GiB.
///
/// The rows of `small`: `put_SIZE_WRITERS` and its latencies `_p50` and `_p99`, against a log without an index that writes blocks
/// which were written before, and shares its syncs; buffered and direct, whichever is faster.
///
/// The rows of `catalog`, over a store of N blobs of 64 bytes: put, 512 at a time; `log_written` against bytes put; `tables_written` (by
/// checkpoints and merges) against the log, and `tables_rewritten` against the tables that are there in the end; `open_killed`: until a
/// store is open whose process was killed when the next checkpoint was nearly due, and `open_killed_read`, what it read, against a store of
/// 10,000 chunks; `open_clean` and `memory_open`: with an empty memtable; dedup look-ups a second on one core: `lookup_near` (2,000 keys
/// again and again) and `lookup_hit` (of all keys) against reads of 4 KiB in the page cache, `lookup_miss`, `lookup_cold` against reads that
/// are not in it; `memory_lookups` behind all but the cold ones; `cold_pages`: pages of 4 KiB that a cold one reads. A million chunks take 3
/// GB for a while. With `--generated` there are tables of made-up entries and no store: `build` and `merge`, with mirrors and syncs, against
/// a durable write of a plain file; `entry_bytes`, without mirrors; `open_clean` is then that of the tables alone.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast bench large",
        "holdfast bench large --size 100G --rows memory_peak",
        "holdfast --json bench small",
        "holdfast bench catalog --chunks 1000000",
        "holdfast bench catalog --generated 100000000 --dir DIR",
    ],
    &[0, 1, 2, 5, 6, 7],
))]
pub(crate) struct BenchArgs {
    /// What to measure
    what: What,
    /// Length of a stream, for `large` [default: 512M]
    #[arg(long, value_name = "N", value_parser = byte_size)]
    size: Option<u64>,
    /// Time of each measurement, for `small` [default: 1]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// How often everything is measured; the best counts, of opens the median
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Only these rows, with commas between them
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    rows: Vec<String>,
    /// Where to work, in a new directory that is removed at the end [default: beside the store that is named, else here]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    catalog: CatalogArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Long streams
    Large,
    /// Durable puts of a few KiB
    Small,
    /// A catalog of many chunks
    Catalog,
}

pub(crate) fn run(args: &BenchArgs, session: &Session) -> Outcome {
    let all = match args.what {
        What::Large => large::ROWS.map(str::to_owned).to_vec(),
        What::Small => small::rows(),
        What::Catalog => args.catalog.rows(),
    };
    if let Some(unknown) = args.rows.iter().find(|row| !all.contains(row)) {
        return Err(invalid(format!("there is no row {unknown:?}; there are {}", all.join(", "))).into());
    }
    let rows = if args.rows.is_empty() { all } else { args.rows.clone() };
    check_what(args)?;
    if args.catalog.is_child() {
        return catalog::run_child(&args.catalog, args.rounds, rows, session);
    }
    let place = Place::new(&working_directory(args, session))?;
    match args.what {
        What::Catalog => catalog::run(&args.catalog, args.rounds, rows, &place, session),
        What::Large => {
            let size = args.size.unwrap_or(large::SIZE);
            if size < large::SIZE_MIN {
                return Err(invalid("--size is at least 1M").into());
            }
            large::run(&large::Plan { size, rounds: args.rounds, rows }, &place, session)
        }
        What::Small => {
            let seconds = args.seconds.unwrap_or(1);
            small::run(&small::Plan { seconds, rounds: args.rounds, rows }, &place, session)
        }
    }
}

/// Each option goes with what it is of.
fn check_what(args: &BenchArgs) -> Outcome {
    match args.what {
        What::Small | What::Catalog if args.size.is_some() => Err(invalid("--size goes with large").into()),
        What::Large | What::Catalog if args.seconds.is_some() => Err(invalid("--seconds goes with small").into()),
        What::Large | What::Small if args.catalog.is_given() => {
            Err(invalid("--chunks, --generated and --lookups go with catalog").into())
        }
        _ => Ok(()),
    }
}

fn working_directory(args: &BenchArgs, session: &Session) -> PathBuf {
    let beside = || session.named().and_then(Path::parent).filter(|dir| !dir.as_os_str().is_empty());
    args.dir.as_deref().or_else(beside).unwrap_or(Path::new(".")).to_owned()
}
