// SPDX-License-Identifier: MIT OR Apache-2.0

//! Waiting until something is due, or until a signal ends the program.

use std::fs;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::Result;

/// The length of an interval if the user gives none.
pub const SECOND: Duration = Duration::from_secs(1);

/// A time that is never reached.
pub const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Waits for the end of an interval, or for a signal that ends the program.
pub struct Stop(pub(crate) Receiver<()>);

impl Stop {
    /// Catches signals from now on, so that they do not kill the process.
    pub fn on_signals() -> Result<Self> {
        let mut wanted = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            wanted.push(SIGHUP);
        }
        let mut signals =
            Signals::new(wanted).map_err(|error| error!("cannot wait for signals: {error}"))?;
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for _ in signals.forever() {
                if sender.send(()).is_err() {
                    break;
                }
            }
        });
        Ok(Self(receiver))
    }

    /// Waits until the given time, or for ever without one. Returns whether a signal arrived.
    pub fn wait(&self, until: Option<Instant>) -> bool {
        match until {
            None => {
                let _ = self.0.recv();
                true
            }
            Some(until) => {
                let rest = until.saturating_duration_since(Instant::now());
                !matches!(self.0.recv_timeout(rest), Err(RecvTimeoutError::Timeout))
            }
        }
    }
}

/// Returns whether this process was started with the signal ignored, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
