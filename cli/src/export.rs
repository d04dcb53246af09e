//! A conversation as a tar archive: a manifest, then its files in the caller's order, each as it is read and verified.
//!
//! The same state gives the same archive, byte for byte. Memory is the manifest's: at most 10,000 records.

use std::io::{self, BufWriter, Write};

use holdfast::{
    ArtifactInfo, ConversationScope, Error, Get, ListOrder, Scope, Store,
    format::conversation::ConversationState,
    ids::{ArtifactId, Time},
    ownership::conversation::gone,
};
use serde::Serialize;

use crate::{files::Sink, output::Output, progress::Progress, record::Record};

/// Version of the manifest.
const FORMAT: u32 = 1;
/// Unit of a tar archive.
const BLOCK: u64 = 512;
/// An archive ends with two empty ones.
const END: [u8; 1024] = [0; 1024];
const BUFFER: usize = 256 << 10;

/// What stands in front of the files.
#[derive(Serialize)]
struct Manifest<'a> {
    format: u32,
    conversation: &'a str,
    account: &'a str,
    artifacts: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    path: String,
    order: Option<u64>,
    #[serde(flatten)]
    record: Record,
}

/// What an export came to.
#[derive(Default)]
pub(crate) struct Exported {
    /// Files in the archive.
    pub(crate) artifacts: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// What the manifest has and the archive has not, as was told.
    pub(crate) missing: Vec<ArtifactId>,
    /// Exit code of the first of these.
    pub(crate) failure: Option<u8>,
}

/// Why there is no whole archive.
pub(crate) enum Broken {
    /// The store could not give a file to its end.
    Store(Error),
    /// The archive could not be written.
    Write(io::Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Writes the archive. A file that cannot be read from its first byte on is told of and left out; one that breaks off ends the export.
pub(crate) fn export(
    scope: &ConversationScope<'_>,
    store: &Store,
    output: &Output,
    to: &mut dyn Write,
) -> Result<Exported, Broken> {
    let conversation = store.conversation(scope)?;
    if conversation.state == ConversationState::Deleted {
        return Err(gone().into());
    }
    let artifacts = store.list_sorted(Scope::Conversation(*scope), ListOrder::Native)?;
    let mut out = BufWriter::with_capacity(BUFFER, to);
    let manifest = Manifest {
        format: FORMAT,
        conversation: &conversation.conversation,
        account: &conversation.account,
        artifacts: (1..).zip(&artifacts).map(listed).collect(),
    };
    let manifest = serde_json::to_vec_pretty(&manifest).expect("plain structs have a JSON");
    let mut entry = Entry::new(&mut out, "manifest.json", manifest.len() as u64, conversation.opened_at)?;
    entry.write_all(&manifest)?;
    entry.end()?;
    let mut exported = Exported::default();
    let mut progress = Progress::new("export", artifacts.iter().map(|info| info.size).sum());
    for (number, info) in (1..).zip(&artifacts) {
        let path = path(number, info);
        let mut entry = Entry::new(&mut out, &path, info.size, info.created_at)?;
        let mut sink = Sink::new(&mut entry, &mut progress);
        let read = store.get(Scope::Conversation(*scope), info.id, &Get::expecting(info.sha256), &mut sink);
        match (read, sink.failure()) {
            (_, Some(error)) => return Err(error.into()),
            (Ok(_), None) => {
                entry.end()?;
                exported.artifacts += 1;
                exported.bytes += info.size;
            }
            (Err(error), None) if entry.has_begun() => return Err(error.into()),
            (Err(error), None) => {
                output.error(&error, Some(&path));
                exported.failure.get_or_insert(error.kind().exit_code());
                exported.missing.push(info.id);
            }
        }
    }
    out.write_all(&END)?;
    out.flush()?;
    Ok(exported)
}

fn listed((number, info): (usize, &ArtifactInfo)) -> Listed {
    Listed { path: path(number, info), order: info.order, record: Record::from(info.clone()) }
}

/// Equal names stay apart; the name rule leaves no `/` and no `..` in a name.
fn path(number: usize, info: &ArtifactInfo) -> String {
    format!("files/{number:05}/{}", info.name)
}

/// An entry of an archive. Its header is written with its first byte: until then it can still be left out.
struct Entry<'a> {
    out: &'a mut dyn Write,
    header: Option<Vec<u8>>,
    len: u64,
}

impl<'a> Entry<'a> {
    fn new(out: &'a mut dyn Write, path: &str, len: u64, time: Time) -> io::Result<Self> {
        let mut header = tar::Header::new_gnu();
        header.set_size(len);
        header.set_mode(0o644);
        header.set_mtime(time.0 / 1000);
        // Without a body: what comes out is the header alone, with what a long path needs before it.
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_data(&mut header, path, io::empty())?;
        Ok(Self { out, header: Some(builder.get_ref().clone()), len })
    }

    const fn has_begun(&self) -> bool {
        self.header.is_none()
    }

    fn begin(&mut self) -> io::Result<()> {
        self.header.take().map_or(Ok(()), |header| self.out.write_all(&header))
    }

    /// Fills the last block.
    fn end(mut self) -> io::Result<()> {
        self.begin()?;
        let fill = self.len.next_multiple_of(BLOCK) - self.len;
        io::copy(&mut io::Read::take(io::repeat(0), fill), self.out).map(drop)
    }
}

impl Write for Entry<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_whole_number_of_blocks_and_its_path_may_be_long() {
        for (len, name) in [(0, "a"), (1, "b"), (512, "c"), (513, "d")] {
            let mut out = Vec::new();
            let path = format!("files/00001/{}", name.repeat(255));
            let body = vec![7; len];
            let mut entry = Entry::new(&mut out, &path, len as u64, Time(1_700_000_000_999)).expect("a header");
            entry.write_all(&body).expect("writes");
            entry.end().expect("writes");
            assert!(out.len().is_multiple_of(512));
            let mut archive = tar::Archive::new(&*out);
            let mut found = archive.entries().expect("reads").next().expect("one").expect("reads");
            assert_eq!(found.path().expect("a path").to_string_lossy(), path);
            assert_eq!(found.header().mtime().expect("a time"), 1_700_000_000);
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut found, &mut bytes).expect("reads");
            assert_eq!(bytes, body);
        }
    }

    #[test]
    fn what_was_never_begun_leaves_nothing() {
        let mut out = Vec::new();
        let entry = Entry::new(&mut out, "files/00001/a", 5, Time(0)).expect("a header");
        assert!(!entry.has_begun());
        assert!(out.is_empty());
    }
}
