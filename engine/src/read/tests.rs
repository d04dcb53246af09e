//! Recipes that lie: pages whose own id is right and whose place in the tree is not.

use super::*;
use crate::catalog::Catalog;
use crate::{
    budget::Budget,
    codec::Codec,
    disk::{Disk, sim::SimDisk},
    format::{
        artifact::{Born, Origin},
        commit::Edit,
        frame::FrameDraft,
        keyspace::{AccountRef, Keyspace, ListPlace, Owner, OwnerKind, chunk_key},
        manifest::Tenant,
        page::Page,
        value::ChunkValue,
    },
    health::Health,
    ids::{ArtifactId, Epoch, FileId, Lsn, ScopeHash, Sha256, StoreUuid, Time},
    segment::writer::BulkWriter,
};

mod long;

const TENANT: TenantNumber = TenantNumber(1);
const ID: ArtifactId = ArtifactId([7; 16]);

/// A bulk segment with frames, and a catalog that knows them.
struct Bed {
    keys: TenantKeys,
    catalog: Catalog,
    disk: Arc<dyn Disk>,
    writer: BulkWriter,
}

impl Bed {
    fn new() -> Self {
        Self::on(Arc::new(SimDisk::new(1)))
    }

    fn on(disk: Arc<dyn Disk>) -> Self {
        let (uuid, epoch) = (StoreUuid([1; 16]), Epoch([2; 16]));
        let health = Arc::new(Health::default());
        let writer = BulkWriter::create(&*disk, uuid, FileId(1), epoch, 64 << 20, health).expect("a segment");
        Self { keys: TenantKeys::new(&[3; 32]), catalog: Catalog::default(), disk, writer }
    }

    fn add(&mut self, kind: FrameKind, id: ChunkId, payload: &[u8]) {
        let location = self.writer.append(&FrameDraft::raw(kind, id.0, u64::from(TENANT.0), payload)).expect("appends");
        let len = u32::try_from(payload.len()).expect("short");
        self.know(id, location, kind, Codec::Raw, (len, len));
    }

    fn know(&mut self, id: ChunkId, location: Location, kind: FrameKind, codec: Codec, (stored, raw): (u32, u32)) {
        let value = ChunkValue { location, stored, raw, tenant: TENANT, codec, kind, references: 1 };
        self.catalog.apply(&Edit::put(Keyspace::Chunk, chunk_key(id), value.encode())).expect("applies");
    }

    fn chunk(&mut self, bytes: &[u8]) -> PageEntry {
        let id = self.keys.chunk(bytes);
        self.add(FrameKind::Chunk, id, bytes);
        PageEntry { id, len: bytes.len() as u64 }
    }

    fn page(&mut self, level: u8, entries: &[PageEntry]) -> PageEntry {
        let page = Page { level, entries: entries.to_vec() };
        let payload = page.encode();
        let id = self.keys.page(&payload);
        self.add(FrameKind::Page, id, &payload);
        PageEntry { id, len: page.total() }
    }

    fn reader(mut self, budget: &Arc<Budget>) -> Reader {
        self.writer.flush().expect("flushes");
        let segments = Arc::new(Segments::new(self.disk, StoreUuid([1; 16])));
        segments.add(FileId(1), Epoch([2; 16]));
        let door = Door::new(&[9; 32], &[Tenant { number: TENANT, key: [3; 32] }]);
        Reader::new(Arc::new(Published::new(self.catalog)), segments, Arc::new(door), Arc::clone(budget))
    }

    /// What a read of the recipe gives, and what left before an error.
    fn read(self, root: PageEntry, range: Option<Range<u64>>) -> (Result<()>, Vec<u8>) {
        let reader = self.reader(&Budget::new(0));
        let mut sink = Vec::new();
        (reader.write_to(&artifact(root), range, &mut sink), sink)
    }
}

fn artifact(root: PageEntry) -> Artifact {
    let account = AccountRef { tenant: TENANT, account: ScopeHash([4; 16]) };
    Artifact {
        id: ID,
        account,
        owner: Owner { kind: OwnerKind::Account, id: account.account.0 },
        born: Born {
            account: account.account,
            run: None,
            origin: Origin::Upload,
            order: None,
            lsn: Lsn::FIRST,
            time: Time(1),
        },
        token_lsn: Lsn::FIRST,
        place: ListPlace::default(),
        name: "a".into(),
        key: None,
        media_type: String::new(),
        detected_type: String::new(),
        size: root.len,
        sha256: Sha256::ZERO,
        blob_root: root.id,
        logical_size: None,
        truncated: false,
        tree: false,
        expires_at: None,
        version: 1,
        link_of: None,
        detach: false,
        supersedes: None,
        derived_from: None,
        deleted: false,
    }
}

#[test]
fn a_tree_gives_its_chunks_in_order_and_ranges_of_them() {
    let bed = || {
        let mut bed = Bed::new();
        let chunks = [&b"one "[..], b"two ", b"three "].map(|bytes| bed.chunk(bytes));
        let pages = [bed.page(0, &chunks[..2]), bed.page(0, &chunks[2..])];
        let root = bed.page(1, &pages);
        (bed, root)
    };
    let (all, root) = bed();
    let (result, bytes) = all.read(root, None);
    result.expect("whole");
    assert_eq!(bytes, b"one two three ");
    for range in [0..0, 0..1, 3..5, 4..8, 7..9, 8..14, 14..14, 0..14] {
        let (part, root) = bed();
        let wanted = &b"one two three "[usize::try_from(range.start).expect("short")..][..];
        let len = usize::try_from(range.end - range.start).expect("short");
        let (result, bytes) = part.read(root, Some(range));
        result.expect("whole");
        assert_eq!(bytes, wanted[..len]);
    }
}

/// Builds a recipe and reads it: it is corrupt, said of the artifact, and of a place in the segment if there is one.
fn refused(what: &str, build: impl Fn(&mut Bed) -> PageEntry) {
    let mut bed = Bed::new();
    let root = build(&mut bed);
    let (result, bytes) = bed.read(root, None);
    let error = result.expect_err(what);
    assert_eq!((error.kind(), error.place().artifact), (Kind::Corrupt, Some(ID)), "{what}");
    assert!(bytes.is_empty(), "{what}: a short artifact is checked before its first byte leaves");
}

#[test]
fn a_recipe_that_lies_about_its_tree_is_corrupt() {
    let longer = |entry: PageEntry| PageEntry { len: entry.len + 1, ..entry };
    refused("a chunk of another length", |bed| {
        let chunks = [bed.chunk(b"good"), longer(bed.chunk(b"bad"))];
        bed.page(0, &chunks)
    });
    refused("a page of another total", |bed| {
        let chunk = bed.chunk(b"good");
        let page = longer(bed.page(0, &[chunk, chunk]));
        bed.page(1, &[page])
    });
    refused("a root of another size", |bed| longer(bed.chunk(b"good")));
    refused("a level that does not fall by one", |bed| {
        let chunk = bed.chunk(b"good");
        let page = bed.page(0, &[chunk, chunk]);
        bed.page(2, &[page])
    });
    refused("a page where a chunk must be", |bed| {
        let chunk = bed.chunk(b"good");
        let page = bed.page(0, &[chunk, chunk]);
        bed.page(0, &[chunk, page])
    });
    refused("a chunk where a page must be", |bed| {
        let chunk = bed.chunk(b"good");
        bed.page(1, &[chunk])
    });
    refused("bytes that are no page under a page's id", |bed| {
        let id = bed.keys.page(&[0xff; 56]);
        bed.add(FrameKind::Page, id, &[0xff; 56]);
        PageEntry { id, len: 56 }
    });
    refused("another chunk under the id", |bed| {
        let id = bed.keys.chunk(b"good");
        bed.add(FrameKind::Chunk, id, b"evil");
        PageEntry { id, len: 4 }
    });
    refused("a chunk that the catalog has not", |bed| {
        let chunk = bed.chunk(b"good");
        bed.page(0, &[chunk, PageEntry { id: ChunkId([8; 32]), len: 1 }])
    });
}

#[test]
fn of_a_range_each_chunk_is_checked_before_its_own_bytes_leave() {
    let mut bed = Bed::new();
    let good = bed.chunk(b"good");
    let root = bed.page(0, &[good, PageEntry { id: ChunkId([8; 32]), len: 1 }, good]);
    let (result, bytes) = bed.read(root, Some(1..9));
    assert_eq!(result.expect_err("missing").kind(), Kind::Corrupt);
    assert_eq!(bytes, b"ood");
}

#[test]
fn an_error_of_the_sink_is_passed_on() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut bed = Bed::new();
    let root = bed.chunk(b"good");
    let reader = bed.reader(&Budget::new(0));
    assert_eq!(reader.write_to(&artifact(root), None, &mut Full).expect_err("full").kind(), Kind::Io);
}
