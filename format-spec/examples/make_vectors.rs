//! Writes the vectors: `cargo run -p holdfast-format-spec --example make_vectors`.
//!
//! Only new vectors are written. One that is there is kept as it is: it is what files of this version look like, whatever this program
//! would write today.
#![expect(clippy::disallowed_methods, reason = "it writes files of the source tree, not of a store")]

#[path = "../tests/spec/cases.rs"]
mod cases;
#[path = "../tests/spec/common.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod common;
#[path = "../tests/spec/describe.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod describe;

use std::path::Path;

fn main() -> std::io::Result<()> {
    for case in cases::all() {
        let folder = if case.valid { "valid" } else { "invalid" };
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(folder);
        let bytes = place.join(format!("{}.bin", case.name));
        if bytes.exists() {
            continue;
        }
        std::fs::write(&bytes, &case.bytes)?;
        std::fs::write(place.join(format!("{}.txt", case.name)), case.text())?;
        println!("{folder}/{}", case.name);
    }
    Ok(())
}
