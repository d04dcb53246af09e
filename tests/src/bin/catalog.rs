//! Measures the tables of a catalog of N chunks, through the same code as a store's: writing, opening, look-ups, memory.
//!
//! `cargo run --release -p holdfast-tests --bin catalog -- --chunks 10000000 --dir DIR`

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::Parser;
use holdfast::{
    catalog::Tables,
    disk::os::OsDisk,
    format::{keyspace::Keyspace, manifest::ManifestTable},
    ids::{FileId, Lsn, StoreUuid},
    table::{self, Builder, Ground},
};
use holdfast_format_spec::derive::digest;
use holdfast_tests::campaign::Stopwatch;

/// Measures tables of generated chunk entries.
#[derive(Parser)]
struct Arguments {
    /// Chunk entries.
    #[arg(long, default_value_t = 10_000_000)]
    chunks: u64,
    /// Runs that they are spread over: a look-up may ask each.
    #[arg(long, default_value_t = 4)]
    runs: u64,
    /// Look-ups of each kind.
    #[arg(long, default_value_t = 1_000_000)]
    lookups: u64,
    /// Bytes of pages that are kept in memory.
    #[arg(long, default_value_t = 16 << 20)]
    cache: u64,
    /// An empty directory; its files stay.
    #[arg(long)]
    dir: PathBuf,
}

const UUID: StoreUuid = StoreUuid([7; 16]);

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The n-th key: uniform, as keyed ids are.
fn key(number: u64) -> [u8; 32] {
    digest(&number.to_le_bytes())
}

fn show(row: &str, value: f64, unit: &str) {
    println!("{{\"row\":\"{row}\",\"value\":{value:.3},\"unit\":\"{unit}\"}}");
}

fn measure(arguments: &Arguments) -> Result<(), String> {
    let disk = Arc::new(OsDisk::open(&arguments.dir).map_err(|e| e.to_string())?);
    let (chunks, runs) = (arguments.chunks, arguments.runs.max(1));
    let mut metas: Vec<ManifestTable> = Vec::new();
    let mut seconds = 0.0;
    for run in 0..runs {
        let mut keys: Vec<[u8; 32]> = (run..chunks).step_by(usize::try_from(runs).expect("few")).map(key).collect();
        keys.sort_unstable();
        let watch = Stopwatch::start();
        let lsns = (Lsn::FIRST.plus(run), Lsn::FIRST.plus(run));
        let mut open: Option<(FileId, Builder)> = None;
        let mut rest = keys.into_iter().peekable();
        while let Some(key) = rest.next() {
            let (id, mut builder) = open.take().unwrap_or_else(|| {
                let id = FileId(metas.len() as u64 + 1);
                (id, Builder::new(UUID, id, lsns))
            });
            builder.push(Keyspace::Chunk, key.to_vec(), Some(vec![1; 40]));
            if builder.is_full() || rest.peek().is_none() {
                let built = builder.finish().ok_or("an empty table")?;
                metas.push(table::write(&*disk, id, &built).map_err(|e| e.to_string())?);
            } else {
                open = Some((id, builder));
            }
        }
        seconds += watch.elapsed().as_secs_f64();
    }
    let pages: u64 = metas.iter().map(|table| u64::from(table.pages)).sum();
    show("tables", as_f64(metas.len() as u64), "files, mirrors not counted");
    show("bytes an entry", as_f64(pages * 4096) / as_f64(chunks), "B");
    show("build, write and sync with mirrors", as_f64(chunks) / seconds / 1e6, "M entries/s");
    let ground = Ground::new(disk, UUID, arguments.cache);
    let watch = Stopwatch::start();
    let tables = Tables::new(Arc::new(ground), &metas);
    tables.get(Keyspace::Chunk, &key(0)).map_err(|e| e.to_string())?;
    show("open and first look-up", watch.elapsed().as_secs_f64() * 1e3, "ms");
    lookups(arguments, &tables)?;
    show("anonymous memory", memory(), "MiB");
    Ok(())
}

/// Gives a key by number.
type KeyOf<'a> = &'a dyn Fn(u64) -> [u8; 32];

fn lookups(arguments: &Arguments, tables: &Tables) -> Result<(), String> {
    let numbers = || (0..arguments.lookups).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let near = |n: u64| key(n % 4096.min(arguments.chunks));
    let spread = |n: u64| key(n % arguments.chunks);
    let miss = |n: u64| key(arguments.chunks + n % (1 << 40));
    let rows: [(&str, KeyOf<'_>, bool); 4] = [
        ("filters loaded", &miss, false),
        ("hit, cached pages", &near, true),
        ("hit, spread", &spread, true),
        ("miss", &miss, false),
    ];
    for (row, of, there) in rows {
        let keys: Vec<[u8; 32]> = numbers().map(of).collect();
        let watch = Stopwatch::start();
        for key in &keys {
            let found = tables.get(Keyspace::Chunk, key).map_err(|e| e.to_string())?;
            if found.is_some() != there {
                return Err(format!("{row}: a wrong answer"));
            }
        }
        show(row, as_f64(arguments.lookups) / watch.elapsed().as_secs_f64() / 1e6, "M look-ups/s on one core");
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// `RssAnon` of this process.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    as_f64(kib.unwrap_or(0)) / 1024.0
}
