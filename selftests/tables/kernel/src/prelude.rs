// SPDX-License-Identifier: GPL-2.0

//! What a kernel file has by `use kernel::prelude::*`.

pub use crate::{
    alloc::{KBox, KVVec, KVec, GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    error::{code::*, Error, Result},
};
pub use core::pin::Pin;
pub use macros::vtable;
