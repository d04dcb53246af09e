//! Who owns what, and what that keeps alive: state in, edits out.
//!
//! Pure: no file, no clock, no lock. Time, LSN and ids are passed in; what comes out goes through the commit door.

mod door;
mod target;

pub mod account;
pub mod artifact;
pub mod claim;
pub mod conversation;
pub mod ending;
pub mod fences;
pub mod link;
pub mod names;
pub mod references;
pub mod run;
pub mod sending;
pub mod tenant;
pub mod token;
pub mod upload;

#[cfg(test)]
mod tests;

pub use door::{AccountScope, ConversationScope, Destination, Door, RunScope, Scope, Tenant, UploadScope};
pub use token::RunToken;
