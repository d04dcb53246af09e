//! `get`: verified bytes out of the store.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use holdfast::{
    ArtifactInfo, Error, Get, Scope, Store,
    ids::{ArtifactId, Sha256},
};
use serde::Serialize;

use crate::{
    exit_code::{Failure, Outcome, help},
    files::Sink,
    output::{invalid, shown, standard_output, stdout_failure},
    owner::OwnerArgs,
    progress::Progress,
    session::Session,
    target::Target,
    values::{ByteRange, artifact_id, byte_range, sha256},
};

/// Get an artifact's bytes, verified
///
/// A file is written beside PATH and renamed over it, so PATH never holds a part. Without PATH it gets the artifact's name in the
/// current directory, which must not be there yet. On `-` what comes before damage in a long artifact is verified but not whole.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast get mfrggzdfmztwq2lknnwg23tpoa",
        "holdfast get mfrggzdfmztwq2lknnwg23tpoa report.pdf",
        "holdfast get --conversation thread-7 mfrggzdfmztwq2lknnwg23tpoa report.pdf",
        "holdfast get --range 0-1023 mfrggzdfmztwq2lknnwg23tpoa - | xxd",
    ],
    &[0, 1, 2, 3, 4, 5, 6, 7],
))]
pub(crate) struct GetArgs {
    /// Id of the artifact
    #[arg(value_parser = artifact_id)]
    pub(crate) id: ArtifactId,
    /// File to write, or `-` for standard output
    pub(crate) path: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) owner: OwnerArgs,
    /// Bytes A to B, both included and counted from 0; `A-` for all from A. Size and SHA-256 that are printed are those of the whole artifact
    #[arg(long, value_name = "A-B", value_parser = byte_range)]
    pub(crate) range: Option<ByteRange>,
    /// Refuse before the first byte unless the artifact has this SHA-256
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    pub(crate) expect_sha256: Option<Sha256>,
}

impl GetArgs {
    /// The whole of an artifact of the default account.
    pub(crate) fn of(id: ArtifactId) -> Self {
        Self { id, path: None, owner: OwnerArgs::default(), range: None, expect_sha256: None }
    }
}

#[derive(Serialize)]
struct Got {
    id: String,
    size: u64,
    sha256: String,
    path: String,
}

pub(crate) fn run(args: &GetArgs, session: &Session) -> Outcome {
    session.look("get", |store| get(args, store, session))
}

fn get(args: &GetArgs, store: &Store, session: &Session) -> Outcome {
    let scope = args.owner.scope(session);
    let info = store.stat(scope, args.id)?;
    let mut target = match &args.path {
        Some(path) if path.as_os_str() == "-" => {
            return read(args, store, scope, &info, &mut standard_output()?, stdout_failure);
        }
        Some(path) => Target::replacing(path)?,
        // The name rule leaves no `/`, no NUL and no `..` in it: joined to `.` it stays here, also with a `-` in front.
        None => Target::fresh(&Path::new(".").join(&info.name))?,
    };
    let path = args.path.as_ref().map_or_else(|| info.name.clone(), |path| path.to_string_lossy().into_owned());
    let file = shown(&path);
    read(args, store, scope, &info, &mut target, |error| Error::io(error, &path, "write").into())?;
    target.put_in_place()?;
    let got = Got { id: info.id.to_string(), size: info.size, sha256: info.sha256.to_string(), path };
    session.output.line(&got, format!("{}  {:>12}  {file}", got.id, got.size))
}

fn read(
    args: &GetArgs,
    store: &Store,
    scope: Scope<'_>,
    info: &ArtifactInfo,
    to: &mut dyn Write,
    failed: impl FnOnce(io::Error) -> Failure,
) -> Outcome {
    let range = match args.range {
        None => None,
        Some(range) => Some(range.within(info.size).ok_or_else(|| {
            invalid(format!("the range begins behind the end: the artifact has {} bytes", info.size))
        })?),
    };
    copy(store, scope, info, &Get { range, expect_sha256: args.expect_sha256 }, to, failed)
}

/// Copies what is asked for of an artifact, with progress. `failed` says what it means that the target takes no more.
pub(crate) fn copy(
    store: &Store,
    scope: Scope<'_>,
    info: &ArtifactInfo,
    get: &Get,
    to: &mut dyn Write,
    failed: impl FnOnce(io::Error) -> Failure,
) -> Outcome {
    let len = get.range.as_ref().map_or(info.size, |range| range.end - range.start);
    let mut progress = Progress::new("get", len);
    let mut sink = Sink::new(to, &mut progress);
    let read = store
        .get(scope, info.id, get, &mut sink)
        .and_then(|_| sink.flush().map_err(|error| Error::io(error, "the target", "write")));
    match (read, sink.failure()) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(error)) => Err(failed(error)),
        (Err(error), None) => Err(error.into()),
    }
}
