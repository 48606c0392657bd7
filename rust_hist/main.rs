// SPDX-License-Identifier: GPL-2.0

//! Event histograms: the `hist` trigger of the tracing core, as a module.
//!
//! C counterpart: [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! See `Documentation/` for the user guide and for the design.
//!
//! Rooms, and who may use whom: `hist_trigger` is glue and uses all; `ffi` names the C side and
//! knows nothing of histograms; the others are pure `core` Rust and are built on the host, too.

mod ffi;
mod hist_trigger;

/// The pure rooms, each of them whole: the host crate tests what the module has no use for yet.
macro_rules! pure_rooms {
    ($($room:ident),+ $(,)?) => {
        $(
            #[allow(dead_code, unused_imports, reason = "the host crate uses all of it")]
            mod $room;
        )+
    };
}

pure_rooms! {
    alloc,
    error,
    field,
    lang,
    limits,
    program,
    render,
    sync,
    tracing_map,
}

use core::{
    borrow::Borrow,
    ffi::CStr, //
};
use ffi::{
    command,
    event_files,
    readme, //
};
use hist_trigger::{
    readme::README,
    show::HistFile,
    stats::StatsFile,
    HistTrigger, //
};
use kernel::prelude::*;

module! {
    type: RustHist,
    name: "rust_hist",
    authors: ["The rust_hist project"],
    description: "Event histograms: the hist trigger in Rust",
    license: "GPL",
    params: {
        names: u8 {
            default: 0,
            description: "Names to register: 0 by the kernel's configuration, 1 hist, 2 rhist",
        },
    },
}

/// What the module calls its things.
struct Names {
    trigger: &'static CStr,
    hist: &'static CStr,
    stats: &'static CStr,
    /// What the tracing README lacks in a kernel without the C implementation.
    readme: Option<&'static CStr>,
}

/// Those of the C implementation, for a kernel without it.
static DROP_IN: Names = Names {
    trigger: c"hist",
    hist: c"hist",
    stats: c"hist_stats",
    readme: Some(README),
};

/// Beside the C implementation.
static BESIDE: Names = Names {
    trigger: c"rhist",
    hist: c"rhist",
    stats: c"rhist_stats",
    readme: None,
};

impl Names {
    /// Chooses by the parameter, and else by what the kernel has.
    ///
    /// The kernel crate gives the parameter by reference or by value, depending on the version.
    fn choose(parameter: impl Borrow<u8>) -> Result<&'static Self> {
        match parameter.borrow() {
            0 if cfg!(CONFIG_HIST_TRIGGERS) => Ok(&BESIDE),
            // The event directories have a file of that name already.
            1 if cfg!(CONFIG_HIST_TRIGGERS) => Err(EBUSY),
            0 | 1 => Ok(&DROP_IN),
            2 => Ok(&BESIDE),
            _ => Err(EINVAL),
        }
    }
}

/// What is registered while the module is loaded.
///
/// Fields are dropped in the order in which they stand, so the command, through which everything
/// begins, goes first. Nothing of it is in use then: a trigger and an open file pin the module.
struct RustHist {
    _command: command::Registration<HistTrigger>,
    _files: event_files::Registration,
    _readme: Option<readme::Registration>,
}

impl kernel::Module for RustHist {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let names = Names::choose(module_parameters::names.value())?;
        let readme = names.readme.map(readme::Registration::new).transpose()?;
        let files = event_files::Builder::new()?
            .add::<HistFile>(names.hist)?
            .add::<StatsFile>(names.stats)?;
        let files = event_files::Registration::new(files)?;
        // The command comes last: from here on user space can make triggers, and nothing may fail.
        let command = command::Registration::new(names.trigger, module)?;

        pr_info!(
            "trigger `{}`, files `{}` and `{}`\n",
            names.trigger,
            names.hist,
            names.stats
        );
        Ok(Self {
            _command: command,
            _files: files,
            _readme: readme,
        })
    }
}
