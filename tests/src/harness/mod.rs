//! A store on a simulated machine: what it is asked to do, and what it has promised at each moment of that.

mod changes;
pub mod content;
pub mod deeds;
pub mod machine;
pub mod promise;
pub mod run;
pub mod source;
pub mod workload;

pub use machine::Machine;
pub use promise::{Promise, Stored};
pub use run::Run;
pub use workload::{PutStep, Step, Workload};
