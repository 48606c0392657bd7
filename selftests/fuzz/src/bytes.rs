// SPDX-License-Identifier: GPL-2.0

//! Numbers out of an input.

/// An input that is used up from its beginning; after its end are zeros.
pub(crate) struct Bytes<'i>(pub(crate) &'i [u8]);

impl<'i> Bytes<'i> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    pub(crate) fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// As many bytes, or as many as there are.
    pub(crate) fn take(&mut self, n: usize) -> &'i [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
