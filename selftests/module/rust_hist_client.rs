// SPDX-License-Identifier: GPL-2.0

//! A Rust module with a synthetic event of its own: the example of Documentation/rust-api.rst.
//!
//! It traces `client_wait` three times as it is loaded, and takes the event along as it goes.

#[path = "../../rust_hist/synth/client.rs"]
mod synth_event;

use kernel::prelude::*;
use synth_event::{
    EventFile,
    Field,
    SynthEvent, //
};

module! {
    type: Client,
    name: "rust_hist_client",
    authors: ["The rust_hist project"],
    description: "A synthetic event from Rust",
    license: "GPL",
}

/// The event goes when this does.
struct Client {
    _file: EventFile,
}

impl kernel::Module for Client {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let event = SynthEvent::new(
            module,
            c"client_wait",
            &[
                Field(c"char[16]", c"lock"),
                Field(c"char[]", c"why"),
                Field(c"u64", c"ns"),
                Field(c"s16", c"change"),
            ],
        )?;
        let file = event.file(None)?;
        // Not recorded, since the event is off.
        file.trace(&[c"early".into(), c"".into(), 0u64.into(), 0i16.into()])?;
        file.enable(true)?;
        for n in 1..=3u64 {
            let change = -5 * i16::try_from(n)?;
            file.trace(&[
                c"dentry".into(),
                c"contended".into(),
                (n * 1000).into(),
                change.into(),
            ])?;
        }
        // What does not fit the fields is refused here, before the kernel sees it.
        let refused = [
            file.trace(&[c"dentry".into()]),
            file.trace(&[1u64.into(), c"".into(), 0u64.into(), 0i16.into()]),
            file.trace(&[c"".into(), c"".into(), c"".into(), 0i16.into()]),
        ];
        if refused != [Err(EINVAL); 3] {
            return Err(ERANGE);
        }
        // While it is enabled it keeps the module loaded; from here on that is the user's choice.
        file.enable(false)?;
        Ok(Self { _file: file })
    }
}
