//! What can go wrong, by what the caller should do about it, and where it went wrong.
//!
//! An error never carries payload bytes, names or tokens: only kinds, file names of the store, offsets and ids.

use std::{borrow::Cow, fmt, io};

use crate::ids::ArtifactId;

/// Result of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $exit:literal;)*) => {
        /// Kind of an error. Its text is stable, since scripts rely on it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// The stable name, in `UPPER_SNAKE`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Exit code of the command line.
            pub const fn exit_code(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }

            /// Every kind, for tests and documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

kinds! {
    /// Fix the request.
    InvalidArgument = "INVALID_ARGUMENT", 2;
    /// Fix the name: 1 to 255 bytes of UTF-8 without `/`, NUL, control or bidi characters, not `.` or `..`.
    BadName = "BAD_NAME", 2;
    /// Fix the media type.
    BadType = "BAD_TYPE", 2;
    /// Give UTF-8.
    BadUtf8 = "BAD_UTF8", 2;
    /// Give a regular file.
    NotRegular = "NOT_REGULAR", 2;
    /// Give a path beneath the root.
    EscapesRoot = "ESCAPES_ROOT", 2;
    /// Nothing of that id in this scope.
    NotFound = "NOT_FOUND", 3;
    /// It was here and is no more.
    Gone = "GONE", 3;
    /// The conversation was deleted; its id is never used again.
    ConvGone = "CONV_GONE", 3;
    /// The scope was cut since this began, or takes nothing new.
    Fenced = "FENCED", 4;
    /// Another lease of the run was given out since: begin it again.
    StaleToken = "STALE_TOKEN", 4;
    /// The lease has ended: begin the run again.
    LeaseLost = "LEASE_LOST", 4;
    /// The run is over.
    RunClosed = "RUN_CLOSED", 4;
    /// Unarchive the conversation first.
    ConvArchived = "CONV_ARCHIVED", 4;
    /// Another reply has the run's artifacts.
    AlreadyClaimed = "ALREADY_CLAIMED", 4;
    /// The run ended otherwise.
    AlreadyFinished = "ALREADY_FINISHED", 4;
    /// It lives as long as its owner.
    NotExpirable = "NOT_EXPIRABLE", 4;
    /// It was changed since: look again.
    VersionConflict = "VERSION_CONFLICT", 4;
    /// Go on at the offset that the upload has.
    OffsetConflict = "OFFSET_CONFLICT", 4;
    /// The content is not what the caller expected.
    DigestMismatch = "DIGEST_MISMATCH", 4;
    /// Damage: restore the named file, or leave the named artifact out.
    Corrupt = "CORRUPT", 5;
    /// Another process holds the store; wait for it.
    Locked = "LOCKED", 6;
    /// Reads go on; mend the cause (medium, corruption) and reopen.
    ReadOnly = "READ_ONLY", 6;
    /// A sync or log write failed: reopen the store.
    Poisoned = "POISONED", 6;
    /// The source is not ready; try again.
    NotReady = "NOT_READY", 6;
    /// Use a newer release.
    Version = "VERSION", 6;
    /// Make room and try again.
    NoSpace = "NO_SPACE", 7;
    /// Give less.
    TooLarge = "TOO_LARGE", 7;
    /// Give fewer at a time.
    TooMany = "TOO_MANY", 7;
    /// A limit of the process or the store; try again later.
    Limit = "LIMIT", 7;
    /// The operating system failed a call; look at the medium.
    Io = "IO", 1;
    /// It may have happened: reopen and ask with the same op id.
    OutcomeUnknown = "OUTCOME_UNKNOWN", 1;
}

/// Where an error stands.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Place {
    /// File of the store.
    pub file: Option<String>,
    /// Offset in that file.
    pub offset: Option<u64>,
    /// The artifact that it concerns.
    pub artifact: Option<ArtifactId>,
}

/// An error of the engine: what to do, what happened, where.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: Cow<'static, str>,
    place: Box<Place>,
    source: Option<io::Error>,
}

impl Error {
    /// An error without a place.
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), place: Box::default(), source: None }
    }

    /// Damage at an offset of a file of the store.
    pub fn corrupt(file: impl fmt::Display, offset: u64, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Corrupt, message).at(file, offset)
    }

    /// Bytes of a version that this release does not know; `what` says of which structure.
    pub fn newer(what: &str) -> Self {
        Self::new(
            Kind::Version,
            format!("{what}: a newer release of holdfast wrote it; use that one, nothing was changed"),
        )
    }

    /// A failed call of the operating system; `message` says which, in words.
    pub fn io(source: io::Error, file: impl fmt::Display, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::new(kind_of(&source), message);
        error.place.file = Some(file.to_string());
        error.source = Some(source);
        error
    }

    /// A failed call of a stream that the caller gave; an error of ours that it carries comes out as it went in.
    pub fn outside(source: io::Error, message: impl Into<Cow<'static, str>>) -> Self {
        match source.downcast::<Self>() {
            Ok(error) => error,
            Err(source) => Self { source: Some(source), ..Self::new(Kind::Io, message) },
        }
    }

    /// The same error with a place in a file.
    #[must_use]
    pub fn at(mut self, file: impl fmt::Display, offset: u64) -> Self {
        self.place.file = Some(file.to_string());
        self.place.offset = Some(offset);
        self
    }

    /// The same error, said of an artifact.
    #[must_use]
    pub fn of_artifact(mut self, id: ArtifactId) -> Self {
        self.place.artifact = Some(id);
        self
    }

    /// The same error under another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// The same error for another request that it befell; the source stays with the first.
    #[must_use]
    pub fn again(&self) -> Self {
        Self { kind: self.kind, message: self.message.clone(), place: self.place.clone(), source: None }
    }

    /// What the caller should do.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Where.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// What happened, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The kind that an operating system error stands for.
fn kind_of(error: &io::Error) -> Kind {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Kind::NoSpace,
        io::ErrorKind::ReadOnlyFilesystem => Kind::ReadOnly,
        _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => Kind::Limit,
        _ => Kind::Io,
    }
}

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match (&self.place.file, self.place.offset) {
            (Some(file), Some(offset)) => write!(f, " ({file} at {offset})")?,
            (Some(file), None) => write!(f, " ({file})")?,
            _ => {}
        }
        if let Some(id) = self.place.artifact {
            write!(f, " (artifact {id})")?;
        }
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_error_becomes_the_kind_that_says_what_to_do() {
        for (errno, kind) in [
            (28, Kind::NoSpace),
            (122, Kind::NoSpace),
            (27, Kind::NoSpace),
            (30, Kind::ReadOnly),
            (24, Kind::Limit),
            (5, Kind::Io),
        ] {
            assert_eq!(Error::io(io::Error::from_raw_os_error(errno), "f", "write").kind(), kind, "errno {errno}");
        }
    }

    #[test]
    fn every_kind_has_a_name_and_an_exit_code_of_its_own_class() {
        for kind in Kind::ALL {
            assert!(kind.as_str().bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'));
            assert!((1..=7).contains(&kind.exit_code()));
        }
    }
}
