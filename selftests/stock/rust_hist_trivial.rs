// SPDX-License-Identifier: GPL-2.0

//! Uses the kernel's Rust crates, and nothing of the tracing core.

use kernel::prelude::*;

module! {
    type: Trivial,
    name: "rust_hist_trivial",
    authors: ["rust_hist"],
    description: "Shows that a module in Rust loads into a kernel of a distribution",
    license: "GPL",
}

struct Trivial(KVec<u32>);

impl kernel::Module for Trivial {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let mut squares = KVec::new();
        for i in 0..5 {
            squares.push(i * i, GFP_KERNEL)?;
        }
        pr_info!("squares: {:?}\n", &*squares);
        Ok(Self(squares))
    }
}

impl Drop for Trivial {
    fn drop(&mut self) {
        pr_info!("forgets {} squares\n", self.0.len());
    }
}
