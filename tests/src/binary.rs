//! The release binary on a store: calls that must succeed, processes that are killed, and the fields of the lines that it writes. It knows
//! nothing of what a campaign asks for.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

/// The signal that no process can hold up.
const SIGKILL: i32 = 9;

/// A store and the binary that works on it.
pub(crate) struct Binary {
    program: PathBuf,
    store: PathBuf,
}

impl Binary {
    /// Nothing is made or looked at before the first call.
    pub(crate) fn new(program: &Path, store: PathBuf) -> Self {
        Self { program: program.to_owned(), store }
    }

    /// The store's directory.
    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    /// A call; it has nothing to read unless it is given something.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--store").arg(&self.store).arg("--json").args(arguments).stdin(Stdio::null());
        command
    }

    /// A call that must succeed, and what it wrote.
    pub(crate) fn succeed(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let output = self.command(arguments).output().map_err(|e| e.to_string())?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Err(format!("{arguments:?}: {}: {err} {out}", output.status))
    }

    /// A call that must succeed and may write more than memory should hold: each line as it comes.
    pub(crate) fn each_line(
        &self,
        arguments: &[&str],
        take: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut child =
            self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(|e| e.to_string())?;
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let taken = lines.map(|line| take(&line.map_err(|e| e.to_string())?)).find(Result::is_err);
        let status = if taken.is_some() { kill(&mut child)? } else { child.wait().map_err(|e| e.to_string())? };
        match taken {
            Some(found) => found,
            None if status.success() => Ok(()),
            None => Err(format!("{arguments:?}: {status}")),
        }
    }
}

/// Sends SIGKILL, waits for the end and says how it came.
pub(crate) fn kill(child: &mut Child) -> Result<ExitStatus, String> {
    child.kill().and_then(|()| child.wait()).map_err(|e| format!("kill: {e}"))
}

/// True if it was the signal that ended the process, and not the process itself.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(SIGKILL)
}

/// A text field of a line of JSON: ids and digests have nothing that is escaped.
pub(crate) fn field(line: &str, name: &str) -> Option<String> {
    let start = line.split_once(&format!("\"{name}\":\""))?.1;
    Some(start.split_once('"')?.0.to_owned())
}

/// A field of a line of JSON that is a number.
pub(crate) fn number(line: &str, name: &str) -> Option<u64> {
    let start = line.split_once(&format!("\"{name}\":"))?.1;
    start[..start.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_line_are_found_by_their_names() {
        let line = r#"{"id":"mfrg","size":17,"sha256":"00ff"}"#;
        assert_eq!((field(line, "id"), field(line, "sha256")), (Some("mfrg".to_owned()), Some("00ff".to_owned())));
        assert_eq!((number(line, "size"), field(line, "name"), number(line, "id")), (Some(17), None, None));
    }
}
