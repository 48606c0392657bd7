// SPDX-License-Identifier: MIT OR Apache-2.0

//! Showing tables: as text, and live on a screen.

pub mod form;
pub mod heat;
pub mod lines;
pub mod map;
pub mod page;
pub mod table;
pub mod top;
