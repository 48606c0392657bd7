// SPDX-License-Identifier: GPL-2.0

//! The file system type `rhistfs`: mounting the view, with its options, and making the inodes of a mount.
//!
//! C headers: [`include/linux/fs_context.h`](srctree/include/linux/fs_context.h),
//! [`include/linux/fs.h`](srctree/include/linux/fs.h). C counterpart: `tracefs_fs_type` in
//! [`fs/tracefs/inode.c`](srctree/fs/tracefs/inode.c)
//!
//! Each mount has a superblock of its own. Its options are those of tracefs, and `lower=DIR`, the directory that links
//! lead to: the place of tracefs.

use super::{
    super::{
        seq,
        text::TextBuf, //
    },
    bindings, //
};
use crate::{
    sync::{
        Atomic,
        Relaxed, //
    },
    text::Out, //
};
use core::{
    cell::UnsafeCell,
    ffi::CStr,
    fmt::Write as _, //
};
use kernel::{
    bindings as base,
    error::{
        from_result,
        to_result, //
    },
    prelude::*, //
};

/// The usual place of tracefs.
const TRACEFS: &[u8] = b"/sys/kernel/tracing";
const MAGIC: c_ulong = 0x7268_6973;
/// The mode of the root, if no option says another: that of tracefs.
const MODE: u32 = 0o700;

/// The options of a mount.
pub(super) struct Options {
    uid: Atomic<u32>,
    gid: Atomic<u32>,
    mode: Atomic<u32>,
    pub(super) lower: KVec<u8>,
}

/// The options that a call of `mount()` names.
#[derive(Default)]
struct Named {
    uid: Option<u32>,
    gid: Option<u32>,
    mode: Option<u32>,
    lower: Option<KVec<u8>>,
}

impl Options {
    /// Returns the options of a mount of the view.
    ///
    /// # Safety
    ///
    /// The superblock must be one of the view, be complete, and stay for `'a`.
    pub(super) unsafe fn of<'a>(sb: *mut base::super_block) -> &'a Self {
        // SAFETY: by the contract: `fill` has stored the pointer, and `kill` frees the value after all other use.
        unsafe { &*(*sb).s_fs_info.cast::<Self>() }
    }

    fn new(named: &mut Named) -> Result<Self> {
        let mut lower = named.lower.take().unwrap_or_default();
        if lower.is_empty() {
            lower.extend_from_slice(TRACEFS, GFP_KERNEL)?;
        }
        Ok(Self {
            uid: Atomic::new(named.uid.unwrap_or(0)),
            gid: Atomic::new(named.gid.unwrap_or(0)),
            mode: Atomic::new(named.mode.unwrap_or(MODE)),
            lower,
        })
    }

    /// Changes the options that are named.
    fn change(&self, named: &Named) {
        let options = [
            (&self.uid, named.uid),
            (&self.gid, named.gid),
            (&self.mode, named.mode),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                // ORDERING: no other data depends on the value, here and where it is loaded.
                option.store(value, Relaxed);
            }
        }
    }

    /// Makes the root of a mount as the options say.
    ///
    /// # Safety
    ///
    /// The inode must be the root of a mount that has these options, and nobody else change it.
    unsafe fn apply(&self, root: *mut base::inode) {
        // SAFETY: by the contract.
        unsafe {
            self.own(root);
            // CAST: `Named::set` lets only bits of a mode pass.
            (*root).i_mode = base::S_IFDIR as u16 | self.mode.load(Relaxed) as u16;
        }
    }

    /// Gives an inode to the user and the group of the options.
    ///
    /// # Safety
    ///
    /// The inode must be live, and nobody else change it.
    unsafe fn own(&self, inode: *mut base::inode) {
        // SAFETY: by the contract. The view is mounted in the first user namespace alone, whose numbers are the kernel's.
        unsafe {
            (*inode).i_uid.val = self.uid.load(Relaxed);
            (*inode).i_gid.val = self.gid.load(Relaxed);
        }
    }
}

impl Named {
    /// Takes one option; `None` if there is no option of this name.
    fn set(&mut self, key: &CStr, value: &CStr) -> Option<Result> {
        let number = |base, most| {
            let mut number = 0;
            // SAFETY: the value is a string, and the number has room.
            to_result(unsafe { base::kstrtouint(value.as_char_ptr(), base, &raw mut number) })?;
            match number <= most {
                true => Ok(Some(number)),
                false => Err(EINVAL),
            }
        };
        // The last number stands for no user and no group.
        const LAST: u32 = u32::MAX - 1;
        let (option, number) = match key.to_bytes() {
            b"uid" => (&mut self.uid, number(10, LAST)),
            b"gid" => (&mut self.gid, number(10, LAST)),
            b"mode" => (&mut self.mode, number(8, 0o7777)),
            b"lower" => return Some(self.set_lower(value.to_bytes())),
            _ => return None,
        };
        Some(number.map(|number| *option = number))
    }

    fn set_lower(&mut self, path: &[u8]) -> Result {
        if path.first() != Some(&b'/') {
            return Err(EINVAL);
        }
        let mut lower = KVec::new();
        lower.extend_from_slice(path, GFP_KERNEL)?;
        self.lower = Some(lower);
        Ok(())
    }
}

/// The type, which `register_filesystem()` adds to the list of all.
struct Type(UnsafeCell<base::file_system_type>);

// SAFETY: after it is registered only the core uses the value, under its own locks.
unsafe impl Sync for Type {}

static TYPE: Type = Type(UnsafeCell::new(base::file_system_type {
    name: c"rhistfs".as_ptr().cast(),
    owner: super::this_module(),
    init_fs_context: Some(begin),
    kill_sb: Some(kill),
    ..pin_init::zeroed()
}));

const CONTEXT: &bindings::fs_context_operations = &bindings::fs_context_operations {
    free: Some(free),
    parse_param: Some(parse),
    get_tree: Some(get_tree),
    reconfigure: Some(reconfigure),
    ..pin_init::zeroed()
};

const SUPER: &base::super_operations = &base::super_operations {
    statfs: Some(base::simple_statfs),
    drop_inode: Some(base::inode_just_drop),
    show_options: Some(show_options),
    ..pin_init::zeroed()
};

/// Lets users mount the view. Process context, sleeps.
pub(super) fn register() -> Result {
    // SAFETY: the type is complete and static.
    to_result(unsafe { base::register_filesystem(TYPE.0.get()) })
}

/// Undoes [`register`]. The view is not mounted, as a mount would pin the module.
pub(super) fn unregister() {
    // SAFETY: `register` has registered the type.
    unsafe { base::unregister_filesystem(TYPE.0.get()) };
}

/// Returns the options that the call of `mount()` names.
///
/// # Safety
///
/// The context must be one that [`begin`] has begun, and nobody else use it for `'a`.
unsafe fn named<'a>(fc: *mut bindings::fs_context) -> &'a mut Named {
    // SAFETY: by the contract.
    unsafe { &mut *(*fc).fs_private.cast::<Named>() }
}

/// # Safety
///
/// For the VFS, with a new context.
unsafe extern "C" fn begin(fc: *mut base::fs_context) -> c_int {
    from_result(|| {
        let fc = fc.cast::<bindings::fs_context>();
        let named = KBox::new(Named::default(), GFP_KERNEL)?;
        // SAFETY: by the contract.
        unsafe {
            (*fc).fs_private = KBox::into_raw(named).cast();
            (*fc).ops = CONTEXT;
        }
        Ok(0)
    })
}

/// # Safety
///
/// For the VFS, with a context that [`begin`] has begun.
unsafe extern "C" fn free(fc: *mut bindings::fs_context) {
    // SAFETY: `begin` has stored the pointer, and nobody uses it after this.
    drop(unsafe { KBox::from_raw((*fc).fs_private.cast::<Named>()) });
}

/// # Safety
///
/// For the VFS, with a context that [`begin`] has begun, and a parameter.
unsafe extern "C" fn parse(
    fc: *mut bindings::fs_context,
    param: *mut bindings::fs_parameter,
) -> c_int {
    from_result(|| {
        // SAFETY: by the contract; a parameter of this type has a string.
        let (key, value) = unsafe {
            let is_string = (*param).type_() == bindings::fs_value_type_fs_value_is_string;
            let value = match is_string {
                true => CStr::from_char_ptr((*param).__bindgen_anon_1.string),
                false => c"",
            };
            (CStr::from_char_ptr((*param).key), value)
        };
        // The VFS knows some options itself, and reports those that nobody knows.
        // SAFETY: by the contract.
        match unsafe { named(fc) }.set(key, value) {
            Some(result) => result.map(|()| 0),
            // CAST: a small number.
            None => Err(Error::from_errno(-(base::ENOPARAM as c_int))),
        }
    })
}

/// # Safety
///
/// For the VFS, with a context that [`begin`] has begun.
unsafe extern "C" fn get_tree(fc: *mut bindings::fs_context) -> c_int {
    // SAFETY: by the contract.
    unsafe { bindings::get_tree_nodev(fc, Some(fill)) }
}

/// # Safety
///
/// For the VFS, with a superblock that is being made.
unsafe extern "C" fn fill(sb: *mut base::super_block, fc: *mut bindings::fs_context) -> c_int {
    from_result(|| {
        if !super::view::is_ready() {
            // The module is being loaded, which may still fail.
            return Err(ENODEV);
        }
        // SAFETY: by the contract.
        let options = KBox::new(Options::new(unsafe { named(fc) })?, GFP_KERNEL)?;
        // SAFETY: by the contract. The operations are constant.
        unsafe {
            (*sb).s_fs_info = KBox::into_raw(options).cast();
            (*sb).s_blocksize = base::PAGE_SIZE as c_ulong;
            (*sb).s_blocksize_bits = base::PAGE_SHIFT as u8;
            (*sb).s_magic = MAGIC;
            (*sb).s_op = SUPER;
            base::set_default_d_op(sb, super::view::ENTRIES);
            let root = super::view::root(sb)?;
            Options::of(sb).apply(root);
            (*sb).s_root = base::d_make_root(root);
            if (*sb).s_root.is_null() {
                return Err(ENOMEM);
            }
        }
        Ok(0)
    })
}

/// # Safety
///
/// For the VFS, with a superblock that nobody uses any more.
unsafe extern "C" fn kill(sb: *mut base::super_block) {
    // SAFETY: by the contract.
    let options = unsafe { (*sb).s_fs_info.cast::<Options>() };
    // SAFETY: by the contract.
    unsafe { base::kill_anon_super(sb) };
    if !options.is_null() {
        // SAFETY: `fill` has stored the pointer, and there are no inodes any more whose users need the value.
        drop(unsafe { KBox::from_raw(options) });
    }
}

/// Changes the options of a mount: `mount -o remount`. Entries that are in use keep their owner.
///
/// # Safety
///
/// For the VFS, with a context that [`begin`] has begun, for a mount of the view.
unsafe extern "C" fn reconfigure(fc: *mut bindings::fs_context) -> c_int {
    // SAFETY: by the contract, and the VFS holds the lock of the superblock, which is complete.
    let (named, sb) = unsafe { (named(fc), (*(*fc).root).d_sb) };
    // SAFETY: by the contract.
    let options = unsafe { Options::of(sb) };
    if named
        .lower
        .as_deref()
        .is_some_and(|lower| *lower != *options.lower)
    {
        // Links that are in use would lead to the former place.
        return EINVAL.to_errno();
    }
    options.change(named);
    // SAFETY: the root belongs to the mount, and changes under the lock of the superblock.
    unsafe { options.apply((*(*sb).s_root).d_inode) };
    0
}

/// # Safety
///
/// For the VFS, with a `seq_file` that is being shown, and the root of a mount of the view.
unsafe extern "C" fn show_options(m: *mut base::seq_file, root: *mut base::dentry) -> c_int {
    // SAFETY: by the contract.
    let options = unsafe { Options::of((*root).d_sb) };
    let write = |out: &mut seq::SeqWriter<'_>| {
        for (name, id) in [("uid", &options.uid), ("gid", &options.gid)] {
            // ORDERING: no other data depends on the value.
            let id = id.load(Relaxed);
            if id != 0 {
                write!(out, ",{name}={id}")?;
            }
        }
        // ORDERING: no other data depends on the value.
        let mode = options.mode.load(Relaxed);
        if mode != MODE {
            write!(out, ",mode={mode:o}")?;
        }
        if &*options.lower != TRACEFS {
            out.write_bytes(b",lower=")?;
            for &byte in options.lower.iter() {
                match byte {
                    // As in all files that show mounts.
                    b' ' | b'\t' | b'\n' | b'\\' => write!(out, "\\{byte:03o}")?,
                    _ => out.write_bytes(&[byte])?,
                }
            }
        }
        Ok(())
    };
    // SAFETY: by the contract.
    unsafe { seq::show(m.cast(), write) }
}

/// Makes an inode; `ENOMEM` without memory.
///
/// # Safety
///
/// The superblock must be that of a mount of the view, and the operations constant, or null.
pub(super) unsafe fn inode(
    sb: *mut base::super_block,
    mode: u16,
    of_inode: *const base::inode_operations,
    of_file: *const base::file_operations,
) -> Result<*mut base::inode> {
    // SAFETY: by the contract.
    let inode = unsafe { base::new_inode(sb) };
    if inode.is_null() {
        return Err(ENOMEM);
    }
    // SAFETY: nobody else has the new inode.
    unsafe {
        (*inode).i_ino = base::get_next_ino().into();
        (*inode).i_mode = mode;
        base::simple_inode_init_ts(inode);
        Options::of(sb).own(inode);
        if u32::from(mode) & base::S_IFMT == base::S_IFDIR {
            base::inc_nlink(inode);
        }
        if !of_inode.is_null() {
            (*inode).i_op = of_inode;
        }
        if !of_file.is_null() {
            (*inode).__bindgen_anon_3.i_fop = of_file;
        }
    }
    Ok(inode)
}

/// Returns the text of a link: the place of tracefs, the path, and a NUL.
///
/// # Safety
///
/// The superblock must be that of a mount of the view.
pub(super) unsafe fn link(sb: *mut base::super_block, path: &CStr) -> Result<TextBuf> {
    // SAFETY: by the contract, and an entry of the mount is in use.
    let options = unsafe { Options::of(sb) };
    TextBuf::joined(&[&options.lower, path.to_bytes_with_nul()])
}
