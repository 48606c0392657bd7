// SPDX-License-Identifier: MIT OR Apache-2.0

//! The files of tracefs, Linux's interface to trace events: finding the mount, reading whole files, appending lines,
//! the kernel's reasons for refusing a line, and the fields of an event.
//!
//! ```no_run
//! use tracefs::{Format, Tracefs};
//!
//! # fn main() -> tracefs::Result<()> {
//! let tracefs = Tracefs::find(None)?;
//! for field in Format::of(&tracefs, "sched:sched_switch")?.fields {
//!     println!("{} {}", field.kind, field.name);
//! }
//! let trigger = tracefs.event_file("sched:sched_switch", "trigger");
//! // An error includes the entry of `error_log` for the line, with its caret.
//! tracefs.append(&trigger, "hist:keys=next_comm")?;
//! # Ok(())
//! # }
//! ```

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

mod error;
pub mod records;
pub mod symbols;

pub use error::{reason, Error, Result};

/// The usual mount points of tracefs, the newer one first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Returns the mount points of tracefs in this list of mounts, the usual ones first. The module's own view of it, on a
/// kernel whose tracefs has no place for the files of the module, comes before all.
fn mounted(mounts: &str) -> Vec<PathBuf> {
    let mut places: Vec<(bool, PathBuf)> = mounts
        .lines()
        .filter_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [_, place, kind @ ("tracefs" | "rhistfs"), ..] => {
                Some((kind == "tracefs", place.replace("\\040", " ").into()))
            }
            _ => None,
        })
        .collect();
    let rank = |place: &PathBuf| PLACES.iter().position(|usual| place == Path::new(usual));
    places.sort_by_key(|(is_tracefs, place)| (*is_tracefs, rank(place).unwrap_or(PLACES.len())));
    places.into_iter().map(|(_, place)| place).collect()
}

/// A directory of tracefs: the top or an instance.
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: PathBuf,
    teller: Option<fn(&str)>,
}

impl Tracefs {
    /// Returns the tracefs in the given directory, or else the mounted one.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        if let Some(root) = given {
            if !root.join("events").is_dir() {
                return Err(Error::new(format!(
                    "{} is no tracefs: it has no directory events",
                    root.display()
                )));
            }
            return Ok(Self::at(root));
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        // Below debugfs, tracefs is mounted when the directory is first accessed.
        let all = mounted(&mounts)
            .into_iter()
            .chain(PLACES.map(PathBuf::from));
        let mut denied = None;
        for place in all {
            match fs::read_dir(place.join("events")) {
                Ok(_) => return Ok(Self::at(&place)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    denied.get_or_insert(place);
                }
                Err(_) => {}
            }
        }
        Err(match denied {
            Some(place) => Error::new(format!(
                "{} may not be read by this user; run as root, or mount it with -o gid=GROUP,mode=750",
                place.display()
            )),
            None => Error::new(
                "tracefs is not mounted; mount -t tracefs nodev /sys/kernel/tracing, or name its directory by --tracefs",
            ),
        })
    }

    fn at(root: &Path) -> Self {
        Self {
            root: root.into(),
            teller: None,
        }
    }

    /// Returns this tracefs with `teller`, which is called before each write with an equivalent shell command.
    #[must_use]
    pub fn telling(self, teller: Option<fn(&str)>) -> Self {
        Self { teller, ..self }
    }

    /// Passes a shell command, which is equivalent to the next write, to the teller, if there is one.
    pub fn say(&self, line: &str) {
        if let Some(teller) = self.teller {
            teller(line);
        }
    }

    /// Returns the directory of this tracefs.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the instance with this name.
    pub fn instance(&self, name: &str) -> Self {
        Self {
            root: self.root.join("instances").join(name),
            teller: self.teller,
        }
    }

    /// Returns the path of a file in this directory.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// Returns the path of a file of an event, `system:event`.
    pub fn event_file(&self, event: &str, file: &str) -> PathBuf {
        self.root
            .join("events")
            .join(event.replace(':', "/"))
            .join(file)
    }

    /// Returns whether the event exists.
    pub fn has_event(&self, event: &str) -> bool {
        self.event_file(event, "").is_dir()
    }

    /// Returns the content of a file.
    pub fn read(&self, file: &str) -> Result<Vec<u8>> {
        read(&self.path(file))
    }

    /// Returns the content of a file as text, with invalid UTF-8 replaced.
    pub fn read_text(&self, file: &str) -> Result<String> {
        self.read(file)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Appends a line to a file by one write, so that the kernel takes it as one command. If the kernel refuses the
    /// line, the error includes the reason from `error_log`.
    pub fn append(&self, file: &Path, line: &str) -> Result<()> {
        let log = self.path("error_log");
        let before = last_entry(&log);
        self.say(&echo(line, &file.display().to_string()));
        let written = OpenOptions::new()
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        let Err(error) = written else { return Ok(()) };
        let file = file.strip_prefix(&self.root).unwrap_or(file).display();
        let reason = reason(&error);
        let mut text = format!("the kernel refused a line for {file}: {reason}\n  {line}");
        match last_entry(&log).filter(|entry| Some(entry) != before.as_ref()) {
            Some(entry) => text.push_str(&format!("\n{}", entry.trim_end())),
            None if error.kind() == io::ErrorKind::PermissionDenied => {
                text.push_str("\nrun as root")
            }
            None => {}
        }
        Err(Error::new(text))
    }
}

/// Returns the shell command that appends a line to a file.
pub fn echo(line: &str, file: &str) -> String {
    format!("echo '{}' >> {file}", line.replace('\'', "'\\''"))
}

/// Returns the content of the file at any path.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| Error::file("read", path, &error))
}

/// Returns the names of the files in a directory, sorted; none if it cannot be read.
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns the numbers by which events refer to disks, with the disks' names.
pub fn disks() -> Vec<(i128, String)> {
    let all = Path::new("/sys/class/block");
    let numbered = |disk: String| {
        let text = fs::read_to_string(all.join(&disk).join("dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        let number = major.parse::<i128>().ok()? << 20 | minor.parse::<i128>().ok()?;
        Some((number, disk))
    };
    names_in(all).into_iter().filter_map(numbered).collect()
}

/// Returns the numbers that system calls return for errors, with their meanings.
pub fn failures() -> Vec<(i128, String)> {
    let known = (1..=133).map(|number| {
        let text = reason(&io::Error::from_raw_os_error(number));
        (-i128::from(number), format!("{text} (-{number})"))
    });
    // For ERESTARTSYS and the like, a signal arrived, and programs get EINTR or do not see the error.
    let interrupted = [512, 513, 514, 516].map(|n: i128| (-n, format!("Interrupted (-{n})")));
    known.chain(interrupted).collect()
}

/// Returns the entry of `error_log` for the last refused command: the reason, the command and a caret.
fn last_entry(log: &Path) -> Option<String> {
    let log = String::from_utf8_lossy(&fs::read(log).ok()?).into_owned();
    let start = log.rfind("\n[").map_or(0, |at| at + 1);
    log[start..]
        .starts_with('[')
        .then(|| log[start..].to_owned())
}

/// The fields of an event, from its file `format`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Format {
    /// The number of the event, which begins its records.
    pub id: u16,
    /// The fields of the event: first those that all events have, then its own.
    pub fields: Vec<Field>,
    print: String,
}

/// A field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name of the field.
    pub name: String,
    /// The type of the field, in C's notation.
    pub kind: String,
    /// The kind of the field's value.
    pub holds: Holds,
    /// Where it begins in a record, in bytes.
    pub offset: usize,
    /// How many bytes it has there.
    pub size: usize,
}

/// The kind of a field's value, as far as triggers distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A number of this many bytes.
    Number {
        /// The size in bytes.
        size: u8,
        /// Whether the number can be negative.
        signed: bool,
    },
    /// A string in this many bytes.
    Chars(u16),
    /// A string of any length.
    Text,
    /// Any other type, which cannot be a key.
    Other,
}

impl Format {
    /// Returns the format of an event, `system:event`.
    pub fn of(tracefs: &Tracefs, event: &str) -> Result<Self> {
        if !tracefs.has_event(event) {
            return Err(Error::new(format!(
                "there is no event {event} in this kernel; 'ls {}' shows those that are there",
                tracefs.path("events").display()
            )));
        }
        let path = tracefs.event_file(event, "format");
        Ok(Self::parse(&String::from_utf8_lossy(&read(&path)?)))
    }

    /// Parses the text of the file `format`.
    pub fn parse(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| {
            let mut parts = line
                .trim()
                .strip_prefix("field:")?
                .split(';')
                .map(str::trim);
            let declaration = parts.next()?;
            let (mut offset, mut size) = (0, 0u16);
            let mut signed = false;
            for part in parts {
                match part.split_once(':') {
                    Some(("offset", n)) => offset = n.parse().unwrap_or_default(),
                    Some(("size", n)) => size = n.parse().unwrap_or_default(),
                    Some(("signed", n)) => signed = n == "1",
                    _ => {}
                }
            }
            let (kind, name) = declaration.rsplit_once(' ')?;
            let (name, array) = match name.split_once('[') {
                Some((name, _)) => (name, true),
                None => (name, kind.ends_with(']')),
            };
            let dynamic = kind.starts_with("__data_loc") || kind.starts_with("__rel_loc");
            let holds = match (kind.contains("char"), array || dynamic) {
                (true, true) if dynamic || size == 0 => Holds::Text,
                (true, true) => Holds::Chars(size),
                (true, false) if kind.ends_with('*') && kind.contains("const char") => Holds::Text,
                (_, false) if size <= 8 => Holds::Number {
                    size: size as u8,
                    signed,
                },
                _ => Holds::Other,
            };
            Some(Field {
                name: name.trim_start_matches('*').to_owned(),
                kind: kind.to_owned(),
                holds,
                offset,
                size: size.into(),
            })
        });
        let id = text.lines().find_map(|line| line.strip_prefix("ID: "));
        Self {
            id: id.and_then(|id| id.parse().ok()).unwrap_or_default(),
            fields: fields.collect(),
            print: text
                .split_once("print fmt:")
                .map_or_else(String::new, |(_, print)| print.to_owned()),
        }
    }

    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the names that the event prints for a field's numbers.
    pub fn names(&self, field: &str) -> Vec<(i128, String)> {
        let start = format!("__print_symbolic(REC->{field},");
        let Some(at) = self.print.find(&start) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        let mut rest = self.print[at + start.len()..].trim_start();
        while let Some(pair) = rest.strip_prefix('{') {
            let Some((pair, after)) = pair.split_once('}') else {
                break;
            };
            if let Some((number, name)) = pair.split_once(',') {
                let number = number.trim();
                let parsed = match number.strip_prefix("0x") {
                    Some(hex) => i128::from_str_radix(hex, 16),
                    None => number.parse(),
                };
                if let Ok(number) = parsed {
                    names.push((number, name.trim().trim_matches('"').to_owned()));
                }
            }
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOFTIRQ: &str = "name: softirq_entry\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:void * function;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:u8 mac[6];\toffset:8;\tsize:6;\tsigned:0;\n\nprint fmt: \"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 0x1, \"TIMER\" })\n";

    #[test]
    fn formats_are_read() {
        let format = Format::parse(SOFTIRQ);
        let holds = |name: &str| format.field(name).map(|field| field.holds);
        let number = |size, signed| Some(Holds::Number { size, signed });
        assert_eq!(holds("common_pid"), number(4, true));
        assert_eq!(holds("vec"), number(4, false));
        assert_eq!(holds("function"), number(8, false));
        assert_eq!(holds("comm"), Some(Holds::Chars(16)));
        assert_eq!(holds("name"), Some(Holds::Text));
        assert_eq!(holds("mac"), Some(Holds::Other));
        assert_eq!(holds("nothing"), None);
        let place = |name: &str| format.field(name).map(|field| (field.offset, field.size));
        assert_eq!((format.id, place("comm")), (1, Some((12, 16))));
        assert_eq!(format.names("vec"), [(0, "HI".into()), (1, "TIMER".into())]);
        assert_eq!(format.names("comm"), []);
    }

    #[test]
    fn what_is_mounted_is_looked_at_first() {
        let mounts = "proc /proc proc rw 0 0\ntracefs /mnt/a\\040b tracefs rw 0 0\n\
                      tracefs /sys/kernel/debug/tracing tracefs rw 0 0\ntracefs /sys/kernel/tracing tracefs rw 0 0\n\
                      none /mnt/view rhistfs rw 0 0\n";
        let places = [
            "/mnt/view",
            "/sys/kernel/tracing",
            "/sys/kernel/debug/tracing",
            "/mnt/a b",
        ];
        assert_eq!(mounted(mounts), places.map(PathBuf::from));
        assert_eq!(mounted(""), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_last_error_is_found() {
        let dir = std::env::temp_dir().join(format!("rhist-log-{}", std::process::id()));
        fs::write(&dir, "[ 1.0] hist: error: A\n  Command: a\n           ^\n[ 2.0] hist: error: B\n  Command: b\n           ^\n").unwrap();
        assert_eq!(
            last_entry(&dir).unwrap(),
            "[ 2.0] hist: error: B\n  Command: b\n           ^\n"
        );
        fs::write(&dir, "# cleared\n").unwrap();
        assert_eq!(last_entry(&dir), None);
        fs::remove_file(&dir).unwrap();
    }
}
