// SPDX-License-Identifier: MIT OR Apache-2.0

//! Parsers of the kernel's output to tables, and a writer of JSON.

pub mod json;
pub mod text;
