// SPDX-License-Identifier: GPL-2.0

//! The map of the C implementation, and what it needs of the kernel.
//!
//! `scripts/bench-map` compiles `kernel/trace/tracing_map.c` of the kernel's source, with
//! the kernel's own headers, and links the object. What that calls of the kernel is below. Memory
//! comes as kmalloc gives it out: objects of one size class side by side, so that cache lines are
//! shared as they are there.

use std::alloc::{alloc_zeroed, handle_alloc_error, Layout};
use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

#[repr(C)]
struct TracingMap {
    _opaque: [u8; 0],
}

#[repr(C)]
struct TracingMapElt {
    _opaque: [u8; 0],
}

type Compare = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;

unsafe extern "C" {
    fn tracing_map_create(
        bits: c_uint,
        key_size: c_uint,
        ops: *const c_void,
        data: *mut c_void,
    ) -> *mut TracingMap;
    fn tracing_map_add_sum_field(map: *mut TracingMap) -> c_int;
    fn tracing_map_add_key_field(
        map: *mut TracingMap,
        offset: c_uint,
        compare: Option<Compare>,
    ) -> c_int;
    fn tracing_map_cmp_num(size: c_int, signed: c_int) -> Option<Compare>;
    fn tracing_map_init(map: *mut TracingMap) -> c_int;
    fn tracing_map_insert(map: *mut TracingMap, key: *mut c_void) -> *mut TracingMapElt;
    fn tracing_map_update_sum(elt: *mut TracingMapElt, i: c_uint, n: u64);
    fn tracing_map_read_sum(elt: *mut TracingMapElt, i: c_uint) -> u64;
}

/// A map of the C implementation with 8-byte keys and a hit count. It is never freed.
pub(crate) struct CMap {
    map: *mut TracingMap,
    hitcount: c_uint,
}

// SAFETY: the functions that `CMap` calls once it is made may be called on all CPUs at once.
unsafe impl Sync for CMap {}

impl CMap {
    /// Returns an empty map for `1 << bits` keys, set up as a trigger does it.
    pub(crate) fn new(bits: u32) -> Self {
        // SAFETY: without callbacks; `private_data` is not looked at.
        let map = unsafe { tracing_map_create(bits, 8, ptr::null(), ptr::null_mut()) };
        // A pointer of the last page is an error.
        assert!(map.addr() < usize::MAX - 4096, "tracing_map_create()");

        // SAFETY: the map is new and nobody else has it.
        let (hitcount, result) = unsafe {
            let hitcount = tracing_map_add_sum_field(map);
            let compare = tracing_map_cmp_num(8, 0);
            assert!(tracing_map_add_key_field(map, 0, compare) >= 0);
            (hitcount, tracing_map_init(map))
        };
        assert_eq!(result, 0, "tracing_map_init()");

        Self {
            map,
            hitcount: hitcount.try_into().expect("an index"),
        }
    }

    /// Finds or inserts `key` and counts a hit of it; `None` if the map is full.
    #[inline(always)]
    pub(crate) fn hit(&self, key: u64) -> Option<()> {
        let mut key = key;

        // SAFETY: the map is set up, and the key has the size that it was made for.
        let elt = unsafe { tracing_map_insert(self.map, (&raw mut key).cast()) };
        if elt.is_null() {
            return None;
        }
        // SAFETY: an element lives as long as its map, and has this sum.
        unsafe { tracing_map_update_sum(elt, self.hitcount, 1) };
        Some(())
    }

    /// Returns the hit count of `key`, which is inserted if it is not there.
    pub(crate) fn hitcount(&self, key: u64) -> u64 {
        let mut key = key;

        // SAFETY: as in `hit`.
        unsafe {
            let elt = tracing_map_insert(self.map, (&raw mut key).cast());
            if elt.is_null() {
                0
            } else {
                tracing_map_read_sum(elt, self.hitcount)
            }
        }
    }
}

const PAGE: usize = 4096;

/// For each power of two the rest of a page that its objects come from. None is ever given back.
static SLABS: Mutex<[(usize, usize); 13]> = Mutex::new([(0, 0); 13]);

/// Returns `n` zeroed bytes, aligned to `align`.
fn zeroed(n: usize, align: usize) -> *mut u8 {
    let layout = Layout::from_size_align(n, align).expect("a power of two");
    // SAFETY: `n` is not 0.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory
}

/// Returns `size` zeroed bytes of the next larger class.
fn object(size: usize) -> *mut c_void {
    let size = size.max(8).next_power_of_two();
    if size > PAGE {
        return zeroed(size, PAGE).cast();
    }

    let mut slabs = SLABS.lock().unwrap_or_else(PoisonError::into_inner);
    let (next, left) = &mut slabs[size.trailing_zeros() as usize];
    if *left < size {
        *next = zeroed(PAGE, PAGE).expose_provenance();
        *left = PAGE;
    }
    let at = *next;
    *next += size;
    *left -= size;
    ptr::with_exposed_provenance_mut(at)
}

#[unsafe(no_mangle)]
extern "C" fn __kmalloc_noprof(size: usize, _flags: c_uint) -> *mut c_void {
    object(size)
}

#[unsafe(no_mangle)]
extern "C" fn __kmalloc_cache_noprof(
    _cache: *mut c_void,
    _flags: c_uint,
    size: usize,
) -> *mut c_void {
    object(size)
}

#[unsafe(no_mangle)]
extern "C" fn get_zeroed_page_noprof(_flags: c_uint) -> c_ulong {
    zeroed(PAGE, PAGE).expose_provenance() as c_ulong
}

#[unsafe(no_mangle)]
extern "C" fn kfree(_object: *const c_void) {}

#[unsafe(no_mangle)]
extern "C" fn free_pages(_addr: c_ulong, _order: c_uint) {}

/// The array of the kernel's caches, of which only the elements' values are read.
#[unsafe(no_mangle)]
static kmalloc_caches: [usize; 1024] = [0; 1024];

/// Sorting is not measured; nothing below this is called.
fn unused() -> ! {
    std::process::abort()
}

#[unsafe(no_mangle)]
extern "C" fn sort() {
    unused()
}

#[unsafe(no_mangle)]
extern "C" fn vmalloc_array_noprof() {
    unused()
}

#[unsafe(no_mangle)]
extern "C" fn vfree() {
    unused()
}

#[unsafe(no_mangle)]
extern "C" fn __SCT__WARN_trap() {
    unused()
}

#[unsafe(no_mangle)]
static __SCK__WARN_trap: usize = 0;
