//! Cutting a stream into chunks as it comes in. The cut is the same however the source hands its bytes out.

use std::{
    io::{self, Read},
    ops::Range,
};

use crate::{
    chunker::{self, ChunkParams},
    disk::AlignedBuffer,
    error::{Error, Result},
    limits::SMALL_STREAM_MAX,
};

/// The buffer begins with this and doubles: most streams are short.
const FIRST_LEN: usize = 16 << 10;

/// A block is read and cut in pieces of this length.
const PIECE: usize = 128 << 10;

/// A stream and the bytes of it that are not cut yet. Memory is a small multiple of the longest chunk.
pub(super) struct Cutter<'a> {
    source: &'a mut dyn Read,
    params: ChunkParams,
    buffer: AlignedBuffer,
    /// The bytes that wait, within the buffer.
    start: usize,
    end: usize,
    /// The source has no more.
    ended: bool,
    /// No chunk was cut yet.
    first: bool,
    /// In so many of the bytes that wait no chunk ends.
    looked: usize,
    /// Chunks of the block that is being filled.
    block: Vec<Range<usize>>,
    /// The buffer does not grow beyond this.
    len_max: usize,
}

impl<'a> Cutter<'a> {
    /// Reads nothing yet. `hint` is how long the source says that it is; it may be wrong.
    pub(super) fn new(source: &'a mut dyn Read, params: ChunkParams, hint: Option<u64>) -> Self {
        let len_max = (2 * params.max as usize).max(SMALL_STREAM_MAX + 1).max(params.single_max as usize + 1);
        // One byte more than hinted shows that the hint holds without growing the buffer.
        let hinted = hint.and_then(|hint| usize::try_from(hint).ok()).map(|hint| hint.saturating_add(1));
        let buffer = AlignedBuffer::zeroed(hinted.unwrap_or(FIRST_LEN).clamp(1, len_max));
        Self {
            source,
            params,
            buffer,
            start: 0,
            end: 0,
            ended: false,
            first: true,
            looked: 0,
            block: Vec::new(),
            len_max,
        }
    }

    /// True if the whole stream has at most this many bytes. They are then in memory.
    pub(super) fn is_within(&mut self, len: usize) -> Result<bool> {
        self.fill(len + 1)?;
        Ok(self.waiting().len() <= len)
    }

    /// The bytes that wait.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.buffer.as_slice()[self.start..self.end]
    }

    /// The next chunk, `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        self.fill(self.sight())?;
        let chunk = self.cut();
        Ok(chunk.map(|chunk| &self.buffer.as_slice()[chunk]))
    }

    /// Nothing was cut yet, or some of the stream was, by an earlier cutter.
    pub(super) fn resumed(self, first: bool) -> Self {
        Self { first, ..self }
    }

    /// The next chunk that ends by itself, whatever comes behind. `None` at the end: what is left waits.
    pub(super) fn next_cut(&mut self) -> Result<Option<&[u8]>> {
        self.fill(self.sight())?;
        let chunk = self.find().map(|len| self.take(len));
        Ok(chunk.map(|chunk| &self.buffer.as_slice()[chunk]))
    }

    /// Reads and cuts until a block of `len` bytes is there, or the source ends. False: nothing is there.
    pub(super) fn fill_block(&mut self, len: usize) -> Result<bool> {
        self.len_max = self.len_max.max(len);
        self.cut_waiting();
        while self.end < len && !self.ended {
            // Cut while the core's own cache holds them: a whole block does not fit.
            self.read((self.end + PIECE).min(len))?;
            self.cut_waiting();
        }
        Ok(self.end > 0)
    }

    /// Gives the block and where the chunks lie in it, one behind the other. What more bytes might cut in another way goes into `spare`,
    /// in which the cutter goes on.
    pub(super) fn cut_block(&mut self, mut spare: AlignedBuffer) -> (AlignedBuffer, Vec<Range<usize>>) {
        let chunks = std::mem::take(&mut self.block);
        let rest = self.waiting().len();
        spare.as_mut_slice()[..rest].copy_from_slice(self.waiting());
        (self.start, self.end) = (0, rest);
        (std::mem::replace(&mut self.buffer, spare), chunks)
    }

    /// Bytes that must be seen to know the next cut, unless the source ends before.
    fn sight(&self) -> usize {
        let (max, single_max) = (self.params.max as usize, self.params.single_max as usize);
        if self.first { max.max(single_max + 1) } else { max }
    }

    fn cut_waiting(&mut self) {
        while let Some(chunk) = self.cut() {
            self.block.push(chunk);
        }
    }

    /// Takes the chunk at the front of what waits, if more bytes would not make it another one.
    fn cut(&mut self) -> Option<Range<usize>> {
        let rest = self.waiting().len();
        let len = self.find().or((self.ended && rest > 0).then_some(rest))?;
        Some(self.take(len))
    }

    /// Length of the chunk at the front of what waits, if it ends by itself.
    fn find(&mut self) -> Option<usize> {
        let waiting = self.waiting();
        let is_single = self.first && waiting.len() <= self.params.single_max as usize;
        let found = if is_single { None } else { chunker::find(&self.params, waiting, self.looked) };
        if found.is_none() {
            self.looked = if is_single { 0 } else { waiting.len() };
        }
        found
    }

    fn take(&mut self, len: usize) -> Range<usize> {
        (self.first, self.looked) = (false, 0);
        let start = self.start;
        self.start += len;
        start..start + len
    }

    /// Reads until this many bytes wait, or the source ends.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        debug_assert!(wanted <= self.len_max);
        while self.end - self.start < wanted && !self.ended {
            self.make_room(wanted);
            self.read(self.len_max)?;
        }
        Ok(())
    }

    /// One read of the source, up to a place in the buffer.
    fn read(&mut self, upto: usize) -> Result<()> {
        self.grow();
        let upto = upto.min(self.buffer.len());
        match self.source.read(&mut self.buffer.as_mut_slice()[self.end..upto]) {
            Ok(0) => self.ended = true,
            Ok(read) => self.end = (self.end + read).min(upto),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::outside(e, "read the source")),
        }
        Ok(())
    }

    /// Moves what waits to the front when its place gets short.
    fn make_room(&mut self, wanted: usize) {
        if self.start > 0 && self.start + wanted > self.buffer.len() {
            self.buffer.as_mut_slice().copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    fn grow(&mut self) {
        if self.end == self.buffer.len() {
            let len = (2 * self.buffer.len()).clamp(FIRST_LEN, self.len_max);
            let mut larger = AlignedBuffer::zeroed_on_large_pages(len);
            larger.as_mut_slice()[..self.end].copy_from_slice(&self.buffer.as_slice()[..self.end]);
            self.buffer = larger;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Kind;

    const SMALL: ChunkParams = ChunkParams { min: 64, avg: 1024, max: 4096, single_max: 512 };

    /// Hands out pieces of given lengths, over and over.
    struct Pieces<'a> {
        rest: &'a [u8],
        lens: std::iter::Cycle<std::vec::IntoIter<usize>>,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let len = self.lens.next().expect("endless").min(bytes.len()).min(self.rest.len());
            bytes[..len].copy_from_slice(&self.rest[..len]);
            self.rest = &self.rest[len..];
            Ok(len)
        }
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        blake3::Hasher::new().update(b"source").finalize_xof().fill(&mut out);
        out
    }

    fn chunks(source: &mut dyn Read, params: ChunkParams, hint: Option<u64>) -> Vec<Vec<u8>> {
        let mut cutter = Cutter::new(source, params, hint);
        let mut chunks = Vec::new();
        while let Some(chunk) = cutter.next().expect("reads") {
            chunks.push(chunk.to_vec());
        }
        chunks
    }

    fn chunks_of_blocks(source: &mut dyn Read, len: usize) -> Vec<Vec<u8>> {
        let mut cutter = Cutter::new(source, SMALL, None);
        let mut chunks = Vec::new();
        assert!(cutter.is_within(100).is_ok(), "looked at before");
        while cutter.fill_block(len).expect("reads") {
            let mut spare = AlignedBuffer::zeroed(len);
            spare.as_mut_slice().fill(0xaa);
            let (bytes, cut) = cutter.cut_block(spare);
            assert!(cut.windows(2).all(|pair| pair[0].end == pair[1].start), "one behind the other");
            chunks.extend(cut.into_iter().map(|chunk| bytes.as_slice()[chunk].to_vec()));
        }
        chunks
    }

    proptest! {
        #[test]
        fn whole_blocks_are_cut_as_chunk_by_chunk(
            len in 0_usize..60_000,
            lens in proptest::collection::vec(1_usize..9000, 1..5),
            block in 8192_usize..20_000,
        ) {
            let data = noise(len);
            let mut pieces = Pieces { rest: &data, lens: lens.into_iter().cycle() };
            prop_assert_eq!(chunks_of_blocks(&mut pieces, block), chunks(&mut &data[..], SMALL, None));
        }

        #[test]
        fn the_cut_does_not_depend_on_how_the_source_hands_out(
            len in 0_usize..40_000,
            lens in proptest::collection::vec(1_usize..9000, 1..5),
            hint in proptest::option::of(0_u64..50_000),
        ) {
            let data = noise(len);
            let mut pieces = Pieces { rest: &data, lens: lens.into_iter().cycle() };
            let cut = chunks(&mut pieces, SMALL, hint);
            prop_assert_eq!(cut.concat(), data.clone());
            prop_assert_eq!(cut, chunks(&mut &data[..], SMALL, None));
        }
    }

    #[test]
    fn a_short_blob_is_one_chunk_and_one_byte_more_is_cut() {
        assert_eq!(chunks(&mut &noise(512)[..], SMALL, None).len(), 1);
        let longer = noise(513);
        assert_eq!(chunks(&mut &longer[..], SMALL, None)[0].len(), chunker::cut(&SMALL, &longer));
        let single = ChunkParams { single_max: 4096, ..SMALL };
        assert_eq!(chunks(&mut &noise(4096)[..], single, None).len(), 1);
        let longer = noise(4097);
        assert_eq!(chunks(&mut &longer[..], single, None)[0].len(), chunker::cut(&SMALL, &longer));
    }

    #[test]
    fn whether_a_stream_is_short_is_known_without_losing_a_byte() {
        let data = noise(10_000);
        for (len, within) in [(10_000, true), (9_999, false)] {
            let mut source = &data[..];
            let mut cutter = Cutter::new(&mut source, SMALL, None);
            assert_eq!(cutter.is_within(len).expect("reads"), within);
            let first = cutter.next().expect("reads").expect("a chunk");
            assert_eq!(first, &data[..chunker::cut(&SMALL, &data)]);
        }
    }

    struct Failing(Option<Error>);

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(self.0.take().map_or_else(|| io::ErrorKind::StorageFull.into(), io::Error::other))
        }
    }

    #[test]
    fn an_error_of_the_source_is_io_unless_it_carries_one_of_ours() {
        let kind = |mut source: Failing| Cutter::new(&mut source, SMALL, None).next().expect_err("fails").kind();
        assert_eq!(kind(Failing(None)), Kind::Io);
        assert_eq!(kind(Failing(Some(Error::new(Kind::NotReady, "still written")))), Kind::NotReady);
    }
}
