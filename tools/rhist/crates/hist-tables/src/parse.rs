// SPDX-License-Identifier: MIT OR Apache-2.0

//! From what the kernel prints to tables, and back to JSON.

pub mod json;
pub mod text;
