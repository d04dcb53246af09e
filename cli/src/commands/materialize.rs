//! `materialize`: an artifact as a working copy, which is never written over.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
};

use clap::Args;
use holdfast::{
    ArtifactInfo, Error, Get, Kind, Scope, Store,
    digest::Sha256Stream,
    ids::{ArtifactId, Sha256},
};
use serde::Serialize;

use crate::{
    commands::get::copy,
    exit_code::{Outcome, help},
    files::{Base, escapes_root},
    output::{invalid, shown},
    owner::OwnerArgs,
    session::Session,
    target::Target,
    values::artifact_id,
};

/// Write a working copy of an artifact, unless a file is there
///
/// PATH is looked up beneath the root, without `..` and without following a link; directories that it lacks are made. A file that is there
/// is left as it is: PRESENT says that it has the artifact's bytes, EDITED that it has others. Both are done, and no failure.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast materialize mfrggzdfmztwq2lknnwg23tpoa report.pdf",
        "holdfast materialize --root ./work mfrggzdfmztwq2lknnwg23tpoa out/report.pdf",
    ],
    &[0, 1, 2, 3, 5, 6, 7],
))]
pub(crate) struct MaterializeArgs {
    /// Id of the artifact
    #[arg(value_parser = artifact_id)]
    id: ArtifactId,
    /// Where the copy is to be, beneath the root
    path: PathBuf,
    /// Directory that nothing is written outside of
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    #[command(flatten)]
    owner: OwnerArgs,
}

#[derive(Serialize)]
struct Copy {
    id: String,
    path: String,
    result: &'static str,
}

const MATERIALIZED: &str = "MATERIALIZED";
const PRESENT: &str = "PRESENT";
const EDITED: &str = "EDITED";

pub(crate) fn run(args: &MaterializeArgs, session: &Session) -> Outcome {
    session.look("materialize", |store| {
        let scope = args.owner.scope(session);
        let result = materialize(args, store, scope)?;
        let path = args.path.to_string_lossy().into_owned();
        let copy = Copy { id: args.id.to_string(), path, result };
        session.output.line(&copy, format!("{}  {:<12}  {}", copy.id, copy.result, shown(&copy.path)))
    })
}

fn materialize(args: &MaterializeArgs, store: &Store, scope: Scope<'_>) -> Outcome<&'static str> {
    let base = Base::root(&args.root)?;
    let info = store.stat(scope, args.id)?;
    // What cannot be read any more is told as that, whatever file is there.
    store.get(scope, args.id, &Get { range: Some(0..0), ..Get::WHOLE }, &mut io::sink())?;
    if let Some(result) = compare(&base, &args.path, &info)? {
        return Ok(result);
    }
    let mut target = target(&base, &args.path)?;
    let path = args.path.to_string_lossy();
    let whole = Get::expecting(info.sha256);
    copy(store, scope, &info, &whole, &mut target, |error| Error::io(error, &*path, "write").into())?;
    match target.put_in_place() {
        // A file that came meanwhile is somebody's.
        Err(error) if error.kind() == Kind::InvalidArgument => {
            compare(&base, &args.path, &info)?.ok_or_else(|| error.into())
        }
        Err(error) => Err(error.into()),
        Ok(()) => Ok(MATERIALIZED),
    }
}

/// What the file is that is there, if one is.
fn compare(base: &Base, path: &Path, info: &ArtifactInfo) -> Result<Option<&'static str>, Error> {
    let Some((mut file, len)) = base.find(path)? else { return Ok(None) };
    let is_same = len == info.size && sha256_of(&mut file, path)? == info.sha256;
    Ok(Some(if is_same { PRESENT } else { EDITED }))
}

fn sha256_of(file: &mut File, path: &Path) -> Result<Sha256, Error> {
    let mut sha256 = Sha256Stream::default();
    let mut bytes = vec![0; 1 << 20];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(sha256.finish()),
            Ok(count) => sha256.update(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(error, path.to_string_lossy(), "read")),
        }
    }
}

/// A new file beneath the root, in a directory that is made where it is not there.
fn target(base: &Base, path: &Path) -> Result<Target, Error> {
    let wrong = || invalid(format!("{} does not name a file", shown(&path.to_string_lossy())));
    let name = path.file_name().filter(|_| !path.as_os_str().as_encoded_bytes().ends_with(b"/")).ok_or_else(wrong)?;
    let mut directory = base.again()?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        match part {
            Component::Normal(part) => directory = directory.enter(part)?,
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(escapes_root()),
        }
    }
    Target::fresh_within(directory, name)
}
