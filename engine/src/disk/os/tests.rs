#![expect(clippy::disallowed_methods, reason = "the tests look at the directory past the disk")]

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::{PermissionsExt, symlink},
};

use super::*;

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a flat name")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
}

#[test]
fn a_new_store_is_closed_to_others() {
    let top = directory();
    let path = top.path().join("store");
    let disk = OsDisk::create(&path).expect("created");
    assert_eq!(mode(&path), 0o700);
    disk.open(&name("a"), OpenOptions::CREATE).expect("created");
    assert_eq!(mode(&path.join("a")), 0o600);
    disk.lock(LockMode::Exclusive, "test").expect("asked");
    assert_eq!(mode(&path.join("LOCK")), 0o600);
    OsDisk::create(&path).expect("an existing directory is as good");
}

#[test]
fn what_is_not_a_directory_of_ours_is_refused() {
    let top = directory();
    let refused = |path: &Path| OsDisk::open(path).expect_err("refused");
    assert_eq!(refused(&top.path().join("none")).kind(), ErrorKind::NotFound);
    assert_eq!(OsDisk::create(top.path().join("none/below")).expect_err("refused").kind(), ErrorKind::NotFound);

    fs::write(top.path().join("file"), "").expect("written");
    assert_eq!(refused(&top.path().join("file")).kind(), ErrorKind::NotADirectory);
    assert_eq!(OsDisk::create(top.path().join("file")).expect_err("refused").kind(), ErrorKind::NotADirectory);

    fs::create_dir(top.path().join("real")).expect("made");
    symlink("real", top.path().join("link")).expect("linked");
    for path in ["link", "link/", "link/."] {
        let error = refused(&top.path().join(path));
        assert!(error.to_string().contains("symbolic link"), "{path}: {error}");
    }
    for (bits, good) in [(0o770, false), (0o707, false), (0o755, true), (0o500, true)] {
        set_mode(&top.path().join("real"), bits);
        assert_eq!(OsDisk::open(top.path().join("real")).is_ok(), good, "{bits:o}");
    }
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let top = directory();
    // Only root can give a directory away; anybody else has other people's at hand.
    let foreign = if geteuid().is_root() {
        std::os::unix::fs::chown(top.path(), Some(1), None).expect("root may");
        top.path()
    } else {
        Path::new("/")
    };
    let error = OsDisk::open(foreign).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("belongs to user"), "{error}");
}

#[test]
fn what_is_not_a_regular_file_is_refused_without_waiting_for_it() {
    let top = directory();
    let disk = OsDisk::open(top.path()).expect("ours");
    fs::write(top.path().join("file"), "bytes").expect("written");
    symlink("file", top.path().join("link")).expect("linked");
    symlink("nowhere", top.path().join("dangling")).expect("linked");
    fs::create_dir(top.path().join("directory")).expect("made");
    rustix::fs::mknodat(CWD, top.path().join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(top.path().join("socket")).expect("bound");
    for text in ["link", "dangling", "directory", "fifo", "socket"] {
        for options in [OpenOptions::READ, OpenOptions::WRITE] {
            let error = disk.open(&name(text), options).err().expect(text);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}: {error}");
        }
        assert_eq!(disk.open(&name(text), OpenOptions::CREATE).err().expect(text).kind(), ErrorKind::AlreadyExists);
    }
    set_mode(&top.path().join("file"), 0o666);
    assert_eq!(disk.open(&name("file"), OpenOptions::READ).err().expect("refused").kind(), ErrorKind::PermissionDenied);
}

#[test]
fn names_that_are_not_ours_are_listed_apart_and_escaped() {
    let top = directory();
    let disk = OsDisk::open(top.path()).expect("ours");
    for file in ["segment-1", "Upper", ".hidden", "two words", "line\nbreak"] {
        fs::write(top.path().join(file), "").expect("written");
    }
    let bytes: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff\x1b[2J");
    fs::write(top.path().join(bytes), "").expect("written");
    let mut listing = disk.list().expect("listed");
    listing.strange.sort();
    assert_eq!(listing.names, [name("segment-1")]);
    assert_eq!(listing.strange, [".hidden", "Upper", "\\xff\\x1b[2J", "line\\nbreak", "two words"]);
    // A listing starts from the beginning each time.
    assert_eq!(disk.list().expect("listed").names.len(), 1);
}

#[test]
fn a_second_handle_of_the_directory_is_locked_out_too() {
    let top = directory();
    let path = top.path().join("store");
    let first = OsDisk::create(&path).expect("created");
    let second = OsDisk::open(top.path().join("./store/")).expect("opened");
    let Lock::Held(guard) = first.lock(LockMode::Exclusive, "put \u{1b}[31mred\nline").expect("asked") else {
        panic!("nobody else has it")
    };
    let Lock::Busy(holder) = second.lock(LockMode::Exclusive, "get").expect("asked") else { panic!("held twice") };
    let pid = std::process::id();
    assert_eq!(holder, format!("pid {pid}: put \\u{{1b}}[31mred\\nline"));
    drop(guard);
    assert!(matches!(second.lock(LockMode::Exclusive, "get").expect("asked"), Lock::Held(_)));
}

#[test]
fn a_lock_file_that_is_not_a_file_is_refused() {
    let top = directory();
    let disk = OsDisk::open(top.path()).expect("ours");
    symlink("elsewhere", top.path().join("LOCK")).expect("linked");
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        assert_eq!(disk.lock(mode, "test").err().expect("refused").kind(), ErrorKind::InvalidInput);
    }
    assert!(!top.path().join("elsewhere").exists());
}

#[test]
fn a_lock_file_that_lost_its_name_is_known() {
    let top = directory();
    let disk = OsDisk::open(top.path()).expect("ours");
    let open = || disk.open_regular(&name("LOCK"), OFlags::RDWR | OFlags::CREATE).expect("opened");
    let old = open();
    assert!(disk.is_still_lock(&old, &name("LOCK")).expect("asked"));
    disk.unlink(&name("LOCK")).expect("removed");
    assert!(!disk.is_still_lock(&old, &name("LOCK")).expect("asked"));
    let new = open();
    assert!(!disk.is_still_lock(&old, &name("LOCK")).expect("asked"));
    assert!(disk.is_still_lock(&new, &name("LOCK")).expect("asked"));
}

#[test]
fn a_moved_directory_is_still_the_same_disk() {
    let top = directory();
    let disk = OsDisk::create(top.path().join("store")).expect("created");
    disk.open(&name("a"), OpenOptions::CREATE).expect("created");
    fs::rename(top.path().join("store"), top.path().join("moved")).expect("moved");
    fs::create_dir(top.path().join("store")).expect("made");
    assert_eq!(disk.list().expect("listed").names, [name("a")]);
    disk.open(&name("b"), OpenOptions::CREATE).expect("created");
    assert!(top.path().join("moved/b").exists());
}

#[test]
fn no_file_reaches_to_the_end_of_numbers() {
    let top = directory();
    let disk = OsDisk::create(top.path().join("store")).expect("created");
    let file = disk.open(&name("a"), OpenOptions::CREATE).expect("created");
    for offset in [u64::MAX, u64::MAX - 63, 1 << 63, (1 << 63) - 1, (1 << 63) - 64] {
        assert_eq!(file.read_at(&mut [0; 64], offset).expect("the end of the file"), 0, "{offset}");
    }
}
