//! What a store has promised at a moment: which artifacts it must hold, which it may, and what has been said of time.
//!
//! Artifacts have one order, that of their commits. What a store holds after a crash is always the first of that order: all that
//! were acknowledged, and perhaps some that were under way.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holdfast::ids::{ArtifactId, Time};

use super::deeds::{At, Deed};

/// An artifact as it was put, or another change of the store: then only name and deed say something.
#[derive(Clone, Default, Debug)]
pub struct Stored {
    /// Index into the accounts.
    pub account: usize,
    /// Its id.
    pub id: ArtifactId,
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Their digest, as the put gave it.
    pub sha256: holdfast::ids::Sha256,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// Name of the operation.
    pub op_id: Option<String>,
    /// What it is in the order of commits.
    pub deed: Deed,
}

impl Stored {
    /// True for an artifact.
    pub const fn is_artifact(&self) -> bool {
        matches!(self.deed, Deed::Put(_) | Deed::Link(..))
    }

    /// The artifacts that it brought: itself, the copies of a fork, or none.
    pub fn brought(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        let copies = if let Deed::Fork(_, copies) = &self.deed { &copies[..] } else { &[] };
        self.is_artifact().then_some(self).into_iter().chain(copies)
    }
}

/// What holds at a moment.
#[derive(Clone, Debug)]
pub struct Promise {
    /// Making the store has been acknowledged.
    pub made: bool,
    /// Artifacts in the order of their commits.
    pub order: Arc<Vec<Arc<Stored>>>,
    /// So many of them must be there; the rest of the order may, from the front.
    pub least: usize,
    /// What the clock shows.
    pub wall: Time,
    /// The latest time that it ever showed.
    pub latest: Time,
    /// Artifacts of which somebody was told that they have expired.
    pub told: Arc<BTreeSet<ArtifactId>>,
}

/// What must be said of an artifact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// It is readable.
    Readable,
    /// It has expired.
    Gone,
    /// Either: the clock was past its end and went back, and nobody asked meanwhile.
    Open,
}

impl Promise {
    /// Before there is a store.
    pub fn nothing(now: Time) -> Self {
        Self { made: false, order: Arc::default(), least: 0, wall: now, latest: now, told: Arc::default() }
    }

    /// What must be said of an artifact, as far as time decides it.
    pub fn life(&self, id: ArtifactId, at: &At) -> Life {
        match at.expires_at {
            None => Life::Readable,
            Some(end) if self.wall >= end || self.told.contains(&id) => Life::Gone,
            Some(end) if self.latest < end => Life::Readable,
            Some(_) => Life::Open,
        }
    }
}

/// What happens to a store.
#[derive(Clone, Debug)]
pub enum Event {
    /// Making it was acknowledged.
    Made,
    /// An open has shown that it holds the first so many artifacts: now all of them must stay.
    Shown(usize),
    /// A put has begun.
    Begun(u64),
    /// A put was acknowledged.
    Done(u64, Arc<Stored>),
    /// The clock was moved.
    Clock(Time),
    /// Somebody was told that these have expired.
    Told(Vec<ArtifactId>),
}

/// The promises at each moment: what holds from an index of the disk's log on.
#[derive(Clone, Debug)]
pub struct Timeline(Vec<(usize, Promise)>);

impl Timeline {
    /// Follows events, given with the index of the disk's log from which on they count. Artifacts are committed in the order in which
    /// they are acknowledged.
    pub fn new(now: Promise, events: &[(usize, Event)]) -> Self {
        let done = events.iter().enumerate().filter_map(|(place, (_, event))| match event {
            Event::Done(ticket, _) => Some((*ticket, place)),
            _ => None,
        });
        Self::ranked(now, events, &done.collect())
    }

    /// Follows events where each put has a rank: its place in the order of commits.
    pub fn ranked(mut now: Promise, events: &[(usize, Event)], ranks: &BTreeMap<u64, usize>) -> Self {
        let done: BTreeMap<u64, &Arc<Stored>> = events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Done(ticket, stored) => Some((*ticket, stored)),
                _ => None,
            })
            .collect();
        let mut timeline = vec![(0, now.clone())];
        // Under way, by rank.
        let mut under_way: BTreeMap<usize, &Arc<Stored>> = BTreeMap::new();
        for (index, event) in events {
            match event {
                Event::Made => now.made = true,
                Event::Shown(count) => {
                    now.least = *count;
                    Arc::make_mut(&mut now.order).truncate(*count);
                }
                Event::Begun(ticket) => under_way.extend(done.get(ticket).map(|stored| (ranks[ticket], *stored))),
                Event::Done(ticket, _) => {
                    // Whatever was committed before it is as durable as it is.
                    let later = under_way.split_off(&(ranks[ticket] + 1));
                    let order = Arc::make_mut(&mut now.order);
                    order.truncate(now.least);
                    order.extend(under_way.values().map(|stored| Arc::clone(stored)));
                    now.least = order.len();
                    under_way = later;
                }
                Event::Clock(time) => {
                    now.wall = *time;
                    now.latest = now.latest.max(*time);
                }
                Event::Told(ids) => Arc::make_mut(&mut now.told).extend(ids),
            }
            if let Event::Begun(_) | Event::Done(..) = event {
                let order = Arc::make_mut(&mut now.order);
                order.truncate(now.least);
                order.extend(under_way.values().map(|stored| Arc::clone(stored)));
            }
            timeline.push((*index, now.clone()));
        }
        Self(timeline)
    }

    /// What holds once the operation of this index was issued.
    pub fn at(&self, op_index: usize) -> &Promise {
        let after = self.0.partition_point(|(from, _)| *from <= op_index);
        &self.0[after.saturating_sub(1)].1
    }

    /// What holds at the end.
    pub fn last(&self) -> &Promise {
        &self.0.last().expect("a timeline begins with a promise").1
    }
}
