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
mod synth;

/// The pure rooms, each of them whole: the host crate tests what the module has no use for yet.
macro_rules! pure_rooms {
    ($($room:ident),+ $(,)?) => {
        $(
            #[allow(dead_code, unused_imports, reason = "the host crate uses all of it")]
            #[allow(unreachable_pub, reason = "the root of the module keeps its rooms private")]
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
    schema,
    sync,
    text,
    tracing_map,
}

use core::{
    borrow::Borrow,
    ffi::CStr, //
};
use ffi::{
    command::{
        self,
        Command, //
    },
    event_files::{
        self,
        Entry, //
    },
    readme, //
};
use hist_trigger::{
    enable::EnableTrigger,
    load,
    readme::README,
    show::HistFile,
    stats::StatsFile,
    storage,
    HistTrigger, //
};
use kernel::prelude::*;
use sync::Pair;

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
        hash_seed: u64 {
            default: 0,
            description: "What the hashes of keys begin with, for measurements; 0 draws a number at load",
        },
    },
}

/// What the module calls its things.
struct Names {
    /// The trigger, and the file that shows its table.
    hist: &'static CStr,
    enable: &'static CStr,
    disable: &'static CStr,
    stats: &'static CStr,
    #[cfg(rust_hist_debug)]
    debug: &'static CStr,
    synth: &'static synth::Names,
    /// What the tracing README lacks in a kernel without the C implementation.
    readme: Option<&'static CStr>,
}

/// Those of the C implementation, for a kernel without it.
static DROP_IN: Names = Names {
    hist: c"hist",
    enable: c"enable_hist",
    disable: c"disable_hist",
    stats: c"hist_stats",
    #[cfg(rust_hist_debug)]
    debug: c"hist_debug",
    // They are an option of their own.
    synth: if cfg!(CONFIG_SYNTH_EVENTS) {
        &synth::BESIDE
    } else {
        &synth::DROP_IN
    },
    readme: Some(README),
};

/// Beside the C implementation.
static BESIDE: Names = Names {
    hist: c"rhist",
    enable: c"enable_rhist",
    disable: c"disable_rhist",
    stats: c"rhist_stats",
    #[cfg(rust_hist_debug)]
    debug: c"rhist_debug",
    synth: &synth::BESIDE,
    readme: None,
};

impl Names {
    /// Chooses by the parameter, and else by what the kernel has.
    fn choose(parameter: u8) -> Result<&'static Self> {
        match parameter {
            0 if cfg!(CONFIG_HIST_TRIGGERS) => Ok(&BESIDE),
            1 if cfg!(CONFIG_HIST_TRIGGERS) => {
                pr_err!("names=1: the kernel has hist triggers of its own\n");
                Err(EBUSY)
            }
            0 | 1 => Ok(&DROP_IN),
            2 => Ok(&BESIDE),
            other => {
                pr_err!("names={}: it is 0, 1 or 2\n", other);
                Err(EINVAL)
            }
        }
    }
}

/// The value of a parameter, which the kernel crate gives by reference or by value, depending on the version.
fn value<T: Copy>(parameter: impl Borrow<T>) -> T {
    *parameter.borrow()
}

/// What is registered while the module is loaded.
///
/// Fields are dropped in the order in which they stand, so the commands, through which everything
/// begins, go first. Nothing of it is in use then: a trigger, a synthetic event and an open file pin
/// the module.
#[pin_data]
struct RustHist {
    #[pin]
    hist: command::Registration<HistTrigger>,
    #[pin]
    enable: command::Registration<EnableTrigger>,
    #[pin]
    disable: command::Registration<EnableTrigger>,
    #[pin]
    files: event_files::Registration<FILES>,
    // Its file takes those of the event directories out of the cache of names, once they are not served.
    #[pin]
    synth: synth::Registration,
    readme: Option<readme::Registration>,
}

/// How many files an event has.
const FILES: usize = 2 + cfg!(rust_hist_debug) as usize;

impl kernel::InPlaceModule for RustHist {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            if !Pair::supported() {
                pr_err!("the processor cannot exchange 16 bytes at once\n");
                return Err(ENODEV);
            }
            let names = Names::choose(value(module_parameters::names.value()))?;
            storage::seed_hashes(value(module_parameters::hash_seed.value()));
            Ok(Self::registered(names))
        })
    }
}

impl RustHist {
    fn registered(names: &'static Names) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // In this order the core lists them where there are no triggers, as it does those of C.
            enable <- Command::register(names.enable),
            disable <- Command::register(names.disable),
            hist <- Command::register(names.hist),
            // The file of the events may be open as soon as it is there, so this is the last step that
            // can fail.
            synth <- synth::register(names.synth),

            // From here on user space can open files and make triggers and events.
            files <- event_files::Registration::new([
                Entry::new::<HistFile>(names.hist),
                Entry::new::<StatsFile>(names.stats),
                #[cfg(rust_hist_debug)]
                Entry::new::<hist_trigger::debug::DebugFile>(names.debug),
            ]),
            readme: names.readme.map(readme::Registration::new),
            _: {
                synth.open();
                enable.open();
                disable.open();
                hist.open();
                pr_info!(
                    "trigger `{}`, files `{}`, `{}` and `{}`\n",
                    names.hist,
                    names.hist,
                    names.stats,
                    names.synth.file()
                );
                load::run(&load::Commands {
                    hist: &hist,
                    enable: [&enable, &disable],
                });
            },
        })
    }
}
