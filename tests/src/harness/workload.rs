//! What a store is asked to do: every short sequence of the operations that matter, and random ones.
//!
//! A seed decides everything. Even seeds walk through the short sequences, odd ones are random.

use std::sync::Arc;

use super::{content::Contents, deeds::CONVERSATIONS};
use crate::random::Random;

/// Accounts that own artifacts.
pub const ACCOUNTS: [&str; 2] = ["amber", "birch"];

/// Steps of a short sequence at most.
const SHORT_MAX: u32 = 4;
/// Bytes that one workload puts at most, more or less.
const BYTES_MAX: usize = 110 << 10;

/// Owners get no more files once a workload puts so many.
const OWNED_BYTES_MAX: usize = 120 << 10;

/// Puts without content in a row: more than a log segment holds.
const RECORDS: usize = 24;
/// How often there are so many.
const RECORD_BURSTS: usize = 2;

/// One operation.
#[derive(Clone, Debug)]
pub enum Step {
    /// A new artifact, or a retry.
    Put(PutStep),
    /// The clock goes on, or back.
    Clock(i64),
    /// Something is done about conversations and runs.
    Own(OwnStep),
    /// Somebody looks at everything, and so learns what has expired.
    Look,
    /// A clean close, and open again.
    Close,
    /// The disk has so much room left, and no more.
    Full(u64),
    /// The disk has room again.
    Room,
    /// The process ends without one, the machine stays up; and open again.
    Kill,
}

/// What is done about conversations and runs.
#[derive(Clone, Copy, Debug)]
pub enum OwnStep {
    /// A conversation is opened, by its index.
    Open(usize),
    /// It is deleted.
    Delete(usize),
    /// A run begins.
    Begin,
    /// A run, by its index among all, gives what it has to a conversation.
    Claim(usize, usize),
    /// An artifact, by its index among all, is deleted.
    Drop(usize),
    /// It is to end so many milliseconds from now.
    End(usize, u64),
    /// It is linked into a conversation, or behind all of them into an account.
    Link(usize, usize),
    /// It gets another name.
    Rename(usize),
    /// A conversation is forked into another one.
    Fork(usize, usize),
}

/// Where a put goes.
#[derive(Clone, Copy, Default, Debug)]
pub enum Into {
    /// Into its account.
    #[default]
    Account,
    /// Into a conversation.
    Conversation(usize),
    /// Into a run, by its index among all.
    Run(usize),
}

/// A put.
#[derive(Clone, Debug)]
pub struct PutStep {
    /// Index into [`ACCOUNTS`].
    pub account: usize,
    /// Name of the artifact.
    pub name: String,
    /// What it is to hold.
    pub bytes: Arc<[u8]>,
    /// The caller's name for the operation. A second put with the same one is a retry.
    pub op_id: Option<String>,
    /// Milliseconds until it ends.
    pub expires_in: Option<u64>,
    /// The source fails when it has given so many bytes.
    pub fails_at: Option<usize>,
    /// Bytes of one read of the source at most.
    pub piece: usize,
    /// Puts that run to their end when the source has given so many bytes.
    pub during: Vec<(usize, Self)>,
    /// Where it goes.
    pub into: Into,
    /// A conversation that is deleted once the source has given so many bytes.
    pub deletes: Option<(usize, usize)>,
}

/// A sequence of operations.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The steps.
    pub steps: Vec<Step>,
    /// Crashes while the store is made are looked at too.
    pub from_init: bool,
}

/// Operations of short sequences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    New,
    Again,
    Empty,
    Long,
    LongFails,
    LongWithinLong,
    Op,
    Expires,
    Close,
    Kill,
}

const KINDS: [Kind; 10] = [
    Kind::New,
    Kind::Again,
    Kind::Empty,
    Kind::Long,
    Kind::LongFails,
    Kind::LongWithinLong,
    Kind::Op,
    Kind::Expires,
    Kind::Close,
    Kind::Kill,
];

/// How many short sequences there are.
pub const SHORT_SEQUENCES: u64 = {
    let mut sum = 0;
    let mut len = 1;
    while len <= SHORT_MAX {
        sum += (KINDS.len() as u64).pow(len);
        len += 1;
    }
    sum
};

impl Workload {
    /// The workload of a seed.
    pub fn of(seed: u64) -> Self {
        let mut steps = Steps::new(seed);
        if seed.is_multiple_of(2) {
            steps.sequence(seed / 2 % SHORT_SEQUENCES);
        } else {
            // With records alone between them a log segment is recycled only in a long run.
            let (least, more) = if seed % 8 == 5 { (20, 41) } else { (14, 27) };
            let count = least + steps.random.below(more);
            steps.random(count);
        }
        if seed % 4 == 3 {
            steps.with_owners(seed);
        }
        if seed % 8 == 5 {
            steps.with_records(seed);
        }
        // Making a store is the same in every run, so that a few of them have enough of it.
        Self { steps: steps.built, from_init: seed % 16 < 2 }
    }
}

/// Builds a workload.
struct Steps {
    random: Random,
    contents: Contents,
    built: Vec<Step>,
    names: u64,
    bytes: usize,
    ops: Vec<PutStep>,
}

impl Steps {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::of(seed, &[1]),
            contents: Contents::new(Random::of(seed, &[2])),
            built: Vec::new(),
            names: 0,
            bytes: 0,
            ops: Vec::new(),
        }
    }

    /// The short sequence of a number: shorter ones first.
    fn sequence(&mut self, mut number: u64) {
        let kinds = KINDS.len() as u64;
        let mut len = 1;
        while number >= kinds.pow(len) {
            number -= kinds.pow(len);
            len += 1;
        }
        for _ in 0..len {
            let kind = KINDS[usize::try_from(number % kinds).expect("an index")];
            number /= kinds;
            self.kind(kind);
        }
    }

    fn kind(&mut self, kind: Kind) {
        match kind {
            Kind::New => {
                let len = 600 + self.random.index(2000);
                let put = self.put_of(len);
                self.push(put);
            }
            Kind::Again => {
                if self.bytes == 0 {
                    self.kind(Kind::New);
                }
                let bytes = self.contents.again();
                let put = self.put(bytes);
                self.push(put);
            }
            Kind::Empty => {
                let put = self.put_of(0);
                self.push(put);
            }
            Kind::Long => {
                let len = (18 << 10) + self.random.index(4000);
                let put = self.put_of(len);
                self.push(put);
            }
            Kind::LongFails => {
                let put = self.put_of(40 << 10);
                let fails_at = (17 << 10) + self.random.index(20_000);
                self.push(PutStep { fails_at: Some(fails_at), ..put });
            }
            Kind::LongWithinLong => {
                let len = (18 << 10) + self.random.index(4000);
                let outer = self.put_of(len);
                let inner = self.put(Arc::clone(&outer.bytes));
                // Late enough that the outer one has chunks on their way, and sometimes too early for it to commit any.
                let at = (10 << 10) + self.random.index(8 << 10);
                let fails_at = self.random.one_in(3).then_some(len - 1);
                self.push(PutStep { during: vec![(at, inner)], fails_at, ..outer });
            }
            Kind::Op => self.op(),
            Kind::Expires => {
                let len = self.random.index(700);
                let put = self.put_of(len);
                self.push(PutStep { expires_in: Some(1000), ..put });
                let by = [999, 1000, 5000][self.random.index(3)];
                self.built.extend([Step::Clock(by), Step::Look]);
            }
            Kind::Close => self.built.push(Step::Close),
            Kind::Kill => self.built.push(Step::Kill),
        }
    }

    /// A put with an op id, or a retry of one.
    fn op(&mut self) {
        if !self.ops.is_empty() && self.random.one_in(2) {
            let put = self.random.pick(&self.ops).clone();
            self.push(PutStep { fails_at: None, ..put });
            return;
        }
        let put = self.any_put();
        let op_id = Some(format!("op-{}", self.names));
        let put = PutStep { op_id, expires_in: None, fails_at: None, during: Vec::new(), ..put };
        self.ops.push(put.clone());
        // Some fail at first, and only the retry counts.
        let fails_at = (self.random.one_in(4) && !put.bytes.is_empty()).then(|| self.random.index(put.bytes.len()));
        self.push(PutStep { fails_at, ..put });
    }

    fn random(&mut self, count: u64) {
        for _ in 0..count {
            if self.bytes > BYTES_MAX {
                break;
            }
            match self.random.below(42) {
                40 => {
                    let room = 4096 * self.random.below(20);
                    self.built.push(Step::Full(room));
                }
                41 => self.built.push(Step::Room),
                0 | 1 => self.built.push(Step::Close),
                2..=4 => self.built.push(Step::Kill),
                5 | 6 => {
                    let by = i64::try_from(self.random.below(3_000_000)).expect("small");
                    self.built.push(Step::Clock(by - 1_000_000));
                }
                7 => self.built.push(Step::Look),
                8..=10 => self.kind(Kind::Expires),
                11..=14 => self.op(),
                15 => self.kind(Kind::LongFails),
                16 | 17 => self.kind(Kind::LongWithinLong),
                18 | 19 => {
                    let put = self.any_put();
                    let fails_at = self.random.index(put.bytes.len() + 1);
                    self.push(PutStep { fails_at: Some(fails_at), ..put });
                }
                _ => {
                    let put = self.any_put();
                    self.push(put);
                }
            }
        }
    }

    /// Puts conversations and runs between the other steps.
    fn with_owners(&mut self, seed: u64) {
        let mut random = Random::of(seed, &[4]);
        let mut steps = vec![Step::Own(OwnStep::Open(0)), Step::Own(OwnStep::Open(1)), Step::Own(OwnStep::Begin)];
        let put = self.put_of(1 + random.index(900));
        self.bytes += put.bytes.len();
        // Twice: a fork of both counts two references.
        let twin = self.put(Arc::clone(&put.bytes));
        steps.extend([put, twin].map(|put| Step::Put(PutStep { into: Into::Conversation(0), account: 0, ..put })));
        // The third of all artifacts has an end, and gets another one.
        let ends = self.put_of(1 + random.index(300));
        steps.push(Step::Put(PutStep { expires_in: Some(3_000_000), ..ends }));
        steps.push(Step::Own(OwnStep::End(2, 400_000_000_000)));
        for step in std::mem::take(&mut self.built) {
            steps.push(step);
            if random.one_in(2) {
                let step = self.owner_step(&mut random);
                steps.push(step);
            }
        }
        steps.insert(7 + random.index(steps.len() / 2), Step::Own(OwnStep::Fork(0, 1)));
        // Whatever a deletion may take is there by then.
        let at = steps.len() / 2 + random.index(steps.len() / 2);
        steps.insert(at, Step::Own(OwnStep::Delete(random.index(2))));
        self.built = steps;
    }

    /// Something is done to an artifact that is there.
    fn change(random: &mut Random) -> OwnStep {
        let (one, n) = (random.index(40), random.index(CONVERSATIONS.len()));
        match random.below(8) {
            0 | 1 => OwnStep::Drop(one),
            2 | 3 => OwnStep::End(one, [1000, 3_000_000, 400_000_000_000][random.index(3)]),
            4 | 5 => OwnStep::Link(one, random.index(CONVERSATIONS.len() + ACCOUNTS.len())),
            6 => OwnStep::Rename(one),
            _ => OwnStep::Fork(random.index(2), n),
        }
    }

    /// Adds puts that bring records alone, so many of them that they fill log segments in which nothing is live.
    fn with_records(&mut self, seed: u64) {
        let mut random = Random::of(seed, &[5]);
        let mut at = 0;
        for _ in 0..RECORD_BURSTS {
            at += random.index(self.built.len() + 1 - at);
            for _ in 0..RECORDS {
                let put = self.put(Arc::from([]));
                self.built.insert(at, Step::Put(put));
                at += 1;
            }
        }
    }

    fn owner_step(&mut self, random: &mut Random) -> Step {
        let n = random.index(CONVERSATIONS.len());
        match random.below(32) {
            24.. => Step::Own(Self::change(random)),
            0..=3 => Step::Own(OwnStep::Open(n)),
            4 | 5 => Step::Own(OwnStep::Begin),
            6 => Step::Own(OwnStep::Delete(n)),
            7..=10 => Step::Own(OwnStep::Claim(random.index(4), n)),
            _ if self.bytes > OWNED_BYTES_MAX => Step::Own(OwnStep::Claim(random.index(4), n)),
            kind => {
                let long = random.one_in(4);
                let len = if long { (5 << 10) + random.index(15 << 10) } else { 1 + random.index(900) };
                self.bytes += len;
                let put = self.put_of(len);
                let into = if kind < 16 { Into::Conversation(n) } else { Into::Run(random.index(4)) };
                // Late enough, in a long one, that it has committed something of its own.
                let deletes = random.one_in(10).then_some((len / 2, n));
                Step::Put(PutStep { into, deletes, account: 0, ..put })
            }
        }
    }

    fn any_put(&mut self) -> PutStep {
        let bytes = self.contents.any();
        let put = self.put(bytes);
        let expires_in = self.random.one_in(8).then(|| 1 + self.random.below(2_000_000));
        PutStep { expires_in, ..put }
    }

    fn put_of(&mut self, len: usize) -> PutStep {
        let bytes = self.contents.new_of(len);
        self.put(bytes)
    }

    fn put(&mut self, bytes: Arc<[u8]>) -> PutStep {
        self.names += 1;
        PutStep {
            account: self.random.index(ACCOUNTS.len()),
            name: format!("file-{}", self.names),
            bytes,
            op_id: None,
            expires_in: None,
            fails_at: None,
            piece: 1 + self.random.index(6000),
            during: Vec::new(),
            into: Into::Account,
            deletes: None,
        }
    }

    fn push(&mut self, put: PutStep) {
        self.bytes += put.fails_at.unwrap_or(usize::MAX).min(put.bytes.len());
        self.built.push(Step::Put(put));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seed: u64) -> String {
        let shape = |step: &Step| match step {
            Step::Put(put) => format!("put {} of {} {:?}", put.name, put.bytes.len(), put.fails_at),
            other => format!("{other:?}"),
        };
        Workload::of(seed).steps.iter().map(shape).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_seed_gives_the_same_steps_again_and_another_seed_others() {
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(9));
    }

    #[test]
    fn even_seeds_walk_through_all_short_sequences() {
        assert_eq!(SHORT_SEQUENCES, 11_110);
        assert_eq!(Workload::of(4).steps.len(), 1, "{}", text(4));
        assert!(text(2 * (SHORT_SEQUENCES - 1)).ends_with("Kill, Kill, Kill, Kill"), "the last one");
    }

    #[test]
    fn random_workloads_stay_small_and_reach_the_bulk_lane() {
        let mut long = 0;
        for seed in (1..200).step_by(2) {
            let bytes = |step: &Step| if let Step::Put(put) = step { put.bytes.len() } else { 0 };
            let steps = Workload::of(seed).steps;
            assert!(steps.iter().map(bytes).sum::<usize>() < 240 << 10, "seed {seed}");
            long += steps.iter().filter(|step| bytes(step) > 4096).count();
        }
        assert!(long > 100, "{long}");
    }
}
