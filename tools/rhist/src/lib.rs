// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist`: answers questions by the kernel's event histograms.
//!
//! A question ([`question`]), from a [`recipe`] or typed by the user, becomes lines that a [`backend`] understands. A
//! [`session`] writes them to [`tracefs`] and removes their objects again. The output becomes tables ([`parse`],
//! [`model`]), which are shown ([`view`]), recorded ([`record`]), drawn ([`plot`]), compared ([`diff`]) and exported
//! ([`export`]).

#[macro_use]
pub mod error;
#[macro_use]
pub mod output;

pub mod ask;
pub mod backend;
pub mod cli;
pub mod diff;
pub mod doctor;
pub mod examples;
pub mod explain;
pub mod export;
pub mod look;
pub mod options;
pub mod plot;
pub mod question;
pub mod questions;
pub mod reading;
pub mod recipe;
pub mod record;
pub mod session;
pub mod stop;
pub mod view;
pub mod whose;
pub mod why;

pub use ::tracefs;
pub use hist_tables::{grid, model, parse, quantile, units};

/// The version of the project, which the module has as well.
pub const VERSION: &str = include_str!("../../../VERSION").trim_ascii();

#[cfg(test)]
#[path = "../crates/hist-tables/src/testing.rs"]
mod testing;
