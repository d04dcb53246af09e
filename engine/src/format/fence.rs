//! The fence (FORMAT.md section 12.6): boundaries in the history of a scope.

use super::{Bad, Decoded, fields::Cursor};
use crate::{
    digest::ScopeKind,
    ids::{Lsn, ScopeHash},
};

/// Length of a value.
pub const LEN: usize = 40;

/// What a scope's history is cut by. Every field is an LSN, or none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Fence {
    /// Voids what began before, whatever its origin.
    pub void_all: Lsn,
    /// Voids what began before, but for uploads.
    pub void_derived: Lsn,
    /// Refuses newer tokens too ...
    pub closed_at: Lsn,
    /// ... until this is later.
    pub reopened_at: Lsn,
    /// Streams stop, and the bytes must go.
    pub erased_at: Lsn,
}

impl Fence {
    /// Both of them: the later of each field. Applied twice, in pieces or out of order it comes to the same.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            void_all: self.void_all.max(other.void_all),
            void_derived: self.void_derived.max(other.void_derived),
            closed_at: self.closed_at.max(other.closed_at),
            reopened_at: self.reopened_at.max(other.reopened_at),
            erased_at: self.erased_at.max(other.erased_at),
        }
    }

    /// True while nothing new may begin.
    pub fn is_closed(&self) -> bool {
        self.closed_at > self.reopened_at
    }

    const fn fields(&self) -> [Lsn; 5] {
        [self.void_all, self.void_derived, self.closed_at, self.reopened_at, self.erased_at]
    }

    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        self.fields().iter().flat_map(|lsn| lsn.0.to_le_bytes()).collect()
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut c = Cursor::new(bytes, "fence value");
        let mut lsn = || c.u64().map(Lsn);
        let fence =
            Self { void_all: lsn()?, void_derived: lsn()?, closed_at: lsn()?, reopened_at: lsn()?, erased_at: lsn()? };
        c.end()?;
        if fence == Self::default() { Err(Bad::damaged("fence value")) } else { Ok(fence) }
    }
}

/// Key of a fence.
pub fn fence_key(kind: ScopeKind, scope: ScopeHash) -> Vec<u8> {
    [&[kind as u8][..], &scope.0].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_fence() -> impl Strategy<Value = Fence> {
        let lsn = || (0_u64..4).prop_map(Lsn);
        (lsn(), lsn(), lsn(), lsn(), lsn()).prop_map(|(void_all, void_derived, closed_at, reopened_at, erased_at)| {
            Fence { void_all, void_derived, closed_at, reopened_at, erased_at }
        })
    }

    proptest! {
        #[test]
        fn merging_is_the_same_in_any_order_and_any_number_of_times(a in any_fence(), b in any_fence(), c in any_fence()) {
            prop_assert_eq!(a.merged(b), b.merged(a));
            prop_assert_eq!(a.merged(b).merged(c), a.merged(b.merged(c)));
            prop_assert_eq!(a.merged(b).merged(b), a.merged(b));
            for (before, after) in a.fields().into_iter().zip(a.merged(b).fields()) {
                prop_assert!(before <= after, "no field falls");
            }
        }

        #[test]
        fn a_fence_comes_back(fence in any_fence()) {
            let bytes = fence.encode();
            prop_assert_eq!(bytes.len(), LEN);
            if fence == Fence::default() {
                prop_assert!(Fence::decode(&bytes).is_err(), "a fence that is none");
            } else {
                prop_assert_eq!(Fence::decode(&bytes), Ok(fence));
            }
            prop_assert!(Fence::decode(&bytes[1..]).is_err());
        }
    }

    #[test]
    fn a_closed_scope_is_open_again_once_it_was_reopened_later() {
        let closed = Fence { closed_at: Lsn(3), ..Fence::default() };
        assert!(closed.is_closed());
        assert!(Fence { reopened_at: Lsn(2), ..closed }.is_closed());
        assert!(!Fence { reopened_at: Lsn(4), ..closed }.is_closed());
        assert!(!Fence::default().is_closed());
    }
}
