// SPDX-License-Identifier: GPL-2.0

//! Why a trigger is refused: an errno for the writer, entries for `error_log`.
//!
//! C counterpart: the `ERRORS` table and `hist_err()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! The pure rooms return a [`Refusal`]; only the glue turns it into an errno and into entries of
//! `tracing_log_err()`.
//!
//! Context: any.

use core::ffi::CStr;

use crate::alloc::{
    AllocError,
    Vec, //
};

/// Declares the kinds of entries of one error log and the table of their texts from one list, so that
/// they cannot disagree.
macro_rules! kinds_with_texts {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $kind:ident: $text:literal,)*) => {
        $(#[$about])*
        ///
        /// The number of a kind (`kind as u8`) is its index in `TEXTS`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $kind,)*
        }

        impl $name {
            /// The texts of all kinds, in the order of their numbers.
            pub const TEXTS: &'static [&'static CStr] = &[$($text,)*];

            /// The text of this kind as `error_log` shows it.
            pub const fn text(self) -> &'static CStr {
                match self {
                    $(Self::$kind => $text,)*
                }
            }
        }
    };
}

pub(crate) use kinds_with_texts;

kinds_with_texts! {
    /// What an entry of `error_log` says.
    ErrKind:
    /// Never logged; keeps the numbers those of the C table.
    NoError: c"No error",
    /// The name is a variable of this event already.
    DuplicateVar: c"Variable already defined",
    /// `$v` names variables of two events.
    VarNotUnique: c"Variable name not unique, need to use fully qualified name (subsys.event.var) for variable",
    /// More variables than [`crate::limits::VARS_MAX`].
    TooManyVars: c"Too many variables defined",
    /// A list item of a variable token has no `=`.
    MalformedAssignment: c"Malformed assignment",
    /// A named trigger of another shape has this name.
    NamedMismatch: c"Named hist trigger doesn't match existing named trigger (includes variables)",
    /// The event has this very trigger; goes with [`Errno::Eexist`].
    TriggerEexist: c"Hist trigger already exists",
    /// `cont` or `clear` found no trigger; goes with [`Errno::Enoent`].
    TriggerEnoentClear: c"Can't clear or continue a nonexistent hist trigger",
    /// `clock=` names none of the trace clocks.
    SetClockFail: c"Couldn't set trace_clock",
    /// The modifier is unknown, or not allowed where it stands.
    BadFieldModifier: c"Invalid field modifier",
    /// An expression has a fourth operator.
    TooManySubexpr: c"Too many subexpressions (3 max)",
    /// Only one side of an operator counts microseconds.
    TimestampMismatch: c"Timestamp units in expression don't match",
    /// Implicit variables of actions ran out.
    TooManyFieldVars: c"Too many field variables defined",
    /// The event of an action's parameter is unknown.
    EventFileNotFound: c"Event file not found",
    /// No trigger with the same keys on the other event.
    HistNotFound: c"Matching event histogram not found",
    /// The helper trigger of an action's parameter was refused.
    HistCreateFail: c"Couldn't create histogram for field",
    /// The helper trigger has no such variable.
    SynthVarNotFound: c"Couldn't find synthetic variable",
    /// The action names no known synthetic event.
    SynthEventNotFound: c"Couldn't find synthetic event",
    /// A parameter does not fit the type of the synthetic field.
    SynthTypeMismatch: c"Param type doesn't match synthetic event field type",
    /// Fewer parameters than the synthetic event has fields.
    SynthCountMismatch: c"Param count doesn't match synthetic event field count",
    /// The field behind an implicit variable is not valid.
    FieldVarParseFail: c"Couldn't parse field variable",
    /// An implicit variable clashes or finds no room.
    VarCreateFindFail: c"Couldn't create or find variable",
    /// The argument of `onmax` or `onchange` has no `$`.
    OnxNotVar: c"For onmax(x) or onchange(x), x must be a variable",
    /// The tracked variable is not defined by this trigger.
    OnxVarNotFound: c"Couldn't find onmax or onchange variable",
    /// No room for the tracked value.
    OnxVarCreateFail: c"Couldn't create onmax or onchange variable",
    /// `save()` names a field that cannot be saved.
    FieldVarCreateFail: c"Couldn't create field variable",
    /// More parameters than an action takes.
    TooManyParams: c"Too many action params",
    /// A `$v` parameter is defined nowhere.
    ParamNotFound: c"Couldn't find param",
    /// A parameter is too short to be one.
    InvalidParam: c"Invalid action param",
    /// A handler without an action.
    ActionNotFound: c"No action found",
    /// `save()` of nothing.
    NoSaveParams: c"No params found for save()",
    /// A second `save()`; goes with [`Errno::Eexist`].
    TooManySaveActions: c"Can't have more than one save() action per hist",
    /// The handler does not go with the action.
    ActionMismatch: c"Handler doesn't support action",
    /// A parenthesis stays open.
    NoClosingParen: c"No closing paren found",
    /// `onmatch()` without `system.`.
    SubsysNotFound: c"Missing subsystem",
    /// `onmatch()` of an unknown event.
    InvalidSubsysEvent: c"Invalid subsystem or event name",
    /// A key refers to a variable of another trigger.
    InvalidRefKey: c"Using variable references in keys not supported",
    /// A reference leads nowhere.
    VarNotFound: c"Couldn't find variable",
    /// The event has no such field.
    FieldNotFound: c"Couldn't find field",
    /// Nothing stands after `=`.
    EmptyAssignment: c"Empty assignment",
    /// A sort field ends in neither direction.
    InvalidSortModifier: c"Invalid sort modifier",
    /// An item of `sort=` is empty.
    EmptySortField: c"Empty sort field",
    /// A third sort field.
    TooManySortFields: c"Too many sort fields (Max = 2)",
    /// A sort field is neither key nor value.
    InvalidSortField: c"Sort field must be a key or a val",
    /// A string in arithmetic.
    InvalidStrOperand: c"String type can not be an operand in expression",
    /// A token starts with a digit and is no number.
    ExpectNumber: c"Expecting numeric literal",
    /// Text follows `-(..)`.
    UnaryMinusSubexpr: c"Unary minus not supported in sub-expressions",
    /// A constant divisor is 0; goes with [`Errno::Edom`].
    DivisionByZero: c"Division by zero",
    /// `nohitcount` would leave no column; goes with [`Errno::Enoent`].
    NeedNohcVal: c"Non-hitcount value is required for 'nohitcount'",
    // From here on the entries are our own: C has no counterpart.
    /// A string or the name of a task as a value: there is nothing to sum.
    StringValue: c"String type can not be a value",
    /// A word that is neither flag nor handler.
    UnknownWord: c"Unknown parameter",
    /// A command without `keys=`.
    NoKeys: c"No keys given",
    /// A fourth key.
    TooManyKeys: c"Too many keys (Max = 3)",
    /// The keys take more bytes than a map's entry has for them.
    KeyTooLong: c"Keys are too long (Max = 504 bytes, a string of no fixed length counts 256)",
    /// A third value besides the raw hitcount.
    TooManyVals: c"Too many values (Max = 2)",
    /// `size=` is no number, or none that a map can have.
    InvalidSize: c"Size must be a number from 128 to 131072",
    /// The word `if` with nothing before or behind it.
    NoFilter: c"Incomplete filter",
    /// A ninth handler.
    TooManyActions: c"Too many handlers (Max = 8)",
    /// An operator with nothing on one side.
    MissingOperand: c"Operand missing in expression",
    /// The text of an expression outgrows what C has for it; goes with [`Errno::E2big`].
    ExprTooLong: c"Expression is too long (Max = 255 characters)",
    /// A minus sign before something else than a parenthesis.
    UnaryMinusParens: c"Unary minus needs parentheses: -(..)",
    /// A field of a size or type that no column can hold; goes with [`Errno::Enomem`].
    UnsupportedField: c"Field type not supported",
    /// The argument of `onmax` or `onchange` is a string or a stack.
    OnxNotNumber: c"For onmax(x) or onchange(x), x must be a number",
    /// A parameter is the name of a variable without its `$`, and no field; the detail has it with it.
    MissingDollar: c"A variable as a parameter needs its dollar sign",
    /// A seventeenth variable is read; goes with [`Errno::Enomem`].
    TooManyRefs: c"Too many variable references (Max = 16)",
    /// Another trigger, a tracer or a reader has the snapshot; goes with [`Errno::Ebusy`].
    SnapshotBusy: c"The snapshot of this instance is in use",
    /// The kernel has no snapshots; goes with [`Errno::Enodev`].
    NoSnapshot: c"Snapshots are not built into this kernel",
    /// A trigger that is to go has variables that another one reads; goes with [`Errno::Ebusy`].
    TriggerInUse: c"Variables of this trigger are used by another trigger",
    /// Nothing is removed; goes with no errno, and the entry shows the nearest trigger.
    NotRemoved: c"No such trigger, below is the nearest one to",
    /// As [`ErrKind::NotRemoved`], and there is none.
    NoneToRemove: c"No such trigger, the event has none",
    /// A reference that no hit may ever find; goes with no errno.
    NeverFound: c"Warning: the variable may never be found, its keys are of other types or sizes",
}

/// The errno of a refusal, positive as in `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Errno {
    /// No such entry.
    Enoent = 2,
    /// Too long.
    E2big = 7,
    /// Out of memory; C answers so for fields that no column can hold.
    Enomem = 12,
    /// In use.
    Ebusy = 16,
    /// Exists already.
    Eexist = 17,
    /// No such device: what is asked for is not there.
    Enodev = 19,
    /// Invalid argument.
    Einval = 22,
    /// Division by zero.
    Edom = 33,
    /// Number out of range.
    Erange = 34,
}

impl Errno {
    /// The number, positive.
    pub const fn code(self) -> i32 {
        // CAST: `repr(i32)`, all discriminants fit.
        self as i32
    }
}

/// Most entries of one refusal: why a reference leads nowhere, and what asked for it.
const ENTRIES_MAX: usize = 6;

/// One entry for `error_log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What is said; `kind as u8` is the index into [`ErrKind::TEXTS`].
    pub kind: ErrKind,
    /// Column of the caret in the logged command (`hist:...` or `rhist:...`, prefix included).
    pub at: u16,
}

/// Why a command is refused.
///
/// The glue logs [`Refusal::entries`] in order and returns [`Refusal::errno`]. A refusal without
/// entries is one that C does not explain either.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the writer gets.
    pub errno: Errno,
    entries: [Option<Entry>; ENTRIES_MAX],
    detail: Vec<u8>,
}

impl Refusal {
    /// An errno and nothing else.
    pub fn silent(errno: Errno) -> Self {
        Self {
            errno,
            entries: [None; ENTRIES_MAX],
            detail: Vec::new(),
        }
    }

    /// An errno with one entry, its caret at column `at`.
    pub fn new(errno: Errno, kind: ErrKind, at: u16) -> Self {
        Self::silent(errno).then(Entry { kind, at })
    }

    /// The same refusal with `last` logged after what it says already.
    pub fn then(mut self, last: Entry) -> Self {
        if let Some(free) = self.entries.iter_mut().find(|entry| entry.is_none()) {
            *free = Some(last);
        }
        self
    }

    /// Whether nothing is said.
    pub fn is_silent(&self) -> bool {
        self.entries().next().is_none()
    }

    /// Whether this is what is said first.
    pub fn begins(&self, kind: ErrKind) -> bool {
        self.entries()
            .next()
            .is_some_and(|entry| entry.kind == kind)
    }

    /// As [`Refusal::then`], unless nothing is said: without memory nothing is wrong with the text.
    pub fn then_if_any(self, last: Entry) -> Self {
        if self.is_silent() {
            self
        } else {
            self.then(last)
        }
    }

    /// The same refusal with `first` logged before what it says already.
    pub fn after(self, first: Option<Entry>) -> Self {
        let Some(first) = first else { return self };

        self.entries()
            .fold(Self::silent(self.errno).then(first), Self::then)
    }

    /// The same refusal, with these pieces of one text behind what the last entry says: what the command
    /// does not show.
    pub fn detailed(mut self, pieces: &[&[u8]]) -> Self {
        for piece in pieces {
            if let Err(no_memory) = self.detail.extend_from_slice(piece) {
                return no_memory.into();
            }
        }
        self
    }

    /// What goes behind the text of the last entry, if anything does.
    pub fn detail(&self) -> &[u8] {
        &self.detail
    }

    /// The entries to log, in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().flatten().copied()
    }
}

impl From<AllocError> for Refusal {
    fn from(_: AllocError) -> Self {
        Self::silent(Errno::Enomem)
    }
}
