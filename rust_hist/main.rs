// SPDX-License-Identifier: GPL-2.0

//! Event histograms: the `hist` trigger of the tracing core, as a module.
//!
//! C counterpart: [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! See `Documentation/` for the user guide and for the design.
//!
//! Layers: `hist_trigger` and `synth` are glue and use all others; `ffi` has the C structures and knows nothing about
//! histograms; the other layers are pure `core` Rust and are also built on the host.

#[cfg(rust_hist_built_in)]
mod built_in;
mod ffi;
mod hist_trigger;
#[cfg_attr(rust_hist_stock, path = "synth/kernel.rs")]
mod synth;

/// Declares the pure layers. The host crate has the same files, and also tests functions that the module does not use.
macro_rules! pure_layers {
    ($($layer:ident),+ $(,)?) => {
        $(
            #[allow(dead_code, unused_imports, reason = "the host crate uses all of it")]
            #[allow(unreachable_pub, reason = "the root of the module keeps its layers private")]
            mod $layer;
        )+
    };
}

pure_layers! {
    alloc,
    bucket,
    error,
    expiry,
    field,
    lang,
    limits,
    overhead,
    program,
    rate,
    render,
    schema,
    stat,
    sync,
    text,
    tracing_map,
}

#[cfg(not(rust_hist_built_in))]
use core::borrow::Borrow;
use core::ffi::CStr;
use ffi::{
    command::{
        self,
        Command, //
    },
    event_files::{
        self,
        FileEntry, //
    }, //
};
#[cfg(not(rust_hist_built_in))]
use ffi::{
    readme,
    trace_core, //
};
#[cfg(not(rust_hist_built_in))]
use hist_trigger::readme::README;
use hist_trigger::{
    enable::EnableTrigger,
    growth::Growth,
    json::JsonFile,
    load,
    pipe::PipeFile,
    show::HistFile,
    stats::StatsFile,
    storage,
    HistTrigger, //
};
use kernel::prelude::*;
use sync::Pair;

#[cfg(not(rust_hist_built_in))]
module! {
    type: RustHist,
    name: "rust_hist",
    authors: ["The rust_hist project"],
    description: "Event histograms: the hist trigger in Rust",
    license: "GPL",
    params: {
        names: u8 {
            default: 0,
            description: "ModuleNames to register: 0 by the kernel's configuration, 1 hist, 2 rhist",
        },
        hash_seed: u64 {
            default: 0,
            description: "Seed of the hashes of keys, for measurements; 0 chooses a random number at load",
        },
    },
}

/// What `module!` defines for messages.
#[cfg(rust_hist_built_in)]
const __LOG_PREFIX: &[u8] = b"rust_hist\0";

/// The names of the commands and files that the module registers.
struct ModuleNames {
    /// The name of the trigger, and of the file that shows its table.
    hist: &'static CStr,
    enable: &'static CStr,
    disable: &'static CStr,
    json: &'static CStr,
    pipe: &'static CStr,
    stats: &'static CStr,
    #[cfg(rust_hist_debug)]
    debug: &'static CStr,
    synth: &'static synth::SynthNames,
    /// The lines that the README of tracefs lacks in a kernel without the C implementation.
    #[cfg(not(rust_hist_built_in))]
    readme: Option<&'static CStr>,
}

/// The names of the C implementation, for a kernel without it.
static DROP_IN: ModuleNames = ModuleNames {
    hist: c"hist",
    enable: c"enable_hist",
    disable: c"disable_hist",
    json: c"hist_json",
    pipe: c"hist_pipe",
    stats: c"hist_stats",
    #[cfg(rust_hist_debug)]
    debug: c"hist_debug",
    // The kernel may have C's synthetic events without its hist triggers, as a separate option.
    synth: if cfg!(rust_hist_synth_api) {
        &synth::DROP_IN
    } else {
        &synth::BESIDE
    },
    #[cfg(not(rust_hist_built_in))]
    readme: Some(README),
};

/// The names for a kernel that has the C implementation.
#[cfg(not(rust_hist_built_in))]
static BESIDE: ModuleNames = ModuleNames {
    hist: c"rhist",
    enable: c"enable_rhist",
    disable: c"disable_rhist",
    json: c"rhist_json",
    pipe: c"rhist_pipe",
    stats: c"rhist_stats",
    #[cfg(rust_hist_debug)]
    debug: c"rhist_debug",
    synth: &synth::BESIDE,
    readme: None,
};

#[cfg(not(rust_hist_built_in))]
impl ModuleNames {
    /// Returns the names chosen by the parameter `names`; 0 chooses by the kernel's configuration.
    ///
    /// # Errors
    ///
    /// `EBUSY` for the names of the C implementation if the kernel has it, `EINVAL` for other numbers.
    fn choose(parameter: u8) -> Result<&'static Self> {
        match parameter {
            0 if trace_core::HAS_HIST => Ok(&BESIDE),
            1 if trace_core::HAS_HIST => {
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

/// Returns the value of a parameter, which depending on its version the kernel crate returns by reference or by value.
#[cfg(not(rust_hist_built_in))]
fn value<T: Copy>(parameter: impl Borrow<T>) -> T {
    *parameter.borrow()
}

/// All registrations of commands, files and types.
///
/// Fields are dropped in their order, so the commands, without which nothing else is used, go first. Nothing is in use
/// then: a trigger, a synthetic event and an open file pin the module.
#[pin_data]
struct Registered {
    #[pin]
    hist: command::Registration<HistTrigger>,
    #[pin]
    enable: command::Registration<EnableTrigger>,
    #[pin]
    disable: command::Registration<EnableTrigger>,
    // Dropped after the commands: a command that fails because the module goes may have reserved room in the list.
    growth: Growth,
    #[pin]
    files: event_files::Registration<FILES>,
    // Dropped after `files`: its removal drops the dentries of the event directories' files, no longer served then.
    #[pin]
    synth: synth::Registration,
}

/// The number of files of an event.
const FILES: usize = 4 + cfg!(rust_hist_debug) as usize;

impl Registered {
    /// Registers all.
    fn new(names: &'static ModuleNames, hash_seed: u64) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            if !Pair::supported() {
                pr_err!("the processor cannot exchange 16 bytes at once\n");
                return Err(ENODEV);
            }
            storage::seed_hashes(hash_seed);
            Ok(Self::of(names))
        })
    }

    fn of(names: &'static ModuleNames) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            growth: Growth::new(),
            // The core lists commands without triggers in this order, as it does C's.
            enable <- Command::register(names.enable),
            disable <- Command::register(names.disable),
            hist <- Command::register(names.hist),
            // The file of synthetic events can be opened as soon as it exists, so this is the last step that can fail.
            synth <- synth::register(names.synth),

            // From here on user space can open files and create triggers and events.
            files <- event_files::Registration::new([
                FileEntry::new::<HistFile>(names.hist),
                FileEntry::new::<JsonFile>(names.json),
                FileEntry::new::<PipeFile>(names.pipe),
                FileEntry::new::<StatsFile>(names.stats),
                #[cfg(rust_hist_debug)]
                FileEntry::new::<hist_trigger::debug::DebugFile>(names.debug),
            ]),
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
                    names.synth.file
                );
            },
        })
    }

    /// Makes the triggers of the parameter.
    fn load(&self) {
        load::run(&self.hist, [&self.enable, &self.disable]);
    }
}

/// The module while it is loaded.
#[cfg(not(rust_hist_built_in))]
#[pin_data]
struct RustHist {
    #[pin]
    registered: Registered,
    readme: Option<readme::Registration>,
}

#[cfg(not(rust_hist_built_in))]
impl kernel::InPlaceModule for RustHist {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            let names = ModuleNames::choose(value(module_parameters::names.value()))?;
            Ok(try_pin_init!(Self {
                registered <- Registered::new(names, value(module_parameters::hash_seed.value())),
                readme: names.readme.map(readme::Registration::new),
                _: {
                    registered.load();
                },
            }))
        })
    }
}
