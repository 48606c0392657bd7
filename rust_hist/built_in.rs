// SPDX-License-Identifier: GPL-2.0

//! The beginning of this code where it is built into the kernel: two steps, of which the first one is where C registers its
//! commands, as `trace_trigger=` and the boot configuration use them before there are file systems.
//!
//! C counterpart: `register_trigger_hist_cmd()` in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c)
//!
//! Context: process, without locks. During the first step no other task runs, and nothing can sleep.

use crate::{
    ffi::stack,
    Registered,
    DROP_IN, //
};
use kernel::{
    error::from_result,
    prelude::*,
    sync::SetOnce, //
};

/// The registrations, which stay while the kernel runs.
static REGISTERED: SetOnce<Pin<KBox<Registered>>> = SetOnce::new();

/// Registers the commands, the files of event directories and the type of synthetic events.
#[no_mangle]
extern "C" fn register_trigger_hist_cmd() -> c_int {
    from_result(|| {
        stack::learn();
        let registered = KBox::pin_init(Registered::new(&DROP_IN, 0), GFP_KERNEL)
            .inspect_err(|_| pr_err!("there are no hist triggers\n"))?;
        REGISTERED.populate(registered);
        Ok(0)
    })
}

/// Registers nothing: `register_trigger_hist_cmd()`, which the core calls next, registers these commands, too.
#[no_mangle]
extern "C" fn register_trigger_hist_enable_disable_cmds() -> c_int {
    0
}

/// Makes the file of synthetic events, and the triggers of the parameter.
#[no_mangle]
extern "C" fn event_hist_init() {
    let Some(registered) = REGISTERED.as_ref() else {
        return;
    };
    if registered.synth.create_file().is_err() {
        pr_err!("there is no room for the file of synthetic events\n");
    }
    registered.load();
}
