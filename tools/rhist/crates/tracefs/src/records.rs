// SPDX-License-Identifier: MIT OR Apache-2.0

//! Records of events as the kernel keeps them: the pages of `per_cpu/cpu*/trace_pipe_raw`.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::{read, Error, Field, Holds, Result, Tracefs};

/// The largest page that the kernel hands out unless somebody asks for larger ones.
const PAGE: usize = 64 << 10;
/// The bytes of the head of a page: a time stamp, and the number of bytes that follow.
const HEAD: usize = 16;
/// The bits of a time stamp that an absolute time in a page has; the others are those of the page's time.
const STAMP: u64 = (1 << 59) - 1;
/// `O_NONBLOCK`: reading a file without records ends instead of waiting for some.
const NONBLOCK: i32 = 0o4000;

/// A record of an event, as it is in the buffer of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The time of the record, by the clock of its instance.
    pub time: u64,
    /// The CPU that wrote the record.
    pub cpu: u32,
    data: Vec<u8>,
}

impl Record {
    fn bytes<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.data.get(offset..offset + N)?.try_into().ok()
    }

    /// Returns the number of the record's event: see [`crate::Format::id`].
    pub fn event(&self) -> u16 {
        self.bytes(0).map_or(0, u16::from_ne_bytes)
    }

    /// Returns the number of the task that wrote the record.
    pub fn pid(&self) -> i32 {
        self.bytes(4).map_or(0, i32::from_ne_bytes)
    }

    /// Returns the bytes of a field. A dynamic field has its bytes at another place of the record, and none if the
    /// kernel could not read them.
    fn field(&self, field: &Field) -> Option<&[u8]> {
        let dynamic = field.kind.contains("_loc");
        if !dynamic {
            return self.data.get(field.offset..field.offset + field.size);
        }
        let place = u32::from_ne_bytes(self.bytes(field.offset)?);
        let (mut offset, length) = (place as usize & 0xffff, place as usize >> 16);
        if field.kind.contains("__rel_loc") {
            offset += field.offset + field.size;
        }
        let bytes = self.data.get(offset..offset + length)?;
        (length > 0).then_some(bytes)
    }

    /// Returns the number in a field; `None` if it has none.
    pub fn number(&self, field: &Field) -> Option<i128> {
        let Holds::Number { signed, .. } = field.holds else {
            return None;
        };
        let bytes = self.field(field)?;
        let mut all = [0; 8];
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let unused = 64_usize.checked_sub(8 * bytes.len())?;
        let number = u64::from_le_bytes(all).checked_shl(unused as u32)?;
        Some(match signed {
            true => i128::from((number as i64) >> unused),
            false => i128::from(number >> unused),
        })
    }

    /// Returns the text in a field up to a NUL, each byte as a character.
    pub fn text(&self, field: &Field) -> Option<String> {
        let bytes = self.field(field)?;
        let text = bytes.split(|&byte| byte == 0).next()?;
        Some(text.iter().map(|&byte| char::from(byte)).collect())
    }

    /// Returns the addresses in a field, up to the first 0. A field that is not dynamic extends to the end of the
    /// record; the number of addresses in its format is ignored.
    pub fn addresses(&self, field: &Field) -> Vec<u64> {
        let bytes = match field.kind.contains("_loc") {
            true => self.field(field),
            false => self.data.get(field.offset..),
        };
        let words = bytes.unwrap_or_default().chunks_exact(8);
        let all = words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        all.take_while(|&address| address != 0).collect()
    }
}

/// Adds the records of a page to `records`. Returns whether the page is well-formed.
fn page(cpu: u32, bytes: &[u8], records: &mut Vec<Record>) -> bool {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let Some((begin, commit)) = bytes.get(..HEAD).map(|head| head.split_at(8)) else {
        return false;
    };
    let begin = u64::from_ne_bytes(begin.try_into().unwrap_or_default());
    let commit = u64::from_ne_bytes(commit.try_into().unwrap_or_default());
    // The two highest bits say that records before the page were lost, which [`Buffers::lost`] counts.
    let end = HEAD + (commit & 0x3fff_ffff) as usize;
    let (mut at, mut time) = (HEAD, begin);
    while at < end {
        let (Some(head), Some(next)) = (word(at), word(at + 4).or(Some(0))) else {
            return false;
        };
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        let (data, length) = match kind {
            // The rest of the page is empty.
            29 if delta == 0 => return true,
            29 => (None, next as usize),
            30 => {
                time = time.wrapping_add(delta + (u64::from(next) << 27));
                (None, 4)
            }
            31 => {
                time = (delta + (u64::from(next) << 27)) & STAMP | begin & !STAMP;
                (None, 4)
            }
            0 => (Some(at + 8), next as usize),
            words => (Some(at + 4), words as usize * 4),
        };
        at += 4 + length;
        if at > end || length == 0 {
            return false;
        }
        if let Some(data) = data {
            time = time.wrapping_add(delta);
            let Some(data) = bytes.get(data..at) else {
                return false;
            };
            records.push(Record {
                time,
                cpu,
                data: data.to_vec(),
            });
        }
    }
    true
}

/// The buffers of an instance, one for each CPU; each read takes all records that they have.
#[derive(Debug)]
pub struct Buffers {
    instance: Tracefs,
    cpus: Vec<(u32, File, PathBuf)>,
    page: Vec<u8>,
    /// The number of malformed pages.
    pub damaged: u64,
}

impl Buffers {
    /// Opens the buffers of an instance.
    pub fn open(instance: &Tracefs) -> Result<Self> {
        let root = instance.path("per_cpu");
        let entries = fs::read_dir(&root).map_err(|error| Error::file("read", &root, &error))?;
        let mut cpus = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            let Some(cpu) = number.and_then(|number| number.parse().ok()) else {
                continue;
            };
            let path = entry.path().join("trace_pipe_raw");
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(NONBLOCK)
                .open(&path)
                .map_err(|error| Error::file("open", &path, &error))?;
            cpus.push((cpu, file, entry.path()));
        }
        cpus.sort_by_key(|&(cpu, ..)| cpu);
        Ok(Self {
            instance: instance.clone(),
            cpus,
            page: vec![0; PAGE],
            damaged: 0,
        })
    }

    /// Returns the records since the last call in the order of time, and the number of bytes of the CPU with most of
    /// them.
    pub fn read(&mut self) -> Result<(Vec<Record>, usize)> {
        let mut records = Vec::new();
        let mut most = 0;
        for (cpu, file, path) in &mut self.cpus {
            let mut all = 0;
            loop {
                match file.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => {
                        all += length;
                        if !page(*cpu, &self.page[..length], &mut records) {
                            self.damaged += 1;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(Error::file("read", path, &error)),
                }
            }
            most = most.max(all);
        }
        records.sort_by_key(|record| record.time);
        Ok((records, most))
    }

    /// Returns how many records the buffers had no room for, by `per_cpu/cpu*/stats`.
    pub fn lost(&self) -> Result<u64> {
        let mut lost = 0;
        for (_, _, path) in &self.cpus {
            let stats = read(&path.join("stats"))?;
            for line in String::from_utf8_lossy(&stats).lines() {
                let of = ["overrun", "commit overrun", "dropped events"];
                if let Some((_, number)) =
                    line.split_once(": ").filter(|(name, _)| of.contains(name))
                {
                    lost += number.parse::<u64>().unwrap_or_default();
                }
            }
        }
        Ok(lost)
    }

    /// Sets the size of each buffer.
    pub fn resize(&self, kib: u64) -> Result<()> {
        let file = self.instance.path("buffer_size_kb");
        fs::write(&file, kib.to_string()).map_err(|error| Error::file("write", &file, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    /// Returns the bytes of a record from the words of its head and its content.
    fn record(head: &[u32], bytes: &[u8]) -> Vec<u8> {
        let mut all: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
        all.extend(bytes);
        all
    }

    fn whole(records: &[Vec<u8>]) -> Vec<u8> {
        let all = records.concat();
        let mut page = 1000_u64.to_ne_bytes().to_vec();
        page.extend((all.len() as u64 | 1 << 31).to_ne_bytes());
        page.extend(all);
        page
    }

    /// Returns a record of the event 7 by the task 42, with a number, a name, and a dynamic text.
    fn bytes() -> Vec<u8> {
        let mut all = vec![7, 0, 0, 0, 42, 0, 0, 0];
        all.extend((-2_i32).to_ne_bytes());
        all.extend(b"sh\0\0");
        all.extend((4_u32 << 16 | 20).to_ne_bytes());
        all.extend(b"a\xff\n\0");
        all
    }

    const FORMAT: &str = "name: x\nID: 7\nformat:\n\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n\
                          \tfield:char comm[4];\toffset:12;\tsize:4;\tsigned:0;\n\
                          \tfield:__data_loc char[] path;\toffset:16;\tsize:4;\tsigned:0;\n\
                          \tfield:unsigned int m;\toffset:8;\tsize:4;\tsigned:0;\n\
                          \tfield:unsigned long caller[];\toffset:8;\tsize:0;\tsigned:0;\n";

    #[test]
    fn pages_have_records() {
        let bytes = bytes();
        let words = bytes.len() as u32 / 4;
        let all = whole(&[
            record(&[5 << 5 | words], &bytes),
            // Two records that only change the time, one with its length in a word, one that was discarded.
            record(&[3 << 5 | 30, 1], &[]),
            record(&[1 << 5, bytes.len() as u32 + 4], &bytes),
            record(&[1 << 5 | 29, 8], &[0; 4]),
            record(&[9 << 5 | 31, 2], &[]),
            record(&[words], &bytes),
            record(&[29, 0], &[]),
        ]);
        let mut records = Vec::new();
        assert!(page(3, &all, &mut records));
        let times: Vec<u64> = records.iter().map(|record| record.time).collect();
        assert_eq!(times, [1005, 1005 + 3 + (1 << 27) + 1, (2 << 27) + 9]);
        let format = Format::parse(FORMAT);
        let field = |name: &str| format.field(name).unwrap();
        for record in &records {
            assert_eq!(
                (record.cpu, record.event(), record.pid()),
                (3, format.id, 42)
            );
            assert_eq!(record.number(field("n")), Some(-2));
            assert_eq!(record.number(field("m")), Some(0xffff_fffe));
            assert_eq!(record.text(field("comm")).as_deref(), Some("sh"));
            assert_eq!(record.text(field("path")).as_deref(), Some("a\u{ff}\n"));
            assert_eq!(record.number(field("path")), None);
            assert_eq!(record.addresses(field("caller")).len(), 2);
        }
    }

    /// Reading a page ends for any content, and reports damage.
    #[test]
    fn damaged_pages_are_noticed() {
        let bytes = bytes();
        let good = whole(&[record(&[(5 << 5) | (bytes.len() as u32 / 4)], &bytes)]);
        let read = |bytes: &[u8]| page(0, bytes, &mut Vec::new());
        assert!(read(&good));
        for length in 0..good.len() {
            assert!(!read(&good[..length]), "{length}");
        }
        for wrong in [
            record(&[5 << 5, 0], &[0; 8]),
            record(&[5 << 5, 400], &[0; 8]),
            record(&[(5 << 5) | 29, u32::MAX], &[]),
        ] {
            assert!(!read(&whole(std::slice::from_ref(&wrong))), "{wrong:?}");
        }
        let mut state = 1_u32;
        for _ in 0..20_000 {
            let mut damaged = good.clone();
            for _ in 0..4 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (state >> 8) as usize % damaged.len();
                damaged[at] = (state >> 24) as u8;
            }
            let mut records = Vec::new();
            page(0, &damaged, &mut records);
            let format = Format::parse(FORMAT);
            for record in &records {
                for field in &format.fields {
                    record.number(field);
                    record.text(field);
                    record.addresses(field);
                }
            }
        }
    }
}
