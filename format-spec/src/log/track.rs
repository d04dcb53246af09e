//! Follows the chain hash, the LSN and the engine's time through the log.
//!
//! It does not know frames: it is told what each structure carries.

use crate::Id32;
use crate::problem::{ProblemKind, Problems};

/// What is known at a position of the log. None: damage hid it.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub(super) chain: Option<Id32>,
    pub(super) next_lsn: Option<u64>,
    pub(super) hw: u64,
    /// Damage since the last structure that carried a chain hash.
    damage: Option<(String, u64, u64)>,
}

/// A structure that carries the chain hash so far and the next LSN.
pub(super) struct Carrier<'a> {
    pub(super) what: &'static str,
    pub(super) file: &'a str,
    pub(super) offset: u64,
    pub(super) chain: Id32,
    pub(super) next_lsn: u64,
}

impl Track {
    pub(super) fn damaged(&mut self, file: &str, offset: u64, length: u64) {
        self.damage.get_or_insert_with(|| (file.to_owned(), offset, length));
    }

    /// The log ends here, and nothing says what its chain hash is.
    pub(super) fn end(&mut self, problems: &mut Problems) {
        if let Some((file, offset, length)) = self.damage.take() {
            let what = "nothing behind it shows that no commit was lost here";
            problems.add(ProblemKind::Lost, &file, (offset, length), what);
        }
    }

    pub(super) fn carrier(&mut self, carrier: &Carrier<'_>, problems: &mut Problems) {
        let chain_holds = self.chain.is_none_or(|chain| chain == carrier.chain);
        let lsn_holds = self.next_lsn.is_none_or(|lsn| lsn == carrier.next_lsn);
        match self.damage.take() {
            Some((file, offset, length)) if !chain_holds => {
                let what = format!(
                    "commits were lost here, as the {} at {} of {} shows",
                    carrier.what, carrier.offset, carrier.file
                );
                problems.add(ProblemKind::Lost, &file, (offset, length), what);
            }
            _ if !chain_holds => {
                let what = format!("{}: another chain hash than what stands before it gives", carrier.what);
                problems.add(ProblemKind::Chain, carrier.file, (carrier.offset, 0), what);
            }
            _ if !lsn_holds => {
                let what = format!("{}: another LSN than what stands before it gives", carrier.what);
                problems.add(ProblemKind::Chain, carrier.file, (carrier.offset, 0), what);
            }
            _ => {}
        }
        self.chain = Some(carrier.chain);
        self.next_lsn = Some(carrier.next_lsn);
    }
}
