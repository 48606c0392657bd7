// SPDX-License-Identifier: GPL-2.0

//! The file system `rhistfs`, whose place is `/sys/kernel/rhist`: tracefs to look at, with the files of the module.
//!
//! C headers: [`include/linux/fs.h`](srctree/include/linux/fs.h), [`include/linux/namei.h`](srctree/include/linux/namei.h)
//!
//! The view has the names of tracefs, which it reads from a mount of tracefs that belongs to the module. Directories,
//! down to those of events, are made when somebody looks them up. The files in `files.rs` belong to the module. All
//! other entries are links to `/sys/kernel/tracing`, or to the place that the mount option `lower=` names (`mount.rs`).

use super::{
    super::{
        event::EventFile,
        guard::{
            EventMutex,
            EventMutexHeld, //
        },
    },
    bindings,
    fields,
    files,
    log,
    mount::{
        self,
        inode, //
    },
    pins::is_relays,
    sweep_now,
    sweep_soon,
    trace_array_put,
    tracing_check_open_get_tr,
    EventNames,
    OwnFile, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Release, //
};
use core::{
    ffi::CStr,
    ptr::null_mut, //
};
use kernel::{
    bindings as base,
    error::{
        from_err_ptr,
        from_result,
        to_result, //
    },
    prelude::*, //
};

pub(in super::super) use super::files::tracing_readme_append;

/// A file that each event directory of the view has; a list of them ends with one without a name.
#[repr(C)]
#[derive(Zeroable)]
pub(in super::super) struct event_dir_file {
    pub(in super::super) name: *const c_char,
    pub(in super::super) fops: *const base::file_operations,
}

/// The list of the files that each event directory has, or null.
static SERVED: Atomic<*mut event_dir_file> = Atomic::new(null_mut());

/// The module's own mount of tracefs.
static MOUNT: Atomic<*mut base::vfsmount> = Atomic::new(null_mut());

/// Lets the view be mounted. The mutex is held, and nobody uses the module yet.
pub(super) fn register(held: &EventMutexHeld) -> Result {
    log::init();
    fields::check()?;
    fields::learn_syscalls(held)?;
    // SAFETY: a constant string.
    let tracefs = unsafe { base::get_fs_type(c"tracefs".as_char_ptr()) };
    if tracefs.is_null() {
        return Err(ENODEV);
    }
    // SAFETY: tracefs is part of the kernel image, so the type is always valid.
    let mount = from_err_ptr(unsafe { base::kern_mount(tracefs) })?;
    // ORDERING: pairs with the load in `Lower::find`.
    MOUNT.store(mount, Release);
    // SAFETY: `kernel_kobj` exists since the boot; the name is constant.
    let point = to_result(unsafe {
        base::sysfs_create_mount_point(bindings::kernel_kobj, c"rhist".as_char_ptr())
    });
    point
        .and_then(|()| mount::register().inspect_err(|_| remove_mount_point()))
        .inspect_err(|_| unmount())
}

/// Undoes [`register`]. The view is not mounted, as a mount would pin the module.
pub(super) fn unregister() {
    mount::unregister();
    remove_mount_point();
    unmount();
}

fn remove_mount_point() {
    // SAFETY: `register` has made it, and nothing else removes it.
    unsafe { base::sysfs_remove_mount_point(bindings::kernel_kobj, c"rhist".as_char_ptr()) };
}

fn unmount() {
    // ORDERING: pairs with the store in `register`; no file of the view is open any more.
    let mount = MOUNT.xchg(null_mut(), Acquire);
    // SAFETY: `register` has made it, and nothing else removes it.
    unsafe { base::kern_unmount(mount) };
}

/// Sets the files that each event directory of the view has: a list that ends with one without a name, or null for
/// none.
///
/// # Safety
///
/// The list must stay until the next call.
pub(in super::super) unsafe fn event_dir_files_serve(files: *const event_dir_file) {
    // ORDERING: pairs with the loads in `served` and `is_ready`.
    SERVED.store(files.cast_mut(), Release);
}

/// Iterates over the name and the operations of each file that event directories have.
fn served() -> impl Iterator<Item = (&'static CStr, *const base::file_operations)> {
    // ORDERING: pairs with the store in `event_dir_files_serve`.
    let mut at = SERVED.load(Acquire);
    core::iter::from_fn(move || {
        // SAFETY: the pointer is null, or to an element of a list that stays while the module can be used.
        let file = unsafe { at.as_ref() }?;
        if file.name.is_null() {
            return None;
        }
        at = at.wrapping_add(1);
        // SAFETY: a constant string.
        Some((unsafe { CStr::from_char_ptr(file.name) }, file.fops))
    })
}

/// More bytes than any path in the view has.
const PATH_LEN: usize = 640;

/// The path of an entry from the root of the view.
pub(super) struct ViewPath {
    room: [u8; PATH_LEN],
    at: usize,
}

impl ViewPath {
    /// Returns the path of `dentry`.
    ///
    /// # Safety
    ///
    /// The entry must be live, and of the view.
    pub(super) unsafe fn of(dentry: *mut base::dentry) -> Result<Self> {
        let mut path = Self {
            room: [0; PATH_LEN],
            at: 0,
        };
        let room = path.room.as_mut_ptr();
        // SAFETY: by the contract; the room has `PATH_LEN` bytes.
        let text =
            from_err_ptr(unsafe { base::dentry_path_raw(dentry, room.cast(), PATH_LEN as c_int) })?;
        path.at = text.addr() - room.addr();
        Ok(path)
    }

    /// The path of an open file.
    ///
    /// # Safety
    ///
    /// The file must be one of the view.
    pub(super) unsafe fn of_file(file: *mut base::file) -> Result<Self> {
        // SAFETY: an open file has its entry.
        unsafe { Self::of((*file).__bindgen_anon_1.f_path.dentry) }
    }

    pub(super) fn text(&self) -> &CStr {
        let bytes = self.room.get(self.at..).unwrap_or_default();
        CStr::from_bytes_until_nul(bytes).unwrap_or_default()
    }

    /// Splits the path into its first names, which are more than any entry of the module has.
    pub(super) fn spot(&self) -> Spot<'_> {
        let parts = self.text().to_bytes().split(|&byte| byte == b'/');
        let mut spot = Spot {
            parts: [b"".as_slice(); 7],
            len: 0,
        };
        let parts = parts.filter(|part| !part.is_empty());
        for (place, part) in spot.parts.iter_mut().zip(parts) {
            *place = part;
            spot.len += 1;
        }
        spot
    }
}

/// A place in the view.
pub(super) struct Spot<'a> {
    parts: [&'a [u8]; 7],
    len: usize,
}

/// Which entries of the view belong to the module, and how.
enum Ours {
    /// A directory, if tracefs has a directory there.
    Directory,
    /// The directory `instances`, where users make and remove instances.
    Instances,
    /// A file with these operations and this mode, if tracefs has a file with the same name.
    Beside(*const base::file_operations, u16),
    /// A file that each event has.
    OfEvent(*const base::file_operations),
    /// Not of the module: the entry is a link to tracefs.
    Nothing,
}

impl<'a> Spot<'a> {
    /// Returns the instance, and the names of the path below it.
    fn split(&self) -> (Option<&'a [u8]>, &[&'a [u8]]) {
        match self.parts.get(..self.len).unwrap_or_default() {
            [b"instances", instance, names @ ..] => (Some(instance), names),
            names => (None, names),
        }
    }

    /// Returns the name of the instance; the top one has none.
    pub(super) fn instance(&self) -> Option<&'a [u8]> {
        self.split().0
    }

    /// Returns the names of the event that a file belongs to.
    pub(super) fn event(&self) -> Result<EventNames> {
        match self.split() {
            (instance, &[_, system, event, _]) => EventNames::new(system, event, instance),
            _ => Err(ENOENT),
        }
    }

    fn ours(&self) -> Ours {
        match self.split().1 {
            [b"instances"] => Ours::Instances,
            [] | [b"events"] | [b"events", _] | [b"events", _, _] => Ours::Directory,
            [b"events", _, _, b"trigger"] => Ours::Beside(files::TRIGGER, 0o640),
            [b"events", _, _, b"enable"] => Ours::Beside(files::ENABLE, 0o640),
            [b"error_log"] => Ours::Beside(files::ERROR_LOG, 0o640),
            [b"show_event_triggers"] => Ours::Beside(files::ALL_TRIGGERS, 0o440),
            [b"README"] => Ours::Beside(files::README, 0o440),
            [b"events", _, _, name] => served()
                .find(|file| file.0.to_bytes() == *name)
                .map_or(Ours::Nothing, |file| Ours::OfEvent(file.1)),
            _ => Ours::Nothing,
        }
    }
}

/// A file or a directory of tracefs, with a reference.
pub(super) struct Lower(base::path);

impl Lower {
    /// Finds the file at `path`; `ENOENT` if there is none.
    pub(super) fn find(path: &CStr) -> Result<Self> {
        // ORDERING: pairs with the store in `register`.
        let mount = MOUNT.load(Acquire);
        let mut found = base::path::default();
        // SAFETY: the mount stays as long as the module; the path is a string, and the answer has room.
        to_result(unsafe {
            bindings::vfs_path_lookup(
                (*mount).mnt_root,
                mount,
                path.as_char_ptr(),
                0,
                &raw mut found,
            )
        })?;
        Ok(Self(found))
    }

    fn is_directory(&self) -> bool {
        // SAFETY: a found entry has an inode as long as there is a reference on it.
        let mode = unsafe { (*(*self.0.dentry).d_inode).i_mode };
        u32::from(mode) & base::S_IFMT == base::S_IFDIR
    }

    /// Opens the file with these flags and the credentials of `file`.
    ///
    /// # Safety
    ///
    /// `file` must be open, or being opened.
    pub(super) unsafe fn open(
        &self,
        file: *mut base::file,
        flags: c_uint,
    ) -> Result<*mut base::file> {
        // SAFETY: by the contract; an open file has the credentials of the task that opened it.
        let cred = unsafe { (*file).f_cred };
        // CAST: flags as `open()` has them.
        // SAFETY: the value holds a reference on the path.
        from_err_ptr(unsafe { base::dentry_open(&self.0, flags as c_int, cred) })
    }
}

impl Drop for Lower {
    fn drop(&mut self) {
        // SAFETY: the reference was taken when the value was found.
        unsafe { base::path_put(&self.0) };
    }
}

const DIRECTORY: base::inode_operations = base::inode_operations {
    lookup: Some(lookup),
    ..pin_init::zeroed()
};

const INSTANCES: base::inode_operations = base::inode_operations {
    lookup: Some(lookup),
    mkdir: Some(mkdir),
    rmdir: Some(rmdir),
    ..pin_init::zeroed()
};

const LINK: base::inode_operations = base::inode_operations {
    get_link: Some(get_link),
    ..pin_init::zeroed()
};

const LISTING: base::file_operations = base::file_operations {
    owner: super::this_module(),
    open: Some(open_directory),
    read: Some(base::generic_read_dir),
    llseek: Some(base::generic_file_llseek),
    iterate_shared: Some(iterate),
    release: Some(release_directory),
    ..pin_init::zeroed()
};

// CAST: bits that fit.
const IS_DIRECTORY: u16 = base::S_IFDIR as u16 | 0o750;
const IS_LINK: u16 = base::S_IFLNK as u16 | 0o777;
const IS_FILE: u16 = base::S_IFREG as u16;

/// Returns whether the view has its files: they come last when the module is loaded.
pub(super) fn is_ready() -> bool {
    // ORDERING: pairs with the store in `event_dir_files_serve`.
    !SERVED.load(Acquire).is_null()
}

/// Makes the root of a mount of the view.
///
/// # Safety
///
/// The superblock must be that of the mount, with its options.
pub(super) unsafe fn root(sb: *mut base::super_block) -> Result<*mut base::inode> {
    // SAFETY: by the contract; the operations are constant.
    unsafe { inode(sb, IS_DIRECTORY, &DIRECTORY, &LISTING) }
}

/// # Safety
///
/// For the VFS, with a directory and a new entry of it.
unsafe extern "C" fn lookup(
    directory: *mut base::inode,
    dentry: *mut base::dentry,
    _flags: c_uint,
) -> *mut base::dentry {
    // SAFETY: by the contract.
    let found = unsafe { find((*directory).i_sb, dentry) };
    match found {
        // SAFETY: by the contract; without an inode the entry says that there is nothing.
        Ok(inode) => unsafe { base::d_add(dentry, inode) },
        Err(error) => return error.to_ptr(),
    }
    null_mut()
}

/// Returns an inode for an entry; null if the view has no entry with this name.
///
/// # Safety
///
/// The superblock must be that of the view, and the entry one of it.
unsafe fn find(sb: *mut base::super_block, dentry: *mut base::dentry) -> Result<*mut base::inode> {
    // SAFETY: by the contract.
    let path = unsafe { ViewPath::of(dentry) }?;
    if path.spot().instance().is_some_and(is_relays) {
        return Ok(null_mut());
    }
    let ours = path.spot().ours();
    // SAFETY: by the contract.
    let lower = match unsafe { lower_of(dentry, &path, &ours) } {
        Err(error) if error == ENOENT => return Ok(null_mut()),
        lower => lower?,
    };
    let (no_inode, no_file) = (core::ptr::null(), core::ptr::null());
    // SAFETY: by the contract; all operations are constant.
    unsafe {
        match ours {
            Ours::Directory if lower.is_directory() => {
                inode(sb, IS_DIRECTORY, &DIRECTORY, &LISTING)
            }
            Ours::Instances if lower.is_directory() => {
                inode(sb, IS_DIRECTORY, &INSTANCES, &LISTING)
            }
            Ours::Beside(fops, mode) => inode(sb, IS_FILE | mode, no_inode, fops),
            Ours::OfEvent(fops) => inode(sb, IS_FILE | 0o440, no_inode, fops),
            Ours::Directory | Ours::Instances | Ours::Nothing => inode(sb, IS_LINK, &LINK, no_file),
        }
    }
}

/// Returns the file of tracefs without which the view has no such entry; `ENOENT` if there is none.
///
/// # Safety
///
/// The entry must be live, and `path` and `ours` be of it.
unsafe fn lower_of(dentry: *mut base::dentry, path: &ViewPath, ours: &Ours) -> Result<Lower> {
    match ours {
        // SAFETY: the entry is live, and has a parent, the directory of its event.
        Ours::OfEvent(_) => Lower::find(unsafe { beside(dentry, c"/format") }?.as_c_str()),
        _ => Lower::find(path.text()),
    }
}

/// The operations of entries: the cache keeps none that nobody uses, and asks before it uses one again, since tracefs
/// may remove its file at any time.
pub(super) const ENTRIES: &base::dentry_operations = &base::dentry_operations {
    d_revalidate: Some(revalidate),
    d_delete: Some(base::always_delete_dentry),
    ..pin_init::zeroed()
};

/// Returns whether tracefs still has the file of an entry: 0 or 1, or an errno.
///
/// # Safety
///
/// For the VFS, with a live entry of the view.
unsafe extern "C" fn revalidate(
    _directory: *mut base::inode,
    _name: *const base::qstr,
    dentry: *mut base::dentry,
    flags: c_uint,
) -> c_int {
    from_result(|| {
        if flags & bindings::HIST_LOOKUP_RCU != 0 {
            // The caller must not sleep; after this error it asks again in a context that can.
            return Err(ECHILD);
        }
        // SAFETY: by the contract.
        let path = unsafe { ViewPath::of(dentry) }?;
        // SAFETY: by the contract.
        match unsafe { lower_of(dentry, &path, &path.spot().ours()) } {
            Err(error) if error == ENOENT => Ok(0),
            lower => lower.map(|_| 1),
        }
    })
}

/// Returns the path of another file in the directory of an entry.
///
/// # Safety
///
/// The entry must be live, and not the root.
unsafe fn beside(dentry: *mut base::dentry, name: &CStr) -> Result<super::super::text::TextBuf> {
    // SAFETY: by the contract.
    let path = unsafe { ViewPath::of((*dentry).d_parent) }?;
    super::super::text::TextBuf::joined(&[path.text().to_bytes(), name.to_bytes_with_nul()])
}

/// # Safety
///
/// For the VFS.
unsafe extern "C" fn get_link(
    dentry: *mut base::dentry,
    _inode: *mut base::inode,
    done: *mut base::delayed_call,
) -> *const c_char {
    let text = || -> Result<*const c_char> {
        if dentry.is_null() {
            // The caller must not sleep; after this error it asks again in a context that can.
            return Err(ECHILD);
        }
        // SAFETY: the entry is live.
        let path = unsafe { ViewPath::of(dentry) }?;
        // SAFETY: the entry is one of a mount of the view.
        let text = unsafe { mount::link((*dentry).d_sb, path.text()) }?.into_bytes();
        let (text, _, _) = text.into_raw_parts();
        // SAFETY: by the contract. The function frees memory of the allocator of the vector.
        unsafe {
            (*done).fn_ = Some(base::kfree_link);
            (*done).arg = text.cast();
        }
        Ok(text.cast::<c_char>().cast_const())
    };
    match text() {
        Ok(text) => text,
        Err(error) => error.to_ptr::<c_char>().cast_const(),
    }
}

/// # Safety
///
/// For the VFS, with a directory that is being opened.
unsafe extern "C" fn open_directory(_inode: *mut base::inode, file: *mut base::file) -> c_int {
    from_result(|| {
        // SAFETY: by the contract.
        let path = unsafe { ViewPath::of_file(file) }?;
        let lower = Lower::find(path.text())?;
        // SAFETY: by the contract.
        unsafe { (*file).private_data = lower.open(file, (*file).f_flags)?.cast() };
        Ok(0)
    })
}

/// # Safety
///
/// For the VFS, with a directory that is closed by its last user.
unsafe extern "C" fn release_directory(_inode: *mut base::inode, file: *mut base::file) -> c_int {
    // SAFETY: opened by `open_directory`.
    unsafe { base::fput((*file).private_data.cast()) };
    0
}

/// Passes the entries of a directory of tracefs on to a reader of the view.
#[repr(C)]
struct Forward {
    from: base::dir_context,
    to: *mut base::dir_context,
    /// Whether the directory is an event's, where the names of the module's own files are left out.
    event: bool,
    /// Whether the directory is that of instances, where the module's own is left out.
    instances: bool,
    full: bool,
}

/// # Safety
///
/// For the VFS, with an open directory.
unsafe extern "C" fn iterate(file: *mut base::file, to: *mut base::dir_context) -> c_int {
    from_result(|| {
        // SAFETY: by the contract.
        let path = unsafe { ViewPath::of_file(file) }?;
        let event = matches!(path.spot().split().1, [b"events", _, _]);
        let instances = matches!(path.spot().ours(), Ours::Instances);
        // SAFETY: opened by `open_directory`.
        let lower = unsafe { (*file).private_data.cast::<base::file>() };
        // SAFETY: by the contract, only this call uses the context.
        let context = unsafe { &mut *to };
        let actor = context.actor.ok_or(EINVAL)?;
        // The module's own files come first, at positions from 0 on.
        let mut own = 0;
        for (name, _) in served().take(if event { usize::MAX } else { 0 }) {
            if context.pos == own {
                let len = name.to_bytes().len();
                // SAFETY: the name has `len` bytes.
                if !unsafe { actor(to, name.as_char_ptr(), len as c_int, own, 1, 0) } {
                    return Ok(0);
                }
                context.pos += 1;
            }
            own += 1;
        }
        let at = context.pos - own;
        // SAFETY: the directory is open; only its reader, who holds its lock, moves the position.
        if unsafe { (*lower).f_pos } != at {
            // SAFETY: the directory is open.
            unsafe { base::vfs_llseek(lower, at, base::SEEK_SET as c_int) };
        }
        let mut forward = Forward {
            from: base::dir_context {
                actor: Some(hand_on),
                ..*context
            },
            to,
            event,
            instances,
            full: false,
        };
        // SAFETY: the directory is open, and the context is the first member of a `Forward`, which `hand_on` takes.
        let ret = unsafe { base::iterate_dir(lower, &raw mut forward.from) };
        context.pos = own + forward.from.pos;
        to_result(ret).map(|()| 0)
    })
}

/// # Safety
///
/// For a directory of tracefs, with the context of a [`Forward`].
unsafe extern "C" fn hand_on(
    from: *mut base::dir_context,
    name: *const c_char,
    len: c_int,
    at: base::loff_t,
    number: u64,
    _type: c_uint,
) -> bool {
    // SAFETY: by the contract.
    let forward = unsafe { &mut *from.cast::<Forward>() };
    // SAFETY: the name has `len` bytes.
    let bytes =
        unsafe { core::slice::from_raw_parts(name.cast::<u8>(), len.unsigned_abs() as usize) };
    if forward.event && served().any(|file| file.0.to_bytes() == bytes)
        || forward.instances && is_relays(bytes)
    {
        return true;
    }
    // SAFETY: `to` is the context of the reader.
    match unsafe { (*forward.to).actor } {
        // SAFETY: the arguments describe an entry, as the actor wants them.
        Some(actor) => unsafe { actor(forward.to, name, len, at, number, 0) },
        None => false,
    }
}

/// Returns the name of an entry.
///
/// # Safety
///
/// The entry must be live, and not be renamed.
unsafe fn name_of(dentry: *mut base::dentry) -> *const c_char {
    // SAFETY: by the contract.
    unsafe { (*dentry).__bindgen_anon_1.d_name.name.cast() }
}

/// # Safety
///
/// For the VFS, with the directory of instances and a new entry.
unsafe extern "C" fn mkdir(
    _map: *mut base::mnt_idmap,
    directory: *mut base::inode,
    dentry: *mut base::dentry,
    _mode: base::umode_t,
) -> *mut base::dentry {
    let make = || -> Result {
        // SAFETY: the name is a string.
        if is_relays(unsafe { CStr::from_char_ptr(name_of(dentry)) }.to_bytes()) {
            return Err(EEXIST);
        }
        // SAFETY: by the contract.
        let inode = unsafe { inode((*directory).i_sb, IS_DIRECTORY, &DIRECTORY, &LISTING) }?;
        // SAFETY: the name is a string.
        let made = unsafe { bindings::trace_array_get_by_name(name_of(dentry), core::ptr::null()) };
        if made.is_null() {
            // SAFETY: nobody else has the inode.
            unsafe { base::iput(inode) };
            return Err(ENOMEM);
        }
        // SAFETY: `trace_array_get_by_name` has taken a reference; the instance stays without it.
        unsafe { bindings::trace_array_put(made) };
        // SAFETY: by the contract.
        unsafe { base::d_instantiate(dentry, inode) };
        Ok(())
    };
    make().map_or_else(|error| error.to_ptr(), |()| null_mut())
}

/// # Safety
///
/// For the VFS, with the directory of instances and an entry of it.
unsafe extern "C" fn rmdir(_directory: *mut base::inode, dentry: *mut base::dentry) -> c_int {
    // Files of events that nobody uses any more may still pin the instance.
    sweep_now();
    // SAFETY: the entry is that of an instance with this name, so none is made.
    let instance = unsafe { bindings::trace_array_get_by_name(name_of(dentry), core::ptr::null()) };
    if instance.is_null() {
        return ENOENT.to_errno();
    }
    // SAFETY: `trace_array_get_by_name` has taken the reference.
    unsafe { bindings::trace_array_put(instance) };
    // SAFETY: the function looks the pointer up in the list of instances, which a concurrent removal takes it off.
    let ret = unsafe { bindings::trace_array_destroy(instance) };
    if ret == EBUSY.to_errno() {
        let mut texts = [c"Instance has triggers, or is in use".as_char_ptr()];
        // SAFETY: the strings are live.
        unsafe {
            log::tracing_log_err(
                null_mut(),
                c"instances".as_char_ptr(),
                name_of(dentry).cast_mut(),
                texts.as_mut_ptr(),
                0,
                0,
            )
        };
    }
    ret
}

/// Opens the event of a file of the view: finds or makes the module's file of the event, which then stays until
/// [`tracing_release_file_tr`], and is the private data of the inode. Checks the lock-down.
///
/// # Safety
///
/// The file must be being opened, with its inode, in the directory of an event.
pub(in super::super) unsafe fn tracing_open_file_tr(
    inode: *mut base::inode,
    file: *mut base::file,
) -> c_int {
    from_result(|| {
        // SAFETY: it has no precondition.
        to_result(unsafe { base::security_locked_down(base::lockdown_reason_LOCKDOWN_TRACEFS) })?;
        // SAFETY: by the contract.
        let path = unsafe { ViewPath::of_file(file) }?;
        let names = path.spot().event()?;
        let held = &EventMutex::lock();
        let own = OwnFile::find(names, held)?;
        own.opened.set(own.opened.get() + 1);
        // As with C, the instance stays while the file is open.
        // SAFETY: the instance is pinned while the mutex is held.
        to_result(unsafe { tracing_check_open_get_tr(own.instance()) })?;
        // SAFETY: all openers of the inode store the same pointer, since there is one file for the names.
        unsafe { (*inode).i_private = own.file.get().cast() };
        Ok(0)
    })
}

/// Undoes one [`tracing_open_file_tr`].
///
/// # Safety
///
/// The inode must be open.
pub(in super::super) unsafe fn tracing_release_file_tr(
    inode: *mut base::inode,
    _file: *mut base::file,
) -> c_int {
    let mutex = EventMutex::lock();
    // SAFETY: `tracing_open_file_tr` has stored the pointer; the file stays while it is open.
    let own = unsafe { OwnFile::of((*inode).i_private.cast()) };
    own.opened.set(own.opened.get() - 1);
    // SAFETY: takes back the reference of `tracing_open_file_tr`.
    unsafe { trace_array_put(own.instance()) };
    sweep_soon();
    drop(mutex);
    sweep_now();
    0
}

/// Returns the event of an open file of the view; `ENODEV` if it is gone.
///
/// # Safety
///
/// [`tracing_open_file_tr`] must have been called for the inode, and the mutex be held.
pub(super) unsafe fn event_of<'a>(inode: *mut base::inode) -> Result<&'a EventFile> {
    // SAFETY: by the contract.
    let file = unsafe { (*inode).i_private.cast() };
    // SAFETY: the module's file of the event stays while it is open, and the mutex is held.
    unsafe { OwnFile::of(file).pin(&EventMutexHeld::assume()) }.map_err(|_| ENODEV)?;
    // SAFETY: the event is pinned, at least until the mutex is released.
    Ok(unsafe { EventFile::from_raw(file) })
}

/// Adds a poller of a file of the view to the module's wait queue, for hits, and to C's, for the removal of the event.
///
/// # Safety
///
/// The arguments must be those of the VFS for a poll of a file in the directory of an event, and the mutex be held with the event
/// pinned: it can then only be removed after this.
pub(in super::super) unsafe fn hist_poll_wait(
    file: *mut base::file,
    table: *mut base::poll_table_struct,
) {
    // SAFETY: by the contract; the wait queue is static.
    unsafe { base::poll_wait(file, &raw mut bindings::hist_stock_poll_wq, table) };
    // SAFETY: by the contract; a table is null, or live.
    if unsafe { table.as_ref() }.is_none_or(|table| table._qproc.is_none()) {
        // The poller is on the queues already.
        return;
    }
    let watch = || -> Result {
        // SAFETY: by the contract.
        let path = unsafe { beside((*file).__bindgen_anon_1.f_path.dentry, c"/hist") }?;
        // SAFETY: by the contract, the file stays open meanwhile.
        let lower = unsafe { Lower::find(path.as_c_str())?.open(file, base::O_RDONLY) }?;
        // SAFETY: the file was just opened. Who waits keeps it, and C's queue is a part of the kernel image.
        unsafe {
            if let Some(poll) = (*(*lower).f_op).poll {
                poll(lower, table);
            }
            base::fput(lower);
        }
        Ok(())
    };
    // Without memory the poller is not told of the removal.
    let _ = watch();
}

/// Returns the event of an open file of the view; null if it is gone.
///
/// # Safety
///
/// [`tracing_open_file_tr`] must have been called for the file's inode, and the mutex be held.
#[no_mangle]
unsafe extern "C" fn event_file_file(file: *mut base::file) -> *mut bindings::trace_event_file {
    // SAFETY: by the contract; an open file has its inode.
    let event = unsafe { event_of((*file).f_inode) };
    event.map_or(null_mut(), EventFile::as_ptr)
}
