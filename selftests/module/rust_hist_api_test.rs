// SPDX-License-Identifier: GPL-2.0

//! The in-kernel API of synthetic events, used in every wrong way, for selftests/test.d/api.
//!
//! All checks are made as the module is loaded, which fails with `EINVAL` if one of them does, and the
//! log says which. What is traced meanwhile is for the test to look at. What the module creates stays
//! until it is unloaded.
//!
//! The functions are declared as C has them: a wrong pointer is part of the test.

use core::{
    borrow::Borrow,
    ffi::CStr,
    ptr::{
        null,
        null_mut, //
    },
};
use kernel::{
    error::code,
    ffi::{
        c_char,
        c_int,
        c_uint,
        c_void, //
    },
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

module! {
    type: ApiTest,
    name: "rust_hist_api_test",
    authors: ["The rust_hist project"],
    description: "Checks of the in-kernel API of synthetic events",
    license: "GPL",
    params: {
        rounds: u32 {
            default: 0,
            description: "How often api_trace is traced after the checks, 20 ms apart, or till a signal comes",
        },
    },
}

const SYNTHETIC: &CStr = c"synthetic";
/// `-ENOTSUPP`, which user space does not know.
const ENOTSUPP: c_int = -524;
/// An address that nothing can be read from.
const BAD: u64 = 0xdead_0000_0000_0000;

/// `struct dynevent_cmd`.
#[repr(C)]
struct Cmd {
    buffer: *mut c_char,
    size: usize,
    len: usize,
    event_name: *const c_char,
    n_fields: c_uint,
    kind: c_uint,
    run_command: Option<unsafe extern "C" fn(*mut Cmd) -> c_int>,
    private_data: *mut c_void,
}

/// `struct synth_event_trace_state`, and more than that.
type State = [u64; 32];

/// `struct synth_field_desc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Desc(*const c_char, *const c_char);

extern "C" {
    fn synth_event_cmd_init(cmd: *mut Cmd, buf: *mut c_char, maxlen: c_int);
    fn __synth_event_gen_cmd_start(
        cmd: *mut Cmd,
        name: *const c_char,
        module: *mut c_void,
        ...
    ) -> c_int;
    fn synth_event_gen_cmd_array_start(
        cmd: *mut Cmd,
        name: *const c_char,
        module: *mut c_void,
        fields: *mut Desc,
        n_fields: c_uint,
    ) -> c_int;
    fn synth_event_add_field(cmd: *mut Cmd, kind: *const c_char, name: *const c_char) -> c_int;
    fn synth_event_add_field_str(cmd: *mut Cmd, text: *const c_char) -> c_int;
    fn synth_event_add_fields(cmd: *mut Cmd, fields: *mut Desc, n_fields: c_uint) -> c_int;
    fn dynevent_create(cmd: *mut Cmd) -> c_int;
    fn synth_event_create(
        name: *const c_char,
        fields: *mut Desc,
        n_fields: c_uint,
        module: *mut c_void,
    ) -> c_int;
    fn synth_event_delete(name: *const c_char) -> c_int;
    fn synth_event_trace(file: *mut c_void, n_vals: c_uint, ...) -> c_int;
    fn synth_event_trace_array(file: *mut c_void, vals: *mut u64, n_vals: c_uint) -> c_int;
    fn synth_event_trace_start(file: *mut c_void, state: *mut State) -> c_int;
    fn synth_event_add_next_val(val: u64, state: *mut State) -> c_int;
    fn synth_event_add_val(name: *const c_char, val: u64, state: *mut State) -> c_int;
    fn synth_event_trace_end(state: *mut State) -> c_int;
    fn trace_get_event_file(
        instance: *const c_char,
        system: *const c_char,
        event: *const c_char,
    ) -> *mut c_void;
    fn trace_put_event_file(file: *mut c_void);
    fn trace_set_clr_event(system: *const c_char, event: *const c_char, set: c_int) -> c_int;
}

/// Calls one of the functions above.
macro_rules! api {
    ($call:expr) => {
        // SAFETY: none is claimed: whatever is passed, the function has to put up with it, or be given
        // what it asks for.
        unsafe { $call }
    };
}

/// Counts what is not as it should be.
struct Checks {
    module: *mut c_void,
    failed: u32,
}

fn desc(kind: &'static CStr, name: &'static CStr) -> Desc {
    Desc(kind.as_char_ptr(), name.as_char_ptr())
}

/// The address of a string as a value.
fn text(text: &'static CStr) -> u64 {
    text.as_char_ptr() as u64
}

/// A command that has just been initialised, with its buffer.
struct Builder {
    cmd: KBox<Cmd>,
    _buffer: KVec<c_char>,
}

impl Builder {
    fn new(size: usize) -> Result<Self> {
        let mut buffer = KVec::from_elem(0, size, GFP_KERNEL)?;
        let mut cmd = KBox::new(
            Cmd {
                buffer: null_mut(),
                size: 1,
                len: 1,
                event_name: null(),
                n_fields: 9,
                kind: 0,
                run_command: None,
                private_data: null_mut(),
            },
            GFP_KERNEL,
        )?;
        let size = c_int::try_from(size)?;
        api!(synth_event_cmd_init(&mut *cmd, buffer.as_mut_ptr(), size));
        Ok(Self {
            cmd,
            _buffer: buffer,
        })
    }

    /// Starts the event `name` with as many fields as there are tokens.
    fn start(&mut self, checks: &Checks, name: &'static CStr, pairs: usize) -> c_int {
        let cmd = &raw mut *self.cmd;
        let name = name.as_char_ptr();
        let (kind, field) = (c"u8".as_char_ptr(), c"f".as_char_ptr());
        let end = null::<c_char>();
        // One for each number, and the end.
        macro_rules! start {
            ($($n:literal)*) => {
                api!(__synth_event_gen_cmd_start(
                    cmd,
                    name,
                    checks.module,
                    $({ let _ = $n; kind }, field,)*
                    end
                ))
            };
        }
        match pairs {
            0 => start!(),
            1 => start!(1),
            33 => start!(
                1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
                33
            ),
            64 => start!(
                1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
                1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            ),
            _ => start!(
                1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
                1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
                65
            ),
        }
    }

    fn field(&mut self, kind: &CStr, name: &CStr) -> c_int {
        api!(synth_event_add_field(
            &mut *self.cmd,
            kind.as_char_ptr(),
            name.as_char_ptr()
        ))
    }

    fn end(&mut self) -> c_int {
        api!(dynevent_create(&mut *self.cmd))
    }
}

/// An event file, given back as it is dropped.
struct File(*mut c_void);

impl File {
    fn get(event: &CStr) -> Result<Self> {
        let file = api!(trace_get_event_file(
            null(),
            SYNTHETIC.as_char_ptr(),
            event.as_char_ptr()
        ));
        kernel::error::from_err_ptr(file).map(Self)
    }

    fn array(&self, values: &mut [u64]) -> c_int {
        // CAST: a handful.
        let count = values.len() as c_uint;
        api!(synth_event_trace_array(self.0, values.as_mut_ptr(), count))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        api!(trace_put_event_file(self.0));
    }
}

fn enable(event: &CStr, on: bool) -> c_int {
    api!(trace_set_clr_event(
        SYNTHETIC.as_char_ptr(),
        event.as_char_ptr(),
        on.into()
    ))
}

fn delete(event: &CStr) -> c_int {
    api!(synth_event_delete(event.as_char_ptr()))
}

impl Checks {
    fn equal(&mut self, what: &str, got: c_int, wanted: c_int) {
        if got != wanted {
            pr_err!("FAILED: {}: got {}, wanted {}\n", what, got, wanted);
            self.failed += 1;
        }
    }

    fn create(&self, name: &CStr, fields: &[Desc], count: c_uint) -> c_int {
        api!(synth_event_create(
            name.as_char_ptr(),
            fields.as_ptr().cast_mut(),
            count,
            self.module
        ))
    }

    /// S-API-01.
    fn creation(&mut self) -> Result {
        let fields = [desc(c"u64", c"a"), desc(c"char[16]", c"b")];
        let many = [desc(c"u8", c"f"); 65];
        let einval = code::EINVAL.to_errno();
        let made = self.create(c"api_a", &fields, 2);
        self.equal("an event", made, 0);
        let again = self.create(c"api_a", &fields, 2);
        self.equal("it again", again, code::EEXIST.to_errno());
        let refused = [
            ("65 fields", self.create(c"api_b", &many, 65)),
            ("no fields", self.create(c"api_b", &fields, 0)),
            (
                "no type",
                self.create(c"api_b", &[fields[0], Desc(null(), fields[0].1)], 2),
            ),
            (
                "no field name",
                self.create(c"api_b", &[Desc(fields[0].0, null())], 1),
            ),
            (
                "a bad type",
                self.create(c"api_b", &[desc(c"u65", c"a")], 1),
            ),
            (
                "a bad array",
                self.create(c"api_b", &[desc(c"char[257]", c"a")], 1),
            ),
            (
                "a bad field name",
                self.create(c"api_b", &[desc(c"u64", c"1")], 1),
            ),
            ("a bad name", self.create(c"api-b", &fields, 2)),
            ("a removal", self.create(c"!api_a", &fields, 2)),
            ("an empty name", self.create(c"", &fields, 2)),
            (
                "no name",
                api!(synth_event_create(
                    null(),
                    fields.as_ptr().cast_mut(),
                    2,
                    self.module
                )),
            ),
        ];
        for (what, result) in refused {
            self.equal(what, result, einval);
        }
        let most = self.create(c"api_b", &many, 64);
        self.equal("64 fields", most, 0);
        self.equal("its deletion", delete(c"api_b"), 0);
        self.equal(
            "its second deletion",
            delete(c"api_b"),
            code::ENOENT.to_errno(),
        );
        self.equal("a deletion", delete(c"api_a"), 0);
        Ok(())
    }

    /// S-API-02, S-API-03.
    fn stepwise(&mut self) -> Result {
        let einval = code::EINVAL.to_errno();
        let mut b = Builder::new(2048)?;
        self.equal("fields after init", b.cmd.n_fields as c_int, 0);
        let started = b.start(self, c"api_steps", 1);
        self.equal("a start", started, 0);
        self.equal("a field", b.field(c"char[16]", c"b"), 0);
        self.equal("a bad type", b.field(c"foo", c"b"), einval);
        let cmd = &raw mut *b.cmd;
        let name = c"api_steps".as_char_ptr();
        self.equal(
            "no type",
            api!(synth_event_add_field(cmd, null(), name)),
            einval,
        );
        self.equal(
            "no name",
            api!(synth_event_add_field(cmd, name, null())),
            einval,
        );
        self.equal(
            "no field",
            api!(synth_event_add_field_str(cmd, null())),
            einval,
        );
        let field = c"unsigned int c".as_char_ptr();
        self.equal("a text", api!(synth_event_add_field_str(cmd, field)), 0);
        let mut two = [desc(c"long[]", c"d"), desc(c"s8", c"e")];
        self.equal(
            "two fields",
            api!(synth_event_add_fields(cmd, two.as_mut_ptr(), 2)),
            0,
        );
        let mut bad = [Desc(null(), two[0].1)];
        self.equal(
            "a field without type",
            api!(synth_event_add_fields(cmd, bad.as_mut_ptr(), 1)),
            einval,
        );
        b.cmd.kind += 1;
        self.equal("a field of another kind", b.field(c"u8", c"x"), einval);
        self.equal(
            "a text of another kind",
            api!(synth_event_add_field_str(cmd, field)),
            einval,
        );
        let started = b.start(self, c"api_steps", 0);
        self.equal("a start of another kind", started, einval);
        let started = api!(synth_event_gen_cmd_array_start(
            cmd,
            name,
            self.module,
            null_mut(),
            0
        ));
        self.equal("an array start of another kind", started, einval);
        b.cmd.kind -= 1;
        // Stays for the test to look at.
        self.equal("the end", b.end(), 0);
        self.equal("the end again", b.end(), code::EEXIST.to_errno());

        for (pairs, wanted) in [(33, 0), (64, 0), (65, einval)] {
            let mut b = Builder::new(2048)?;
            let started = b.start(self, c"api_many", pairs);
            self.equal("many pairs", started, wanted);
            if wanted == 0 {
                self.equal("their number", b.cmd.n_fields as c_int, pairs as c_int);
                let more = b.field(c"u8", c"more");
                self.equal("one more", more, if pairs == 64 { einval } else { 0 });
            }
            if pairs == 33 {
                self.equal("the end of many", b.end(), 0);
                self.equal("the deletion of many", delete(c"api_many"), 0);
            }
        }
        self.overflow()
    }

    /// S-API-02, S-API-08: what does not fit.
    fn overflow(&mut self) -> Result {
        let mut b = Builder::new(40)?;
        let started = b.start(self, c"api_long", 1);
        self.equal("a start in 40 bytes", started, 0);
        let e2big = code::E2BIG.to_errno();
        self.equal(
            "too long a field",
            b.field(c"unsigned long", c"a_name_of_some_length"),
            e2big,
        );
        self.equal("a field after it", b.field(c"u8", c"g"), e2big);
        // The command is half of what was meant.
        self.equal("the end of it", b.end(), e2big);
        let mut b = Builder::new(8)?;
        let started = b.start(self, c"api_long", 0);
        self.equal("a start in 8 bytes", started, e2big);
        let mut b = Builder::new(2048)?;
        let started = b.start(self, c"api_long", 0);
        self.equal("a start", started, 0);
        self.equal("an end without fields", b.end(), code::EINVAL.to_errno());
        // Of an array only the definition as a whole says that it is none.
        self.equal("a bad array", b.field(c"char[xx]", c"b"), 0);
        self.equal("an end with it", b.end(), code::EINVAL.to_errno());
        Ok(())
    }

    /// S-API-04, S-API-07.
    fn tracing(&mut self) -> Result {
        let fields = [
            desc(c"s8", c"a"),
            desc(c"char[8]", c"b"),
            desc(c"char[]", c"c"),
            desc(c"u16", c"d"),
        ];
        let einval = code::EINVAL.to_errno();
        let made = self.create(c"api_trace", &fields, 4);
        self.equal("an event to trace", made, 0);
        let name = c"api_trace".as_char_ptr();
        let file = api!(trace_get_event_file(
            c"none".as_char_ptr(),
            SYNTHETIC.as_char_ptr(),
            name
        ));
        self.equal(
            "an unknown instance",
            file as isize as c_int,
            code::ENOENT.to_errno(),
        );
        let file = api!(trace_get_event_file(
            null(),
            SYNTHETIC.as_char_ptr(),
            c"api_none".as_char_ptr()
        ));
        self.equal("an unknown event", file as isize as c_int, einval);

        let file = File::get(c"api_trace")?;
        let mut values = [u64::MAX, text(c"one"), text(c"two"), 0x1_0002];
        self.equal("a disabled event", file.array(&mut values), 0);
        self.equal(
            "the deletion of what is held",
            delete(c"api_trace"),
            code::EBUSY.to_errno(),
        );
        self.equal("enabling", enable(c"api_trace", true), 0);
        self.equal("four values", file.array(&mut values), 0);
        self.equal("three values", file.array(&mut values[..3]), einval);
        self.equal(
            "no values",
            api!(synth_event_trace_array(file.0, null_mut(), 0)),
            einval,
        );
        self.equal(
            "five values",
            file.array(&mut [1, text(c"x"), text(c"x"), 1, 1]),
            einval,
        );
        let many = api!(synth_event_trace(
            file.0,
            u32::MAX,
            1u64,
            text(c"x"),
            text(c"x"),
            1u64
        ));
        self.equal("too many values", many, einval);
        let four = api!(synth_event_trace(
            file.0,
            4,
            7u64,
            text(c"three"),
            text(c""),
            9u64
        ));
        self.equal("four arguments", four, 0);
        let long = c"0123456789012345678901234567890123456789012345678901234567890123456789";
        self.equal(
            "long strings",
            file.array(&mut [1, text(long), text(long), 1]),
            0,
        );
        self.equal("bad strings", file.array(&mut [2, BAD, BAD, 2]), 0);
        self.equal("no strings", file.array(&mut [3, 0, 0, 3]), 0);

        let other = api!(trace_get_event_file(
            null(),
            c"sched".as_char_ptr(),
            c"sched_switch".as_char_ptr()
        ));
        let other = File(kernel::error::from_err_ptr(other)?);
        self.equal("an event of others", other.array(&mut values), einval);
        let mut state: State = [0; 32];
        let start = api!(synth_event_trace_start(other.0, &mut state));
        self.equal("a start on one of others", start, einval);
        drop(file);
        self.equal(
            "the deletion of what is enabled",
            delete(c"api_trace"),
            code::EBUSY.to_errno(),
        );
        Ok(())
    }

    /// S-API-05, S-API-06.
    fn piecewise(&mut self) -> Result {
        let fields = [
            desc(c"char[8]", c"a"),
            desc(c"s16", c"b"),
            desc(c"u64", c"c"),
            desc(c"u8", c"d"),
        ];
        let einval = code::EINVAL.to_errno();
        let made = self.create(c"api_piece", &fields, 4);
        self.equal("an event for pieces", made, 0);
        let file = File::get(c"api_piece")?;
        let mut state: State = [u64::MAX; 32];
        let state = &raw mut state;
        let start = || api!(synth_event_trace_start(file.0, state));
        let next = |value: u64| api!(synth_event_add_next_val(value, state));
        let named =
            |name: &CStr, value: u64| api!(synth_event_add_val(name.as_char_ptr(), value, state));
        let end = || api!(synth_event_trace_end(state));

        self.equal(
            "no state",
            api!(synth_event_trace_start(file.0, null_mut())),
            einval,
        );
        self.equal(
            "no state to add to",
            api!(synth_event_add_next_val(1, null_mut())),
            einval,
        );
        self.equal(
            "no state to end",
            api!(synth_event_trace_end(null_mut())),
            einval,
        );

        self.equal("a disabled start", start(), 0);
        self.equal("a value for nobody", named(c"b", 1), 0);
        self.equal("the other way for nobody", next(1), einval);
        self.equal("a disabled end", end(), 0);

        self.equal("enabling", enable(c"api_piece", true), 0);
        let results = [
            start(),
            next(text(c"first")),
            next(0xffff_fffe),
            next(3),
            next(4),
            next(5),
            named(c"b", 1),
            end(),
        ];
        for (n, (result, wanted)) in results
            .into_iter()
            .zip([0, 0, 0, 0, 0, einval, einval, 0])
            .enumerate()
        {
            self.equal("values in order", result, wanted);
            if result != wanted {
                pr_err!("step {}\n", n);
            }
        }
        self.equal("a second end", end(), einval);
        self.equal("a value after the end", next(1), einval);
        let results = [
            start(),
            named(c"c", 6),
            named(c"none", 7),
            named(c"a", 0),
            named(c"a", BAD),
            named(c"c", 8),
            next(9),
            end(),
        ];
        for (n, (result, wanted)) in results
            .into_iter()
            .zip([0, 0, einval, einval, 0, 0, einval, 0])
            .enumerate()
        {
            self.equal("values by name", result, wanted);
            if result != wanted {
                pr_err!("step {}\n", n);
            }
        }
        // Nothing set, nothing of the buffer's past shown.
        self.equal("a start", start(), 0);
        self.equal("an end", end(), 0);

        let file = File::get(c"api_trace")?;
        self.equal(
            "dynamic fields",
            api!(synth_event_trace_start(file.0, state)),
            ENOTSUPP,
        );
        self.equal("a value for them", next(1), einval);
        self.equal("their end", end(), einval);
        self.stacks()
    }

    /// S-API-06: stacks.
    fn stacks(&mut self) -> Result {
        let file = File::get(c"api_steps")?;
        let einval = code::EINVAL.to_errno();
        let mut state: State = [u64::MAX; 32];
        self.equal("enabling", enable(c"api_steps", true), 0);
        let mut values = [1, text(c"x"), 3, [0u64; 32].as_ptr() as u64, 5];
        self.equal("a stack", file.array(&mut values), einval);
        let start = api!(synth_event_trace_start(file.0, &mut state));
        self.equal("a stack in pieces", start, ENOTSUPP);
        Ok(())
    }
}

impl Checks {
    /// S-API-04 with triggers, which the test places meanwhile; twice in each round.
    fn rounds(&mut self, rounds: impl Borrow<u32>) -> Result {
        let file = File::get(c"api_trace")?;
        for n in 0..u64::from(*rounds.borrow()) {
            let mut values = [n, text(c"static"), text(c"dynamic"), 5];
            self.equal("a round", file.array(&mut values), 0);
            values[3] = 6;
            self.equal("a round", file.array(&mut values), 0);
            if current!().signal_pending() {
                break;
            }
            fsleep(Delta::from_millis(20));
        }
        Ok(())
    }
}

/// Deletes what was created.
struct ApiTest;

/// What stays until the module goes.
const EVENTS: [&CStr; 3] = [c"api_steps", c"api_trace", c"api_piece"];

impl kernel::Module for ApiTest {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let mut checks = Checks {
            module: module.as_ptr().cast(),
            failed: 0,
        };
        let test = Self;
        checks.creation()?;
        checks.stepwise()?;
        checks.tracing()?;
        checks.piecewise()?;
        for event in EVENTS {
            // An event that is enabled keeps its module loaded.
            checks.equal("disabling", enable(event, false), 0);
        }
        checks.rounds(module_parameters::rounds.value())?;
        if checks.failed > 0 {
            return Err(EINVAL);
        }
        Ok(test)
    }
}

impl Drop for ApiTest {
    fn drop(&mut self) {
        for event in EVENTS {
            // If a check failed they may be anything.
            enable(event, false);
            delete(event);
        }
    }
}
