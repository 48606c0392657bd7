// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prints a percentile of each row of a `hist` file: `cargo run --example percentiles < FILE`.

use std::error::Error;
use std::io::{stdin, Read};

use hist_tables::parse::text;
use hist_tables::quantile::{quantile, Percent};

fn main() -> Result<(), Box<dyn Error>> {
    let mut file = Vec::new();
    stdin().read_to_end(&mut file)?;
    let percent: Percent = "99".parse()?;
    for table in text::tables("an:event", &file)?.tables {
        for group in table.groups() {
            if let Some(bound) = quantile(&group.distribution, percent) {
                println!("{:?}: {}% are at most {bound:?}", group.keys, percent);
            }
        }
    }
    Ok(())
}
