// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the `hist` files. A message tells about rows that cannot be read.

use std::sync::Once;

use crate::error::Result;
use crate::model::Table;
use crate::parse::text;

/// Set once a message about unreadable rows was printed, as tables are read again and again.
static UNREADABLE: Once = Once::new();

/// Returns whether unreadable rows were left out, about which a message was printed.
pub fn left_out() -> bool {
    UNREADABLE.is_completed()
}

/// Returns the tables in the file `hist` of an event, `system:event`.
pub fn tables(event: &str, file: &[u8]) -> Result<Vec<Table>> {
    let read = text::tables(event, file)?;
    if let Some(text) = read.left_out {
        UNREADABLE.call_once(|| {
            say!(
                "rhist: such rows are left out: {text}\nrhist: ask for other keys by --by, or the module, which gives JSON"
            );
        });
    }
    Ok(read.tables)
}
