//! A bar for what takes longer than a second, on a terminal only.

use std::{io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nothing is shown before.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where a long command stands.
pub(crate) struct Progress {
    /// `None` where nobody watches.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar of bytes; `total` is zero where it is not known.
    pub(crate) fn new(what: &str, total: u64) -> Self {
        Self::with_template(what, total, "{msg} {bytes}/{total_bytes} {bar:30} {bytes_per_sec}")
    }

    fn with_template(what: &str, total: u64, template: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target((total > 0).then_some(total), ProgressDrawTarget::hidden());
            let style = ProgressStyle::with_template(template);
            bar.with_style(style.expect("the template is well formed")).with_message(what.to_owned())
        });
        Self { bar }
    }

    /// A bar of so many steps.
    pub(crate) fn steps(what: &str, total: u64) -> Self {
        Self::with_template(what, total, "{msg} {pos}/{len} {bar:30}")
    }

    /// More bytes are done.
    pub(crate) fn add(&mut self, bytes: usize) {
        let done = self.bar.as_ref().map_or(0, ProgressBar::position);
        self.set(done + bytes as u64);
    }

    /// So many bytes are done.
    pub(crate) fn set(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            if bar.is_hidden() && bar.elapsed() > PATIENCE {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            bar.set_position(done);
        }
    }

    /// So many of so many are done.
    pub(crate) fn set_of(&mut self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
        }
        self.set(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
