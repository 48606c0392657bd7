// SPDX-License-Identifier: GPL-2.0

//! What the tables of triggers use of the kernel crate, on the host.
//!
//! Names and behaviour are those of the kernel crate. A test chooses with [`alloc::fail_after`] which allocation fails. Memory
//! of an [`sync::Arc`] that was freed is not used again, so that a test can look whether somebody still uses it.

pub mod alloc;
pub mod prelude;
pub mod sync;

/// CPUs of the machine.
pub mod cpu {
    use std::cell::Cell;

    thread_local! {
        static CPUS: Cell<u32> = const { Cell::new(4) };
    }

    /// Returns the number of possible CPUs.
    pub fn nr_cpu_ids() -> u32 {
        CPUS.get()
    }

    /// Chooses that number for this thread.
    pub fn set_nr_cpu_ids(n: u32) {
        CPUS.set(n);
    }
}

/// Errors of the kernel, by their numbers.
pub mod error {
    use crate::alloc::AllocError;

    /// An errno.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Error(pub i32);

    /// The result of what may fail with an errno.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;

    impl From<AllocError> for Error {
        fn from(_: AllocError) -> Self {
            code::ENOMEM
        }
    }

    /// The errors by their names.
    pub mod code {
        use super::Error;

        macro_rules! errors {
            ($($name:ident = $n:literal),* $(,)?) => { $(
                #[doc = concat!("Error ", $n, ".")]
                pub const $name: Error = Error($n);
            )* };
        }
        errors! {
            EINTR = 4, EAGAIN = 11, ENOMEM = 12, EBUSY = 16, ENODEV = 19, EINVAL = 22,
        }
    }
}
