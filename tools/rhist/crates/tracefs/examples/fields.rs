// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints the fields of an event: `cargo run --example fields -- sched:sched_switch`.

use tracefs::{Format, Result, Tracefs};

fn main() -> Result<()> {
    let event = std::env::args()
        .nth(1)
        .unwrap_or("sched:sched_switch".into());
    for field in Format::of(&Tracefs::find(None)?, &event)?.fields {
        println!("{} {}", field.kind, field.name);
    }
    Ok(())
}
