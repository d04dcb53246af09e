//! Holdfast beside other stores: the same streams and the same small puts, by turns, in one run.
//!
//! Every figure is the best of its rounds. What each peer is made to do, and where it promises less, stands in its file.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "peers keep their files wherever they like")]

mod kv;
mod peers;
mod table;
mod work;

use std::path::PathBuf;

use clap::Parser;

/// What an operation of a peer gives.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measure Holdfast and its peers on the same work, by turns
#[derive(Parser)]
struct Args {
    /// Directory to work in; what is written is removed
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Length of the stream in MiB
    #[arg(long, default_value_t = 1024)]
    mebibytes: u64,
    /// Seconds of each measurement of small puts
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Rounds; the best counts
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Only these peers, with commas between them
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only long streams (`large`) or only small puts (`small`)
    #[arg(long, value_parser = ["large", "small"])]
    part: Option<String>,
    /// Print JSON, an object a figure
    #[arg(long)]
    json: bool,
}

fn main() -> Result {
    let args = Args::parse();
    let peers: Vec<_> = peers::all()
        .into_iter()
        .filter(|peer| args.only.is_empty() || args.only.iter().any(|o| o == peer.name))
        .collect();
    if peers.is_empty() {
        let names: Vec<_> = peers::all().iter().map(|peer| peer.name).collect();
        return Err(format!("no such peer; there are {}", names.join(", ")).into());
    }
    let place = work::Place::new(&args.dir)?;
    let part = |name: &str| args.part.as_deref().is_none_or(|part| part == name);
    let mut figures = table::Figures::new(&peers);
    if part("large") {
        for round in 0..args.rounds {
            for peer in &peers {
                eprintln!("round {round}: {}, a stream of {} MiB", peer.name, args.mebibytes);
                work::large(peer, &place, round, args.mebibytes << 20, &mut figures)?;
            }
        }
    }
    if part("small") {
        for round in 0..args.rounds {
            for peer in &peers {
                eprintln!("round {round}: {}, small puts", peer.name);
                work::small(peer, &place, round, args.seconds, &mut figures)?;
            }
        }
    }
    if args.json { figures.print_json() } else { figures.print_table() }
}
