//! The manifest's two files.

use crate::{
    digest::file_digest,
    disk::{self, Disk, Name, OpenOptions, SyncKind},
    error::{Error, Kind, Result},
    format::{
        manifest::{LEN_MAX, Manifest},
        superblock::Superblock,
    },
};

/// Names of a generation's two files.
pub fn names(generation: u64) -> [Name; 2] {
    ["a", "b"].map(|copy| Name::new(&format!("manifest-{generation}.{copy}")).expect("a flat name"))
}

/// Generation of a manifest's name.
pub fn parse_name(name: &Name) -> Option<u64> {
    let rest = name.as_str().strip_prefix("manifest-")?;
    let digits = rest.strip_suffix(".a").or_else(|| rest.strip_suffix(".b"))?;
    let generation = digits.parse::<u64>().ok()?;
    (generation >= 1 && generation.to_string() == digits).then_some(generation)
}

/// The manifest that a superblock names, from whichever copy is whole, and what is wrong with the other.
pub fn read(disk: &dyn Disk, superblock: &Superblock) -> Result<(Manifest, Vec<Error>)> {
    let mut damage = Vec::new();
    let mut manifest = None;
    for name in names(superblock.manifest.0) {
        match read_copy(disk, &name, superblock) {
            Ok(copy) => manifest = manifest.or(Some(copy)),
            Err(e) if e.kind() == Kind::Corrupt => damage.push(e),
            Err(e) => return Err(e),
        }
    }
    match manifest {
        Some(manifest) => Ok((manifest, damage)),
        None => Err(damage.swap_remove(0)),
    }
}

/// One copy of the manifest that a superblock names.
pub fn read_copy(disk: &dyn Disk, name: &Name, superblock: &Superblock) -> Result<Manifest> {
    let (generation, len, digest) = superblock.manifest;
    let file = disk::retry(|| disk.open(name, OpenOptions::READ)).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::io(e, name, "a manifest is missing").with_kind(Kind::Corrupt),
        _ => Error::io(e, name, "open a manifest"),
    })?;
    let found = disk::retry(|| file.len()).map_err(|e| Error::io(e, name, "read a manifest's length"))?;
    if found != len || len > LEN_MAX {
        return Err(Error::corrupt(name, found.min(len), "manifest length"));
    }
    let mut bytes = vec![0; usize::try_from(len).expect("a manifest is bounded")];
    disk::read_exact(&*file, &mut bytes, 0).map_err(|e| Error::io(e, name, "read a manifest"))?;
    if file_digest(&bytes) != digest {
        return Err(Error::corrupt(name, 0, "manifest digest"));
    }
    Manifest::decode(&bytes, superblock.uuid, generation).map_err(|bad| {
        let error = if bad.newer { Error::newer(bad.what) } else { Error::new(Kind::Corrupt, bad.what) };
        error.at(name, 0)
    })
}

/// Writes both copies and syncs them; the caller syncs the directory and then the superblock. Gives length and digest.
pub fn write(disk: &dyn Disk, manifest: &Manifest) -> Result<(u64, u64, [u8; 32])> {
    let bytes = manifest.encode();
    for name in names(manifest.generation) {
        let io = |e| Error::io(e, &name, "write a manifest");
        let file = disk::retry(|| disk.open(&name, OpenOptions::CREATE)).map_err(io)?;
        disk::write_all(&*file, &bytes, 0).map_err(io)?;
        disk::retry(|| file.sync(SyncKind::All)).map_err(io)?;
    }
    Ok((manifest.generation, bytes.len() as u64, file_digest(&bytes)))
}
