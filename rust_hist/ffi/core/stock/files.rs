// SPDX-License-Identifier: GPL-2.0

//! The files of the view that tracefs has, too: `trigger`, `enable`, `error_log`, `README` and `show_event_triggers`.
//! Reading one shows the text of tracefs and of the module; writing acts on the one or the other.
//!
//! C counterparts: `event_trigger_fops` in
//! [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c), `tracing_err_log_fops` and
//! `tracing_readme_fops` in [`kernel/trace/trace.c`](srctree/kernel/trace/trace.c)
//!
//! While such a file is open, the file of tracefs is open, too, with the credentials of the user. The text to read is
//! copied when the file is opened.

use super::{
    super::{
        event::c_str,
        guard::{
            EventMutex,
            EventMutexHeld, //
        },
        text::TextBuf, //
    },
    bindings,
    commands,
    events_of,
    log,
    sweep_now,
    view::{
        event_of,
        tracing_open_file_tr,
        tracing_release_file_tr,
        Lower,
        Spot,
        ViewPath, //
    },
    OwnFile, //
};
use crate::{
    sync::{
        Acquire,
        Atomic,
        Release, //
    },
    text::{
        lex,
        Out,
        Span, //
    }, //
};
use core::{
    ffi::CStr,
    ptr::null_mut, //
};
use kernel::{
    bindings as base,
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    types::ForeignOwnable, //
};

/// The text that follows the kernel's `README`, or null.
static README_TEXT: Atomic<*mut c_char> = Atomic::new(null_mut());

/// Makes `README` of the view end with `text`; null takes the text away.
///
/// # Safety
///
/// The string must stay until the next call.
pub(in super::super) unsafe fn tracing_readme_append(text: *const c_char) {
    // ORDERING: pairs with the load in `open_readme`.
    README_TEXT.store(text.cast_mut(), Release);
}

pub(super) const TRIGGER: &base::file_operations = &base::file_operations {
    open: Some(open_trigger),
    read: Some(read_trigger),
    write: Some(write_trigger),
    release: Some(release_trigger),
    ..FILE
};

pub(super) const ENABLE: &base::file_operations = &base::file_operations {
    open: Some(open_enable),
    read: Some(read_enable),
    write: Some(write_enable),
    release: Some(release),
    ..FILE
};

pub(super) const ERROR_LOG: &base::file_operations = &base::file_operations {
    open: Some(open_log),
    write: Some(write_log),
    release: Some(release),
    ..FILE
};

pub(super) const ALL_TRIGGERS: &base::file_operations = &base::file_operations {
    open: Some(open_all_triggers),
    release: Some(release),
    ..FILE
};

pub(super) const README: &base::file_operations = &base::file_operations {
    open: Some(open_readme),
    read: Some(read_readme),
    release: Some(release),
    ..FILE
};

const FILE: base::file_operations = base::file_operations {
    owner: super::this_module(),
    read: Some(read),
    llseek: Some(base::generic_file_llseek),
    ..pin_init::zeroed()
};

/// The state of an open file of the view.
struct OpenViewFile {
    /// The open file of tracefs.
    lower: *mut base::file,
    /// The text to read: of `README` the part of the module, else all of it.
    text: TextBuf,
}

/// The most bytes that are read of a file of tracefs.
const LOWER_MAX: usize = 1 << 20;

impl OpenViewFile {
    /// Opens the file of tracefs that `file` stands for, whose path this is.
    ///
    /// # Safety
    ///
    /// `file` must be being opened.
    unsafe fn new(file: *mut base::file, path: &CStr) -> Result<KBox<Self>> {
        // SAFETY: it has no precondition.
        to_result(unsafe { base::security_locked_down(base::lockdown_reason_LOCKDOWN_TRACEFS) })?;
        let mut opened = KBox::new(
            Self {
                lower: null_mut(),
                text: TextBuf::new(),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: by the contract.
        opened.lower = unsafe { Lower::find(path)?.open(file, (*file).f_flags) }?;
        Ok(opened)
    }

    /// Returns the state of `file`.
    ///
    /// # Safety
    ///
    /// The file must be open.
    unsafe fn of<'a>(file: *mut base::file) -> &'a Self {
        // SAFETY: by the contract, `open` has put it there.
        unsafe { KBox::<Self>::borrow((*file).private_data) }
    }

    /// Returns the whole text of the file of tracefs, which has to be a `seq_file`.
    fn lower_text(&self) -> Result<TextBuf> {
        let mut text = TextBuf::new();
        let mut room = KVec::from_elem(0u8, kernel::page::PAGE_SIZE, GFP_KERNEL)?;
        let mut at = 0;
        while text.as_bytes().len() < LOWER_MAX {
            // SAFETY: the file is open, and the room has this size.
            let got = unsafe {
                bindings::hist_stock_read(
                    self.lower,
                    room.as_mut_ptr().cast(),
                    room.len(),
                    &raw mut at,
                )
            };
            let got = to_result(got as c_int).map(|()| got.unsigned_abs())?;
            match room.get(..got) {
                Some(bytes) if got > 0 => text.write_bytes(bytes).map_err(|_| ENOMEM)?,
                _ => break,
            }
        }
        Ok(text)
    }
}

impl Drop for OpenViewFile {
    fn drop(&mut self) {
        if !self.lower.is_null() {
            // SAFETY: `new` has opened the file, and this is its only release.
            unsafe { base::fput(self.lower) };
        }
    }
}

/// Opens a file of the view, with the text that `fill` stores in its state.
///
/// # Safety
///
/// The file must be being opened.
unsafe fn open(
    file: *mut base::file,
    fill: impl FnOnce(&mut OpenViewFile, &Spot<'_>) -> Result,
) -> c_int {
    from_result(|| {
        // SAFETY: by the contract.
        let path = unsafe { ViewPath::of_file(file) }?;
        // SAFETY: by the contract.
        let mut opened = unsafe { OpenViewFile::new(file, path.text()) }?;
        fill(&mut opened, &path.spot())?;
        // SAFETY: by the contract.
        unsafe { (*file).private_data = opened.into_foreign() };
        Ok(0)
    })
}

/// Whether a file is open for what `bit` says: 1 to read, 2 to write.
///
/// # Safety
///
/// The file must be open.
unsafe fn is_open_for(file: *mut base::file, bit: u32) -> bool {
    // SAFETY: by the contract.
    let mode = unsafe { (*file).f_mode };
    u32::from_ne_bytes(mode.to_ne_bytes()) & bit != 0
}

const READ: u32 = 1;
const WRITE: u32 = 2;

/// Whether a file is being opened to be emptied.
///
/// # Safety
///
/// The file must be being opened.
unsafe fn truncates(file: *mut base::file) -> bool {
    // SAFETY: by the contract.
    unsafe { is_open_for(file, WRITE) && (*file).f_flags & base::O_TRUNC != 0 }
}

/// # Safety
///
/// For the VFS, with an open file that shows its text.
unsafe extern "C" fn read(
    file: *mut base::file,
    to: *mut c_char,
    size: usize,
    at: *mut base::loff_t,
) -> isize {
    // SAFETY: the file is open, and the rest are arguments of a read.
    unsafe { shown(OpenViewFile::of(file).text.as_bytes(), to, size, at) }
}

/// Copies a text to a reader.
///
/// # Safety
///
/// The arguments beside the text must be those of a read.
unsafe fn shown(text: &[u8], to: *mut c_char, size: usize, at: *mut base::loff_t) -> isize {
    // SAFETY: the text has this length; the rest is in the contract.
    unsafe { base::simple_read_from_buffer(to.cast(), size, at, text.as_ptr().cast(), text.len()) }
}

/// # Safety
///
/// For the VFS, with a file that is closed by its last user.
unsafe extern "C" fn release(_inode: *mut base::inode, file: *mut base::file) -> c_int {
    // SAFETY: `open` has put it there, and nobody else uses the file any more.
    drop(unsafe { KBox::<OpenViewFile>::from_foreign((*file).private_data) });
    0
}

/// # Safety
///
/// For the VFS, with a file that is being opened.
unsafe extern "C" fn open_trigger(inode: *mut base::inode, file: *mut base::file) -> c_int {
    let fill = |opened: &mut OpenViewFile, _: &Spot<'_>| {
        // SAFETY: by the contract.
        to_result(unsafe { tracing_open_file_tr(inode, file) })?;
        let shown = || -> Result {
            let held = &EventMutex::lock();
            // SAFETY: `tracing_open_file_tr` was called above.
            let event = unsafe { event_of(inode) }?;
            // SAFETY: by the contract.
            if unsafe { truncates(file) } {
                for command in commands(held) {
                    // SAFETY: a command on the list is complete; the mutex is held.
                    unsafe {
                        if let Some(remove) = (*command).unreg_all {
                            remove(event.as_ptr());
                        }
                    }
                }
            }
            // SAFETY: by the contract.
            if unsafe { is_open_for(file, READ) } {
                let mut text = triggers(event, held)?;
                // Without triggers, the file of tracefs lists the available commands in lines that begin with `#`. They
                // are left out if the module has triggers to show.
                let is_empty = text.as_bytes().is_empty();
                let lower = opened.lower_text()?;
                let lines = lower.as_bytes().split_inclusive(|&byte| byte == b'\n');
                for line in lines.filter(|line| is_empty || line.first() != Some(&b'#')) {
                    text.write_bytes(line).map_err(|_| ENOMEM)?;
                }
                opened.text = text;
            }
            Ok(())
        }();
        sweep_now();
        shown.inspect_err(|_| {
            // SAFETY: `tracing_open_file_tr` was called above.
            unsafe { tracing_release_file_tr(inode, file) };
        })
    };
    // SAFETY: by the contract.
    unsafe { open(file, fill) }
}

/// # Safety
///
/// For the VFS, with an open file.
unsafe extern "C" fn read_trigger(
    file: *mut base::file,
    to: *mut c_char,
    size: usize,
    at: *mut base::loff_t,
) -> isize {
    from_result(|| {
        let mutex = EventMutex::lock();
        // SAFETY: the file is open, with its inode.
        unsafe { event_of((*file).f_inode) }?;
        drop(mutex);
        sweep_now();
        // SAFETY: by the contract.
        Ok(unsafe { read(file, to, size, at) })
    })
}

/// Returns the lines that show the module's triggers of an event.
fn triggers(event: &super::super::event::EventFile, held: &EventMutexHeld) -> Result<TextBuf> {
    let mut size = kernel::page::PAGE_SIZE;
    loop {
        let mut room = KVec::from_elem(0u8, size, GFP_KERNEL)?;
        let mut page = base::seq_file {
            buf: room.as_mut_ptr().cast(),
            size,
            ..pin_init::zeroed()
        };
        for node in event.triggers(held) {
            let node = node.as_ptr();
            // SAFETY: a node on the list is live, with its operations. Only functions of the module write to the
            // `seq_file`, and they use no other members of it.
            unsafe {
                if let Some(print) = (*(*node).cmd_ops).print {
                    print(&raw mut page, node);
                }
            }
        }
        if page.count < size {
            room.truncate(page.count);
            return TextBuf::joined(&[&room]);
        }
        size = size.checked_mul(2).ok_or(ENOMEM)?;
    }
}

/// # Safety
///
/// For the VFS, with an open file.
unsafe extern "C" fn write_trigger(
    file: *mut base::file,
    from: *const c_char,
    size: usize,
    _at: *mut base::loff_t,
) -> isize {
    if size == 0 {
        return 0;
    }
    // SAFETY: the arguments are those of a write.
    let done = unsafe { run(file, from, size) };
    sweep_now();
    // CAST: the size is less than a page.
    from_result(|| done.map(|()| size as isize))
}

/// Carries out a line written to `trigger`: by a command of the module, or by passing it on to tracefs.
///
/// # Safety
///
/// The file must be an open `trigger`, and the rest the arguments of a write.
unsafe fn run(file: *mut base::file, from: *const c_char, size: usize) -> Result {
    if size >= kernel::page::PAGE_SIZE {
        return Err(EINVAL);
    }
    let mut line = KVec::from_elem(0u8, size, GFP_KERNEL)?;
    // SAFETY: `line` has room for `size` bytes.
    if unsafe { base::copy_from_user(line.as_mut_ptr().cast(), from.cast(), size) } != 0 {
        return Err(EFAULT);
    }
    // Splits the line as C does with `strim()`, `strsep()` and `skip_spaces()`.
    let line = line.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut parts = trimmed(line).splitn(2, |byte| b": \t".contains(byte));
    let glob = parts.next().unwrap_or_default();
    let params = parts.next().map(trimmed).filter(|text| !text.is_empty());
    let name = glob.strip_prefix(b"!").unwrap_or(glob);

    let mutex = EventMutex::lock();
    // SAFETY: a command on the list is complete, with a string for its name.
    let command = commands(&mutex).find(|&command| {
        unsafe { c_str((*command).name) }.is_some_and(|own| own.to_bytes() == name)
    });
    let Some(command) = command else {
        drop(mutex);
        // SAFETY: the file is open, and the rest are the arguments of a write.
        return unsafe { pass_on(OpenViewFile::of(file).lower, from, size) };
    };
    let glob = TextBuf::terminated(glob)?;
    let params = params.map(TextBuf::terminated).transpose()?;
    let text = |text: &TextBuf| text.as_c_str().as_char_ptr().cast_mut();
    // SAFETY: the file is open, with its inode.
    let event = unsafe { event_of((*file).f_inode) }?;
    // SAFETY: the command is complete, and one of the module, which only reads the strings; the mutex is held.
    to_result(unsafe {
        match (*command).parse {
            Some(parse) => parse(
                command,
                event.as_ptr(),
                text(&glob),
                text(&glob),
                params.as_ref().map_or(null_mut(), text),
            ),
            None => EINVAL.to_errno(),
        }
    })
}

/// Returns a text without the white space at both ends.
fn trimmed(text: &[u8]) -> &[u8] {
    lex::trim(text, Span::whole(text)).of(text)
}

/// Passes the write of a user on to a file of tracefs.
///
/// # Safety
///
/// The file must be open, and the rest the arguments of a write.
unsafe fn pass_on(lower: *mut base::file, from: *const c_char, size: usize) -> Result {
    let mut at = 0;
    // SAFETY: by the contract; an open file has its operations.
    let ret = unsafe {
        match (*(*lower).f_op).write {
            Some(write) => write(lower, from, size, &raw mut at),
            None => return Err(EINVAL),
        }
    };
    // CAST: the result is an error number, or less than a page.
    to_result(ret as c_int)
}

/// # Safety
///
/// For the VFS, with a file that is closed by its last user.
unsafe extern "C" fn release_trigger(inode: *mut base::inode, file: *mut base::file) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        tracing_release_file_tr(inode, file);
        release(inode, file)
    }
}

/// # Safety
///
/// For the VFS, with a file that is being opened.
unsafe extern "C" fn open_enable(_inode: *mut base::inode, file: *mut base::file) -> c_int {
    // SAFETY: by the contract.
    unsafe { open(file, |_, _| Ok(())) }
}

/// Shows the state that tracefs shows, with a `*` while the event has triggers of the module.
///
/// # Safety
///
/// For the VFS, with an open file.
unsafe extern "C" fn read_enable(
    file: *mut base::file,
    to: *mut c_char,
    size: usize,
    at: *mut base::loff_t,
) -> isize {
    from_result(|| {
        // SAFETY: the file is open.
        let names = unsafe { ViewPath::of_file(file) }?.spot().event()?;
        let state = OwnFile::state(&names, &EventMutex::lock());
        // SAFETY: the arguments are those of a read; an open file has its operations.
        Ok(unsafe {
            match (state, (*(*OpenViewFile::of(file).lower).f_op).read) {
                (Some(text), _) => shown(text, to, size, at),
                (None, Some(read)) => read(OpenViewFile::of(file).lower, to, size, at),
                (None, None) => return Err(EINVAL),
            }
        })
    })
}

/// # Safety
///
/// For the VFS, with an open file.
unsafe extern "C" fn write_enable(
    file: *mut base::file,
    from: *const c_char,
    size: usize,
    _at: *mut base::loff_t,
) -> isize {
    // SAFETY: by the contract.
    let done = unsafe { pass_on(OpenViewFile::of(file).lower, from, size) };
    // CAST: the file has taken the size.
    from_result(|| done.map(|()| size as isize))
}

/// # Safety
///
/// For the VFS, with a file that is being opened.
unsafe extern "C" fn open_log(_inode: *mut base::inode, file: *mut base::file) -> c_int {
    let fill = |opened: &mut OpenViewFile, spot: &Spot<'_>| {
        // SAFETY: by the contract.
        let (empty, read) = unsafe { (truncates(file), is_open_for(file, READ)) };
        let instance = InstanceRef::get(spot.instance())?;
        if empty {
            // SAFETY: the instance has a reference.
            unsafe { log::clear(instance.0) };
        }
        if read {
            // SAFETY: the instance has a reference.
            let own = unsafe { log::read(instance.0) }?;
            opened.text = merged(opened.lower_text()?.as_bytes(), own.as_bytes())?;
        }
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { open(file, fill) }
}

/// # Safety
///
/// For the VFS, with a file that is being opened.
unsafe extern "C" fn open_all_triggers(_inode: *mut base::inode, file: *mut base::file) -> c_int {
    let fill = |opened: &mut OpenViewFile, spot: &Spot<'_>| {
        let instance = InstanceRef::get(spot.instance())?;
        let mut text = opened.lower_text()?;
        let held = &EventMutex::lock();
        // As with C, events that cannot be enabled are left out.
        for event in events_of(instance.0, held).filter(|event| event.call().can_be_enabled()) {
            let lines = triggers(event, held)?;
            let (system, name) = event.names();
            // The core pads the name of the event to the same width.
            let blanks = [b' '; 32];
            let len = system.len() + 1 + name.len();
            let blanks = blanks.get(len.min(31)..).unwrap_or_default();
            for line in lines.as_bytes().split_inclusive(|&byte| byte == b'\n') {
                for part in [system, b":", name, blanks, line] {
                    text.write_bytes(part).map_err(|_| ENOMEM)?;
                }
            }
        }
        opened.text = text;
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { open(file, fill) }
}

/// Returns the entries of two logs in the order of the times that they begin with.
fn merged(one: &[u8], two: &[u8]) -> Result<TextBuf> {
    let mut out = TextBuf::new();
    let (mut one, mut two) = (entries(one).peekable(), entries(two).peekable());
    loop {
        let first = match (one.peek(), two.peek()) {
            (Some(a), Some(b)) if time(b) < time(a) => two.next(),
            (Some(_), _) => one.next(),
            _ => two.next(),
        };
        match first {
            Some(entry) => out.write_bytes(entry).map_err(|_| ENOMEM)?,
            None => return Ok(out),
        }
    }
}

/// Iterates over the entries of a log; each begins with `[`.
fn entries(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let len = text
            .windows(2)
            .position(|two| two == b"\n[")
            .map_or(text.len(), |at| at + 1);
        let (entry, rest) = text.split_at_checked(len)?;
        text = rest;
        (!entry.is_empty()).then_some(entry)
    })
}

/// Returns the time of an entry as a value that compares like the time: the length of the text up to `]`, and this
/// text, in which blanks pad the seconds.
fn time(entry: &[u8]) -> (usize, &[u8]) {
    let time = entry.split(|&byte| byte == b']').next().unwrap_or_default();
    (time.len(), time)
}

/// An instance with a reference; null for the top one.
struct InstanceRef(*mut bindings::trace_array);

impl InstanceRef {
    /// Returns the instance with this name, for which there is a directory; the top one without a name.
    fn get(name: Option<&[u8]>) -> Result<Self> {
        let Some(name) = name else {
            return Ok(Self(null_mut()));
        };
        let name = TextBuf::terminated(name)?;
        // SAFETY: there is an instance of this name, so none is made.
        let found = unsafe {
            bindings::trace_array_get_by_name(name.as_c_str().as_char_ptr(), core::ptr::null())
        };
        if found.is_null() {
            Err(ENODEV)
        } else {
            Ok(Self(found))
        }
    }
}

impl Drop for InstanceRef {
    fn drop(&mut self) {
        // SAFETY: `get` has taken a reference; the function ignores null.
        unsafe { bindings::trace_array_put(self.0) };
    }
}

/// # Safety
///
/// For the VFS, with an open file.
unsafe extern "C" fn write_log(
    _file: *mut base::file,
    _from: *const c_char,
    size: usize,
    _at: *mut base::loff_t,
) -> isize {
    // Opening the file for writing has emptied the log; the written text does not matter.
    size as isize
}

/// # Safety
///
/// For the VFS, with a file that is being opened.
unsafe extern "C" fn open_readme(_inode: *mut base::inode, file: *mut base::file) -> c_int {
    let fill = |opened: &mut OpenViewFile, _: &Spot<'_>| {
        // ORDERING: pairs with `tracing_readme_append`.
        // SAFETY: null, or a constant string.
        let text: Option<&CStr> = unsafe { c_str(README_TEXT.load(Acquire)) };
        opened.text = TextBuf::joined(&[text.unwrap_or_default().to_bytes()])?;
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { open(file, fill) }
}

/// Reads the text of tracefs, and after it the module's text, whose positions are above all positions of tracefs.
///
/// # Safety
///
/// For the VFS, with an open file.
unsafe extern "C" fn read_readme(
    file: *mut base::file,
    to: *mut c_char,
    size: usize,
    at: *mut base::loff_t,
) -> isize {
    const BEHIND: base::loff_t = 1 << 30;

    // SAFETY: the VFS passes the position of this read, for us to move.
    let at = unsafe { &mut *at };
    // SAFETY: the file is open.
    let lower = unsafe { OpenViewFile::of(file) }.lower;
    if *at < BEHIND {
        // SAFETY: an open file has its operations; the arguments are those of a read.
        let got = unsafe {
            match (*(*lower).f_op).read {
                Some(read) => read(lower, to, size, at),
                None => 0,
            }
        };
        if got != 0 {
            return got;
        }
        *at = BEHIND;
    }
    let mut own = *at - BEHIND;
    // SAFETY: the arguments are those of a read.
    let got = unsafe { read(file, to, size, &raw mut own) };
    *at = own + BEHIND;
    got
}
