// SPDX-License-Identifier: GPL-2.0

//! The trigger language: text in, specification out.
//!
//! C counterpart: `event_hist_trigger_parse()` and `parse_hist_trigger_attrs()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! [`parse`] takes the text behind `hist:` apart without knowing the event: a [`HistSpec`] is
//! pieces of that text. What needs the event's fields is decided by
//! [`crate::program::Program::compile`]. The text is bytes; it need not be UTF-8.
//!
//! - `lang/spec.rs`: [`Command`] (the text and its carets), [`HistSpec`] and [`Modifier`];
//! - `lang/parse.rs`: the parameters, the filter, one field with its modifier;
//! - `lang/enable.rs`: the other commands, `enable_hist` and `disable_hist`;
//! - `lang/load.rs`: the list of triggers that the module is loaded with.
//!
//! Context: process.

mod enable;
pub(crate) mod expr;
mod load;
mod parse;
mod spec;

pub use self::{
    enable::{
        EnableSpec,
        UNLIMITED as ENABLE_UNLIMITED, //
    },
    load::{
        load_entries,
        LoadEntry, //
    },
    parse::parse,
    spec::{
        Command,
        HistSpec,
        Modifier,
        Update,
        Usage, //
    },
};
pub(crate) use self::{
    parse::{
        ON_CHANGE,
        ON_MATCH,
        ON_MAX, //
    },
    spec::CLOCK, //
};
