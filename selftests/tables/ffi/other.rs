// SPDX-License-Identifier: GPL-2.0

//! The rest of the edge, of which tables use little.

pub mod event {
    use crate::{ffi::guard::Guarded, hist_trigger::HistTrigger};
    use kernel::sync::Arc;

    /// An event of the top instance.
    pub struct EventFile {
        pub triggers: Guarded<Vec<Arc<HistTrigger>>>,
    }

    /// An instance.
    pub struct Instance;

    impl EventFile {
        pub fn names(&self) -> (&[u8], &[u8]) {
            (b"test", b"event")
        }

        pub fn instance(&self) -> Instance {
            Instance
        }
    }

    impl Instance {
        pub fn clock_in_ns(&self) -> bool {
            true
        }
    }
}

pub mod poll {
    /// What is ready.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct PollEvents(pub u32);

    impl PollEvents {
        pub const NONE: Self = Self(0);
        pub const READABLE: Self = Self(1);
        pub const PRIORITY: Self = Self(2);
        pub const ERROR: Self = Self(4);

        pub fn and(self, other: Self) -> Self {
            Self(self.0 | other.0)
        }
    }

    /// Wakes those who poll: a test asks again by itself.
    pub fn wake() {}
}

pub mod random {
    pub fn number() -> u64 {
        1
    }
}

pub mod seq {
    use crate::text::Out;
    use std::fmt;

    /// What a reader is given.
    pub struct SeqWriter<'a>(pub &'a mut Vec<u8>);

    impl fmt::Write for SeqWriter<'_> {
        fn write_str(&mut self, s: &str) -> fmt::Result {
            self.write_bytes(s.as_bytes())
        }
    }

    impl Out for SeqWriter<'_> {
        fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
            self.0.extend_from_slice(bytes);
            Ok(())
        }
    }
}

pub mod work {
    use crate::sim;

    /// The work, until it is dropped.
    pub struct Worker(());

    impl Worker {
        pub fn new(run: fn()) -> Self {
            sim::set_work(run);
            Self(())
        }
    }

    /// Has the work done.
    pub fn ask() {
        sim::ask_for_work();
    }

    /// Has the work done later.
    pub fn ask_later(ms: u32) {
        sim::ask_for_work_in(ms);
    }
}
