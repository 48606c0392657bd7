// SPDX-License-Identifier: GPL-2.0

//! Fires events a given number of times, for the selftests and the benchmarks.
//!
//! `COUNT KEYS START CONTEXT` written to debugfs' `rust_hist_test/fire` has the event `sample` fire
//! `COUNT` times, with keys `START ... START + KEYS - 1` in turn and values `0 ... COUNT - 1`. `CONTEXT` is
//! `task`, `softirq` (a tasklet), `irq` or `nmi`; the last two are for more than one CPU, they interrupt the
//! next one. The write returns when all is done. The file `fired` counts the hits since the load. The file
//! `fire_second` does the same with the event `second`.
//!
//! `EVENT COUNT KEYS VALS STRS [spread]` written to `rust_hist_test/loop` fires `EVENT`, which is `hit` or
//! `sample`, `COUNT` times in a loop with interrupts off, each time with one of `KEYS` keys, `VALS` values and
//! `STRS` (at most 16) strings, by the same random numbers whenever it is written. Keys are the numbers below
//! `KEYS`, or as many that lie anywhere in 64 bits with `spread`. The file `took` tells how long the last loop
//! took, in cycles and in nanoseconds.

use core::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    fmt::Write,
    ptr::null_mut, //
};
use kernel::{
    bindings,
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed,
        Release, //
    },
    types::Opaque,
    uaccess::UserSliceReader, //
};

/// How this architecture counts cycles, and interrupts a CPU that has its interrupts off.
#[cfg_attr(target_arch = "x86_64", path = "rust_hist_test_x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "rust_hist_test_aarch64.rs")]
mod arch;

module! {
    type: Test,
    name: "rust_hist_test",
    authors: ["The rust_hist project"],
    description: "Events with a field of every kind, for the selftests of rust_hist",
    license: "GPL",
}

/// From this key on `fixed` has no NUL, and `dyn` and `rel` have so many characters more.
const TEXT_LONG: u64 = 1000;
/// The most characters of `dyn` and `rel`.
const TEXT_LEN: u64 = 600;
/// What spreads keys: odd numbers, of which a number is the product with one other.
const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;
const SPREAD_AGAIN: u64 = 0xa076_1d64_78bd_642f;
/// Hits of one run of a tasklet, which must not take long.
const BATCH: u64 = 64;

/// How an event is fired: with `key`, `val`, 16 bytes and a string that ends with a NUL.
type Fire = unsafe extern "C" fn(u64, u64, *const c_char, *const c_char);

extern "C" {
    static rust_hist_test_text: [c_char; TEXT_LEN as usize + 1];
    fn rust_hist_test_sample(key: u64, val: u64, fixed: *const c_char, text: *const c_char);
    fn rust_hist_test_second(key: u64, val: u64, fixed: *const c_char, text: *const c_char);
    fn rust_hist_test_hit(key: u64, val: u64, fixed: *const c_char, text: *const c_char);
    fn rust_hist_test_schedule(tasklet: *mut bindings::tasklet_struct);
    fn rust_hist_test_next_cpu() -> c_int;
    fn fire_write(job: *const c_void, context: u8) -> c_int;
}

/// Events fired since the load.
static FIRED: Atomic<u64> = Atomic::new(0);
/// The job of which an NMI is to fire one event.
static NMI_JOB: Atomic<*mut Job> = Atomic::new(null_mut());
/// Cycles and nanoseconds of the last loop.
static TOOK: [Atomic<u64>; 2] = [Atomic::new(0), Atomic::new(0)];

kernel::sync::global_lock! {
    // SAFETY: `Test::init` initialises it before anything uses it.
    unsafe(uninit) static ONE_NMI: Mutex<()> = ();
}

/// Text of at most 24 bytes, padded with NULs.
#[derive(Clone, Copy)]
struct Text {
    bytes: [u8; 24],
    len: usize,
}

impl Text {
    fn new(args: fmt::Arguments<'_>) -> Self {
        let mut text = Self {
            bytes: [0; 24],
            len: 0,
        };
        // What does not fit is left out.
        let _ = text.write_fmt(args);
        text
    }

    fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        // The last byte stays a NUL.
        for (place, byte) in self.bytes[..23].iter_mut().skip(self.len).zip(s.bytes()) {
            *place = byte;
            self.len += 1;
        }
        Ok(())
    }
}

/// What a write asks for, and how far it is.
struct Job {
    count: u64,
    keys: u64,
    start: u64,
    event: Fire,
    done: Atomic<u64>,
    tasklet: Opaque<bindings::tasklet_struct>,
}

impl Job {
    /// Fires the next event, in any context, but in one at a time.
    fn fire(&self) {
        // ORDERING: The contexts of a job follow each other by what starts and awaits them.
        let done = self.done.load(Relaxed);
        let key = self.start + done % self.keys;
        let (mut fixed, text) = (
            Text::new(fmt!("fixed-{key}")),
            Text::new(fmt!("text-{key}")),
        );
        fixed.bytes[15] = 0;
        let mut dynamic = text.as_ptr();
        if key >= TEXT_LONG {
            fixed.bytes[..16].fill(b'y');
            let more = (key - TEXT_LONG).min(TEXT_LEN) as usize;
            // SAFETY: `more` is at most `TEXT_LEN`, and the text has one more byte than that.
            dynamic = unsafe {
                (&raw const rust_hist_test_text)
                    .cast::<c_char>()
                    .add(TEXT_LEN as usize - more)
            };
        }
        // SAFETY: `fixed` has 16 bytes, and both texts end with a NUL.
        unsafe { (self.event)(key, done, fixed.as_ptr(), dynamic) };
        FIRED.fetch_add(1, Relaxed);
        // ORDERING: Pairs with `send_nmi`, which ends the job's life.
        self.done.store(done + 1, Release);
    }

    /// Fires an event in an NMI on `cpu`. Fails where that cannot be sent one.
    fn send_nmi(&self, sender: &mut arch::Sender, cpu: c_int) -> Result {
        let before = self.done.load(Relaxed);
        let _one = ONE_NMI.lock();
        // ORDERING: Pairs with the exchange in `in_nmi`, which sees the job whole.
        NMI_JOB.store((&raw const *self).cast_mut(), Release);
        if let Err(e) = sender.send(cpu) {
            NMI_JOB.store(null_mut(), Relaxed);
            return Err(e);
        }
        // ORDERING: Pairs with `fire`.
        while self.done.load(Acquire) == before {
            core::hint::spin_loop();
        }
        Ok(())
    }

    /// Fires all events in the context that begins with this letter, while no CPU goes and the tasklet is set up; `EINTR`
    /// after a signal.
    fn run(&self, context: u8) -> Result {
        let mut sender = arch::Sender::new();

        while self.done.load(Relaxed) < self.count {
            if kernel::current!().signal_pending() {
                return Err(EINTR);
            }
            // SAFETY: No preconditions.
            let cpu = unsafe { rust_hist_test_next_cpu() };
            match context {
                // SAFETY: The tasklet is set up, and the job outlives its run, which is awaited.
                b's' => unsafe {
                    rust_hist_test_schedule(self.tasklet.get());
                    bindings::tasklet_kill(self.tasklet.get());
                },
                // SAFETY: `fire_irq` takes a job, and has returned when the call does.
                b'i' => unsafe {
                    let job = (&raw const *self).cast_mut().cast();
                    bindings::smp_call_function_single(cpu, Some(fire_irq), job, true.into());
                },
                b'n' => self.send_nmi(&mut sender, cpu)?,
                _ => self.fire(),
            }
        }
        Ok(())
    }
}

/// Does a job in the context that begins with this letter; `-EINTR` after a signal.
///
/// # Safety
///
/// `job` is a [`Job`], which stays meanwhile.
#[no_mangle]
unsafe extern "C" fn rust_hist_test_run(job: *const c_void, context: u8) -> c_int {
    // SAFETY: By the function's contract.
    let job = unsafe { &*job.cast::<Job>() };
    // SAFETY: Pairs with the unlock below; the tasklet is the job's own and is not scheduled yet.
    unsafe {
        bindings::tasklet_setup(job.tasklet.get(), Some(fire_tasklet));
        bindings::cpus_read_lock();
    }
    let result = job.run(context);
    // SAFETY: See above.
    unsafe { bindings::cpus_read_unlock() };
    result.map_or_else(|e| e.to_errno(), |()| 0)
}

/// Fires some events of the job whose tasklet this is.
///
/// # Safety
///
/// `tasklet` is that of a job, which stays meanwhile.
unsafe extern "C" fn fire_tasklet(tasklet: *mut bindings::tasklet_struct) {
    let tasklet = Opaque::cast_from(tasklet);
    // SAFETY: By the function's contract.
    let job = unsafe { &*kernel::container_of!(tasklet, Job, tasklet) };
    for _ in 0..BATCH {
        if job.done.load(Relaxed) < job.count {
            job.fire();
        }
    }
}

/// # Safety
///
/// `job` is a [`Job`], which stays meanwhile.
unsafe extern "C" fn fire_irq(job: *mut c_void) {
    // SAFETY: By the function's contract.
    unsafe { &*job.cast::<Job>() }.fire();
}

/// Fires an event if this NMI is for that; says whether it was. Called in an NMI.
fn in_nmi() -> bool {
    // ORDERING: Pairs with `send_nmi`.
    let job = NMI_JOB.xchg(null_mut(), Full);
    // SAFETY: Null, or a job whose writer waits in `send_nmi` until its event is fired.
    let job = unsafe { job.as_ref() };

    if let Some(job) = job {
        job.fire();
    }
    job.is_some()
}

/// What a loop does.
struct Loop {
    count: u64,
    keys: u64,
    vals: u64,
    strs: u64,
    is_spread: bool,
    event: Fire,
}

/// A number of 64 bits for each key, another for another.
fn spread(key: u64) -> u64 {
    let mut key = key.wrapping_add(1).wrapping_mul(SPREAD);
    key ^= key >> 29;
    key = key.wrapping_mul(SPREAD_AGAIN);
    key ^ (key >> 32)
}

/// Cycles and nanoseconds.
fn clocks() -> [u64; 2] {
    // SAFETY: These may be read anywhere.
    unsafe { [arch::cycles(), bindings::ktime_get_raw_fast_ns()] }
}

/// Fires the events of a loop, and takes the time.
///
/// # Safety
///
/// `what` is a [`Loop`]; interrupts are off.
unsafe extern "C" fn run_loop(what: *mut c_void) {
    // SAFETY: By the function's contract.
    let what = unsafe { &*what.cast::<Loop>() };
    let strs: [Text; 16] = core::array::from_fn(|n| Text::new(fmt!("string {n}")));
    let mut random = 88172645463325252u64;
    // A number below `n`, of 32 bits.
    let below = |bits: u64, n: u64| (bits & 0xffff_ffff).wrapping_mul(n) >> 32;

    let before = clocks();
    for _ in 0..what.count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let str = &strs[below(random >> 20, what.strs) as usize & 15];
        let key = below(random >> 32, what.keys);
        // What spreading takes is taken always.
        let spread = spread(key);
        // SAFETY: `str` has 16 bytes, and ends with a NUL.
        unsafe {
            (what.event)(
                if what.is_spread { spread } else { key },
                below(random, what.vals),
                str.as_ptr(),
                str.as_ptr(),
            )
        };
    }
    for ((took, after), before) in TOOK.iter().zip(clocks()).zip(before) {
        took.store(after.wrapping_sub(before), Relaxed);
    }
}

/// Calls `f` with the words of what is written.
fn words<T>(
    reader: &mut UserSliceReader,
    f: impl FnOnce(&mut dyn Iterator<Item = &str>) -> Result<T>,
) -> Result<T> {
    let mut bytes = [0u8; 80];
    let bytes = bytes.get_mut(..reader.len()).ok_or(EINVAL)?;
    reader.read_slice(bytes)?;
    f(&mut core::str::from_utf8(bytes)
        .map_err(|_| EINVAL)?
        .split_ascii_whitespace())
}

fn number(words: &mut dyn Iterator<Item = &str>) -> Result<u64> {
    words.next().ok_or(EINVAL)?.parse().map_err(|_| EINVAL)
}

fn write_fire(event: &Fire, reader: &mut UserSliceReader) -> Result {
    words(reader, |words| {
        let job = Job {
            count: number(words)?,
            keys: number(words)?,
            start: number(words)?,
            event: *event,
            done: Atomic::new(0),
            tasklet: Opaque::zeroed(),
        };
        let context = words.next().ok_or(EINVAL)?;
        if job.keys == 0 || !["task", "softirq", "irq", "nmi"].contains(&context) {
            return Err(EINVAL);
        }
        // SAFETY: It calls `rust_hist_test_run` with this job.
        let rc = unsafe { fire_write((&raw const job).cast(), context.as_bytes()[0]) };
        kernel::error::to_result(rc)
    })
}

fn write_loop(_: &(), reader: &mut UserSliceReader) -> Result {
    words(reader, |words| {
        let event: Fire = match words.next() {
            Some("hit") => rust_hist_test_hit,
            Some("sample") => rust_hist_test_sample,
            _ => return Err(EINVAL),
        };
        let mut what = Loop {
            count: number(words)?,
            keys: number(words)?,
            vals: number(words)?,
            strs: number(words)?,
            is_spread: false,
            event,
        };
        what.is_spread = match words.next() {
            None => false,
            Some("spread") => true,
            Some(_) => return Err(EINVAL),
        };
        // SAFETY: `run_loop` takes a `Loop`, and has returned when the call does. Whatever CPU runs it, it
        // has its interrupts off.
        let rc = unsafe {
            bindings::smp_call_function_single(
                bindings::raw_smp_processor_id() as c_int,
                Some(run_loop),
                (&raw mut what).cast(),
                true.into(),
            )
        };
        kernel::error::to_result(rc)
    })
}

/// The files go before what they use.
#[pin_data]
struct Test {
    #[pin]
    fire: File<Fire>,
    #[pin]
    fire_second: File<Fire>,
    #[pin]
    loop_file: File<()>,
    #[pin]
    fired: File<()>,
    #[pin]
    took: File<()>,
    _dir: Dir,
    _on_nmi: arch::OnNmi,
}

impl kernel::InPlaceModule for Test {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        let dir = Dir::new(c"rust_hist_test");
        // SAFETY: Called once, before anything can use it.
        unsafe { ONE_NMI.init() };
        try_pin_init!(Self {
            _on_nmi: arch::OnNmi::new()?,
            fire <- dir.write_callback_file(c"fire", rust_hist_test_sample as Fire, &write_fire),
            fire_second <- dir.write_callback_file(c"fire_second", rust_hist_test_second as Fire, &write_fire),
            loop_file <- dir.write_callback_file(c"loop", (), &write_loop),
            fired <- dir.read_callback_file(c"fired", (), &|_: &(), f: &mut fmt::Formatter<'_>| {
                writeln!(f, "{}", FIRED.load(Relaxed))
            }),
            took <- dir.read_callback_file(c"took", (), &|_: &(), f: &mut fmt::Formatter<'_>| {
                writeln!(f, "{} {}", TOOK[0].load(Relaxed), TOOK[1].load(Relaxed))
            }),
            _dir: dir,
        })
    }
}
