// SPDX-License-Identifier: GPL-2.0
//
// A buffer that the pure layers can write to. The examples in their documentation include this file.

/// Text in memory.
#[derive(Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// Returns what was written.
    pub fn text(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or("not UTF-8")
    }
}

impl core::fmt::Write for Buffer {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        rust_hist::text::Out::write_bytes(self, s.as_bytes())
    }
}

impl rust_hist::text::Out for Buffer {
    fn write_bytes(&mut self, bytes: &[u8]) -> core::fmt::Result {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}
