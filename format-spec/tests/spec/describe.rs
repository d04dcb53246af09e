//! Reads a vector as its text says, and describes what it says in lines.

use holdfast_format_spec::commit::{Commit, Edit};
use holdfast_format_spec::derive::hex;
use holdfast_format_spec::frame::{self, Frame, Kind, Rules};
use holdfast_format_spec::keyspace::{Artifact, Claim, Conversation, Entry, Key, Run, Upload, ZeroKey};
use holdfast_format_spec::manifest::Manifest;
use holdfast_format_spec::recipe::Page;
use holdfast_format_spec::seal::{Seal, footer};
use holdfast_format_spec::segment::{Header, Lane};
use holdfast_format_spec::superblock::{self, Superblock};
use holdfast_format_spec::table;
use holdfast_format_spec::{Error, generate::records};
use std::fmt::Write;

/// What stands in a vector: the words behind `parse:` in its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    SuperblockFile,
    SuperblockCopy(u32),
    Manifest,
    SegmentHeader { copy: u32, id: u64 },
    Table { uuid: [u8; 16], id: u64 },
    Frame { lane: Lane, uuid: [u8; 16], epoch: [u8; 16], offset: u64, chunk_max: u32 },
}

impl Shape {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::SuperblockFile => "superblock-file".to_owned(),
            Self::SuperblockCopy(copy) => format!("superblock-copy {copy}"),
            Self::Manifest => "manifest".to_owned(),
            Self::SegmentHeader { copy, id } => format!("segment-header {copy} {id}"),
            Self::Table { uuid, id } => format!("table {} {id}", hex(uuid)),
            Self::Frame { lane, uuid, epoch, offset, chunk_max } => {
                format!("frame {} {} {} {offset} {chunk_max}", lane.name(), hex(uuid), hex(epoch))
            }
        }
    }

    /// The shape that a text names.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        Some(match words.as_slice() {
            ["superblock-file"] => Self::SuperblockFile,
            ["superblock-copy", copy] => Self::SuperblockCopy(copy.parse().ok()?),
            ["manifest"] => Self::Manifest,
            ["segment-header", copy, id] => Self::SegmentHeader { copy: copy.parse().ok()?, id: id.parse().ok()? },
            ["table", uuid, id] => Self::Table { uuid: unhex(uuid)?, id: id.parse().ok()? },
            ["frame", lane, uuid, epoch, offset, chunk_max] => Self::Frame {
                lane: if *lane == "log" { Lane::Log } else { Lane::Bulk },
                uuid: unhex(uuid)?,
                epoch: unhex(epoch)?,
                offset: offset.parse().ok()?,
                chunk_max: chunk_max.parse().ok()?,
            },
            _ => return None,
        })
    }

    /// The lines that describe the bytes: their fields, or the error.
    pub(crate) fn describe(&self, bytes: &[u8]) -> String {
        match self.fields(bytes) {
            Ok(fields) => fields,
            Err(error) => format!("error: {error}\n"),
        }
    }

    fn fields(&self, bytes: &[u8]) -> Result<String, Error> {
        let mut out = Lines::default();
        match self {
            Self::SuperblockFile => superblock_lines(&mut out, &superblock::choose(bytes)?.superblock),
            Self::SuperblockCopy(copy) => superblock_lines(&mut out, &Superblock::parse(bytes, *copy)?),
            Self::Manifest => manifest_lines(&mut out, &Manifest::parse(bytes)?),
            Self::SegmentHeader { copy, id } => header_lines(&mut out, &Header::parse(bytes, *copy, *id)?),
            Self::Table { uuid, id } => table_lines(&mut out, bytes, uuid, *id)?,
            Self::Frame { lane, uuid, epoch, offset, chunk_max } => {
                let rules = Rules { uuid: *uuid, epoch: *epoch, lane: *lane, chunk_max: *chunk_max };
                let mut file = vec![0; usize::try_from(*offset).expect("vectors stand near the start of a file")];
                file.extend_from_slice(bytes);
                let read = frame::read(&file.as_slice(), *offset, file.len() as u64, &rules);
                frame_lines(&mut out, &read.map_err(|invalid| invalid.error)?, *lane)?;
            }
        }
        Ok(out.0)
    }
}

fn unhex(text: &str) -> Option<[u8; 16]> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Lines of `field: value`.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, field: &str, value: impl std::fmt::Display) -> &mut Self {
        writeln!(self.0, "{field}: {value}").expect("a string takes any text");
        self
    }

    fn hex(&mut self, field: &str, bytes: &[u8]) -> &mut Self {
        self.add(field, hex(bytes))
    }

    fn option(&mut self, field: &str, value: Option<impl std::fmt::Display>) -> &mut Self {
        if let Some(value) = value {
            self.add(field, value);
        }
        self
    }
}

fn superblock_lines(out: &mut Lines, s: &Superblock) {
    out.add("sequence", s.sequence).hex("store uuid", &s.uuid).add("created_at", s.created_at);
    out.add("chunk_min", s.chunk_min).add("chunk_avg", s.chunk_avg).add("chunk_max", s.chunk_max);
    out.add("chunk_single_max", s.chunk_single_max).add("compression", u8::from(s.zstd));
    out.add("compression level", s.compression_level).add("log segment size, first", s.log_first);
    out.add("log segment size, largest", s.log_largest).add("bulk segment size", s.bulk);
    out.hex("store secret", &s.secret.0).add("incarnation", s.incarnation);
    out.add("manifest generation", s.manifest_generation).add("manifest length", s.manifest_length);
    out.hex("manifest digest", &s.manifest_digest);
    out.add("replay segment", s.replay.segment).hex("replay epoch", &s.replay.epoch);
    out.add("replay offset", s.replay.offset).add("replay LSN", s.replay.lsn).hex("replay chain", &s.replay.chain);
    out.add("log_head segment", s.log_head).hex("log_head epoch", &s.log_head_epoch);
    if let Some(end) = &s.log_end {
        out.add("log_end offset", end.offset).add("log_end LSN", end.lsn).hex("log_end chain", &end.chain);
    }
    out.add("ceiling of file ids", s.ceiling_files).add("ceiling of generations", s.ceiling_generations);
    out.add("ceiling of tenant numbers", s.ceiling_tenants);
    s.prepared.iter().for_each(|id| done(out.add("prepared id", id)));
    s.reserve.iter().for_each(|id| done(out.add("reserve id", id)));
    s.ledger_places.iter().for_each(|place| done(out.hex("ledger place", place)));
}

fn table_lines(out: &mut Lines, bytes: &[u8], uuid: &[u8; 16], id: u64) -> Result<(), Error> {
    let (header, rows) = table::parse(bytes, uuid, id)?;
    out.add("pages", header.pages).add("first LSN", header.first_lsn).add("last LSN", header.last_lsn);
    for section in &header.sections {
        out.add("section", section.keyspace).add("height", section.height).add("entries", section.entries);
        out.add("data pages", section.data_pages).add("extra pages", section.extra_pages);
    }
    for (key, entry) in &rows {
        out.hex("key", &records::key(key));
        match entry {
            None => out.add("value", "deleted"),
            Some(entry) => out.hex("value digest", &holdfast_format_spec::derive::digest(&records::value(entry))),
        };
    }
    Ok(())
}

fn manifest_lines(out: &mut Lines, m: &Manifest) {
    out.hex("store uuid", &m.uuid).add("generation", m.generation);
    for tenant in &m.tenants {
        out.add("tenant", tenant.number).hex("key", &tenant.key.0);
    }
    for segment in &m.segments {
        out.add("segment", segment.id).hex("epoch", &segment.epoch).add("lane", segment.lane.name());
        out.option("end", segment.sealed_end);
    }
    if let Some(sums) = &m.sums {
        out.add("sums", format!("{sums:?}"));
    }
    for table in &m.tables {
        out.add("table", table.id).add("pages", table.pages).add("mirrored", u8::from(table.mirrored));
        out.add("first LSN", table.first_lsn).add("last LSN", table.last_lsn);
        out.hex("first", &records::key(&table.first)).hex("last", &records::key(&table.last));
    }
}

fn header_lines(out: &mut Lines, h: &Header) {
    out.hex("store uuid", &h.uuid).add("id", h.id).hex("epoch", &h.epoch).add("lane", h.lane.name());
    out.add("capacity", h.capacity).add("first LSN", h.first_lsn);
    if let Some(before) = &h.predecessor {
        out.add("predecessor id", before.id).hex("predecessor epoch", &before.epoch).add("predecessor end", before.end);
    }
    out.hex("chain", &h.chain);
}

fn frame_lines(out: &mut Lines, frame: &Frame, lane: Lane) -> Result<(), Error> {
    let header = &frame.header;
    out.add("kind", header.kind.name()).add("codec", header.codec as u8).add("stored", header.stored);
    out.add("raw", header.raw).hex("id", &header.id).add("context", header.context);
    let base = frame.offset + frame::HEADER;
    match header.kind {
        Kind::Chunk => done(out.hex("decoded", &frame.decode()?)),
        Kind::Page => {
            let page = Page::parse(&frame.payload, base)?;
            out.add("level", page.level).add("total", page.total);
            page.entries.iter().for_each(|entry| done(out.hex("entry", &entry.id).add("length", entry.length)));
        }
        Kind::Commit => commit_lines(out, &Commit::parse(&frame.payload, header.context, base)?),
        Kind::Seal => {
            let seal = Seal::parse(&frame.payload, lane, base)?;
            out.add("end", seal.end).add("footer offset", seal.footer_offset).add("synced_upto", seal.synced_upto);
            out.add("first LSN", seal.first_lsn).add("next LSN", seal.next_lsn);
            out.add("frame count", seal.frame_count).add("byte count", seal.byte_count);
            if let Some((id, epoch)) = seal.successor {
                out.add("successor id", id).hex("successor epoch", &epoch);
            }
        }
        Kind::Footer => {
            for entry in footer(&frame.payload, base)? {
                out.hex("entry", &entry.id).add("offset", entry.offset).add("stored", entry.stored);
                out.add("raw", entry.raw).add("tenant", entry.tenant).add("kind", entry.kind.name());
                out.add("codec", entry.codec as u8);
            }
        }
        Kind::Mark | Kind::Padding => {}
    }
    Ok(())
}

fn commit_lines(out: &mut Lines, commit: &Commit) {
    out.add("synced_upto segment", commit.synced_upto.segment).add("synced_upto offset", commit.synced_upto.offset);
    out.add("hw", commit.hw);
    for request in &commit.requests {
        out.add("request", format!("{} edits", request.len()));
        for edit in request {
            out.add(if matches!(edit, Edit::Put(_)) { "put" } else { "delete" }, edit.key().keyspace());
            key_lines(out, &edit.key());
            if let Edit::Put(entry) = edit {
                value_lines(out, entry);
            }
        }
    }
}

fn key_lines(out: &mut Lines, key: &Key) {
    out.hex("key", &records::key(key));
    match key {
        Key::Account(key) | Key::Conversation(key) | Key::Run(key) | Key::Claim(key) => {
            out.add("key.tenant", key.tenant);
        }
        Key::Artifact(key) => done(out.add("key.tenant", key.tenant).hex("key.artifact", &key.artifact)),
        Key::ByOwner(key) => {
            out.add("key.tenant", key.tenant).add("key.owner kind", key.owner_kind as u8);
            out.hex("key.owner", &key.owner).add("key.attach LSN", key.attach_lsn).add("key.position", key.position);
        }
        Key::Due(key) => done(out.add("key.time", key.time).add("key.tenant", key.artifact.tenant)),
        Key::Op(key) | Key::Identity(key) => done(out.add("key.begin LSN", key.begin_lsn).hex("key.op", &key.op)),
        Key::Zero(ZeroKey::Chunk(id)) => done(out.hex("key.chunk", id)),
        Key::Zero(ZeroKey::Blob(id)) => done(out.hex("key.blob", id)),
        Key::Segment(id) => done(out.add("key.segment", id)),
        Key::Fence(key) => done(out.add("key.kind", key.kind)),
        Key::OfAccount(key) => {
            out.add("key.tenant", key.tenant).add("key.kind", key.kind).add("key.LSN", key.lsn);
        }
        Key::Tenant(_) | Key::Upload(_) | Key::Blob(_) | Key::Chunk(_) => {}
    }
}

fn value_lines(out: &mut Lines, entry: &Entry) {
    match entry {
        Entry::Tenant(_, v) => done(out.add("number", v.number).add("created_at", v.created_at)),
        Entry::Account(_, v) => {
            out.add("created LSN", v.created_lsn).add("created_at", v.created_at).add("text", &v.text);
        }
        Entry::Conversation(_, v) => conversation_lines(out, v),
        Entry::Run(_, v) => run_lines(out, v),
        Entry::Claim(_, v) => claim_lines(out, v),
        Entry::Fence(_, v) => {
            out.add("void_all", v.void_all).add("void_derived", v.void_derived).add("closed_at", v.closed_at);
            out.add("reopened_at", v.reopened_at).add("erased_at", v.erased_at);
        }
        Entry::Upload(_, v) => upload_lines(out, v),
        Entry::Artifact(_, v) => artifact_lines(out, v),
        Entry::Blob(_, v) => done(out.hex("root", &v.root).add("size", v.size).add("references", v.references)),
        Entry::Chunk(_, v) => {
            out.add("segment", v.segment).add("offset", v.offset).add("stored", v.stored).add("raw", v.raw);
            out.add("tenant", v.tenant).add("codec", v.codec as u8).add("kind", v.kind.name());
            out.add("references", v.references);
        }
        Entry::ByOwner(_, artifact) | Entry::Identity(_, artifact) => done(out.hex("artifact", artifact)),
        Entry::Op(_, v) => {
            out.hex("artifact", &v.artifact)
                .option("code", (v.code > 0).then_some(v.code))
                .add("LSN", v.lsn)
                .add("time", v.time);
        }
        Entry::Segment(_, v) => {
            out.hex("epoch", &v.epoch).add("state", if v.sealed { 2 } else { 1 }).add("end", v.end);
        }
        Entry::Due(_) | Entry::Zero(_) | Entry::OfAccount(_) => {}
    }
}

fn conversation_lines(out: &mut Lines, v: &Conversation) {
    out.hex("account", &v.account).add("state", v.state as u8).add("opened LSN", v.opened_lsn);
    out.add("opened_at", v.opened_at).add("changed LSN", v.changed_lsn).add("reset LSN", v.reset_lsn);
    out.option("forked_from", v.forked_from.map(|id| hex(&id))).add("text", &v.text);
}

fn run_lines(out: &mut Lines, v: &Run) {
    out.hex("run id", &v.id).hex("account", &v.account).option("conversation", v.conversation.map(|id| hex(&id)));
    out.option("parent", v.parent.map(|id| hex(&id))).add("state", v.state as u8).add("generation", v.generation);
    out.add("begin LSN", v.begin_lsn).add("begun_at", v.begun_at).add("lease LSN", v.lease_lsn);
    out.add("lease_until", v.lease_until).add("ttl", v.ttl).add("ends_at", v.ends_at);
    out.add("finished_at", v.finished_at).add("changed LSN", v.changed_lsn).hex("token", &v.token);
    v.tags.iter().for_each(|tag| done(out.hex("tag", tag)));
}

fn claim_lines(out: &mut Lines, v: &Claim) {
    out.hex("conversation", &v.conversation).hex("reply", &v.reply).add("LSN", v.lsn).add("time", v.time);
    out.add("released", v.released);
    for claimed in &v.claimed {
        out.hex("claimed", &claimed.artifact).add("expires_at", claimed.expires_at);
    }
    for skipped in &v.skipped {
        out.hex("skipped", &skipped.artifact).add("reason", skipped.reason);
    }
}

fn upload_lines(out: &mut Lines, v: &Upload) {
    out.add("tenant", v.tenant).add("resumable", v.resumable).hex("account", &v.account);
    out.add("begin LSN", v.begin_lsn).add("created_at", v.created_at).add("offset", v.offset);
    out.option("declared size", v.declared_size).add("expires_at", v.expires_at);
    out.hex("SHA-256 state", &v.sha256_state);
    v.tail.iter().for_each(|tail| done(out.hex("tail", &tail.id).add("length", tail.length)));
    for (level, entries) in v.right_edge.iter().enumerate() {
        out.add("level", level);
        for entry in entries {
            out.hex("entry", &entry.id).add("length", entry.length);
        }
    }
}

fn artifact_lines(out: &mut Lines, v: &Artifact) {
    out.hex("id", &v.id).add("tenant", v.tenant).add("truncated", v.flags.truncated).add("tree", v.flags.tree);
    out.add("detach", v.flags.detach)
        .option("deleted", v.flags.deleted.then_some(true))
        .hex("account", &v.account)
        .add("owner kind", v.owner_kind as u8);
    out.add("origin", v.origin).add("position", v.position).hex("owner", &v.owner);
    out.hex("born.account", &v.born_account).option("born.run", v.born_run.map(|id| hex(&id)));
    out.option("born.order", v.born_order).add("born.lsn", v.born_lsn).add("born.time", v.born_time);
    out.add("token_lsn", v.token_lsn).add("attach_lsn", v.attach_lsn).add("size", v.size);
    out.hex("sha256", &v.sha256).hex("blob_root", &v.blob_root).option("logical_size", v.logical_size);
    out.option("expires_at", v.expires_at).add("version", v.version);
    out.option("link_of", v.link_of.map(|id| hex(&id))).option("supersedes", v.supersedes.map(|id| hex(&id)));
    out.option("derived_from", v.derived_from.map(|id| hex(&id))).add("name", &v.name);
    out.option("key", v.key.as_ref()).add("media_type", &v.media_type).add("detected_type", &v.detected_type);
}

/// Ends a chain of fields where an expression without a value is wanted.
fn done(_: &mut Lines) {}
