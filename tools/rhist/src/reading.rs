// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reading the files `hist`. What of them cannot be read is said.

use std::sync::Once;

use crate::error::Result;
use crate::model::Table;
use crate::output;
use crate::parse::text;

/// Whether rows that are not as the kernel prints them were spoken of. Tables are read again and again.
static UNREADABLE: Once = Once::new();

/// Whether rows were left out, as they are not as the kernel prints them; they were spoken of.
pub fn left_out() -> bool {
    UNREADABLE.is_completed()
}

/// Reads the tables of the file `hist` of this event, `system:event`.
pub fn tables(event: &str, file: &[u8]) -> Result<Vec<Table>> {
    let read = text::tables(event, file)?;
    if let Some(text) = read.left_out {
        UNREADABLE.call_once(|| {
            output::say(&format!(
                "rhist: such rows are left out: {text}\nrhist: ask for other keys by --by, or the module, which gives JSON"
            ));
        });
    }
    Ok(read.tables)
}
