// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of addresses: in the kernel by `/proc/kallsyms`, in a program by its `maps`.

use std::fs;

/// The functions of the kernel, with their addresses in ascending order.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Returns the symbols of this kernel; none if this user may not see them.
    pub fn of_kernel() -> Self {
        Self::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let functions = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
            let name = words.next()?.to_owned();
            // A symbol for the beginning of a section is not a function.
            let is_code = is_code && !name.ends_with("_text_start");
            (is_code && address != 0).then_some((address, name))
        });
        let mut all: Vec<_> = functions.collect();
        all.sort_by_key(|&(address, _)| address);
        Self(all)
    }

    /// Returns the function with this address, and the offset in it; the address if none has it.
    pub fn name(&self, address: u64) -> String {
        let after = self.0.partition_point(|&(begin, _)| begin <= address);
        match self.0[..after].last() {
            Some((begin, name)) => format!("{name}+{:#x}", address - begin),
            None => format!("{address:#x}"),
        }
    }
}

/// Returns the file that is mapped at this address, by the text of `/proc/PID/maps`, and the offset in it.
pub fn in_maps(maps: &str, address: u64) -> Option<String> {
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (begin, end) = (hex(begin)?, hex(end)?);
        let offset = hex(words.nth(1)?)?;
        let path = words.nth(2)?;
        let file = path.rsplit('/').next()?;
        (begin..end)
            .contains(&address)
            .then(|| format!("{file}+{:#x}", address - begin + offset))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_names() {
        let text = "ffffffff81000100 T vfs_read\nffffffff81000200 t do_x\t[m]\nffffffff81000200 T __x_text_start\nffffffff81000150 D data\nx\n\
                    0000000000000000 T hidden\n";
        let all = Symbols::parse(text);
        assert_eq!(all.name(0xffff_ffff_8100_01ff), "vfs_read+0xff");
        assert_eq!(all.name(0xffff_ffff_8100_0200), "do_x+0x0");
        assert_eq!(all.name(16), "0x10");
        let maps =
            "55d0-55f0 r-xp 00001000 fe:00 12 /usr/bin/sh\n55f0-5600 rw-p 00000000 00:00 0\nx\n";
        assert_eq!(in_maps(maps, 0x55d8).as_deref(), Some("sh+0x1008"));
        assert_eq!(in_maps(maps, 0x55f8), None);
    }
}
