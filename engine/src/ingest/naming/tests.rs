use super::*;
use crate::ids::Sha256;

fn naming(places: usize) -> Naming<Vec<u8>> {
    Naming { state: Mutex::new(State { streams: BTreeMap::new(), next_id: 0, places }), changed: Condvar::new() }
}

fn digest(bytes: &[u8]) -> Sha256 {
    let mut stream = Sha256Stream::default();
    stream.update(bytes);
    stream.finish()
}

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().skip(seed % 256).take(len).collect()
}

#[test]
fn a_stream_alone_is_named_at_once_and_leaves_nothing_behind() {
    let naming = naming(1);
    let (feed, named) = naming.begin();
    feed.take(bytes(1, 5000));
    feed.take(bytes(2, 70));
    drop(feed);
    assert_eq!(named.run().finish(), digest(&[bytes(1, 5000), bytes(2, 70)].concat()));
    let state = naming.state.lock();
    assert_eq!((state.places, state.streams.len()), (1, 0));
}

#[test]
fn a_block_waits_for_company_until_its_stream_has_two() {
    let naming = naming(2);
    let (one, _named) = naming.begin();
    one.take(bytes(0, 100));
    let ids = |picked: Option<(Work<_>, Option<Work<_>>)>| {
        picked.map(|(first, second)| (first.id, second.map(|second: Work<Vec<u8>>| second.id)))
    };
    let (two, other) = naming.begin();
    assert_eq!(ids(naming.state.lock().pick()), None, "the other may bring one");
    two.take(bytes(1, 100));
    let (first, second) = naming.state.lock().pick().expect("both have one");
    assert_eq!((first.id, second.as_ref().map(|second| second.id)), (0, Some(1)));
    naming.hash(first, second);

    one.take(bytes(2, 100));
    assert_eq!(ids(naming.state.lock().pick()), None);
    one.take(bytes(3, 100));
    let (first, second) = naming.state.lock().pick().expect("two are enough");
    assert_eq!((first.id, second.is_none()), (0, true));
    naming.hash(first, None);

    assert_eq!(ids(naming.state.lock().pick()), None);
    drop((two, other));
    assert_eq!(ids(naming.state.lock().pick()), Some((0, None)), "nobody else is there");
}

#[test]
fn a_stream_that_has_ended_does_not_wait_for_company() {
    let naming = naming(1);
    let (_other, _named) = naming.begin();
    let (feed, named) = naming.begin();
    feed.take(bytes(0, 1000));
    drop(feed);
    assert_eq!(named.run().finish(), digest(&bytes(0, 1000)));
}

#[test]
fn what_is_left_of_the_longer_block_is_hashed_next() {
    let naming = naming(1);
    let ((one, named), (two, _named)) = (naming.begin(), naming.begin());
    one.take(bytes(0, 5000));
    two.take(bytes(1, 3000));
    let (first, second) = naming.state.lock().pick().expect("both have one");
    naming.hash(first, second);
    {
        let state = naming.state.lock();
        let left = |id| state.streams[&id].blocks.iter().map(|rest| rest.bytes().len()).sum::<usize>();
        assert_eq!((left(0), left(1)), (2000, 0));
    }
    drop(one);
    assert_eq!(named.run().finish(), digest(&bytes(0, 5000)));
}

#[test]
fn many_streams_get_the_digests_of_their_own_bytes() {
    for places in [1, 2, usize::MAX] {
        let naming = naming(places);
        thread::scope(|scope| {
            for stream in 0..8_usize {
                let (feed, named) = naming.begin();
                let digesting = scope.spawn(move || named.run().finish());
                scope.spawn(move || {
                    let mut all = Vec::new();
                    for round in 0..20 {
                        let block = bytes(stream, (stream * 7919 + round * 104_729) % 200_000);
                        all.extend_from_slice(&block);
                        feed.take(block);
                    }
                    drop(feed);
                    assert_eq!(digesting.join().expect("hashed"), digest(&all), "stream {stream}");
                });
            }
        });
        let state = naming.state.lock();
        assert_eq!((state.places, state.streams.len()), (places, 0));
    }
}

struct Trap;

impl AsRef<[u8]> for Trap {
    fn as_ref(&self) -> &[u8] {
        panic!("a block that cannot be looked at")
    }
}

#[test]
fn a_stream_whose_hashing_panicked_elsewhere_panics_and_does_not_wait() {
    let naming = Naming {
        state: Mutex::new(State { streams: BTreeMap::new(), next_id: 0, places: 1 }),
        changed: Condvar::new(),
    };
    let ((one, named), (two, other)) = (naming.begin(), naming.begin());
    one.take(Trap);
    two.take(Trap);
    thread::scope(|scope| {
        let runs = [scope.spawn(|| named.run()), scope.spawn(|| other.run())];
        for run in runs {
            assert!(run.join().is_err());
        }
    });
    assert_eq!(naming.state.lock().places, 1);
    drop((one, two));
}
