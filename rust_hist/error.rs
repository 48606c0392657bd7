// SPDX-License-Identifier: GPL-2.0

//! The errors of a trigger command: an errno for the writer and a message for `error_log`.
//!
//! C counterpart: the `ERRORS` table and `hist_err()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c). The pure layers return a
//! [`Refusal`]; the glue passes its entry to `tracing_log_err()` and returns its errno.
//!
//! Context: any.

use core::ffi::CStr;

use crate::alloc::{
    AllocError,
    Vec, //
};

/// Declares an enum of messages and the table of their texts from one list, so that the two cannot disagree.
macro_rules! kinds_with_texts {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $kind:ident: $text:literal,)*) => {
        $(#[$about])*
        ///
        /// The discriminant of a message (`kind as u8`) is its index in `TEXTS`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $kind,)*
        }

        impl $name {
            /// The texts of all messages, in the order of their discriminants.
            pub const TEXTS: &'static [&'static CStr] = &[$($text,)*];

            /// Returns the text of the message as `error_log` shows it.
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
    /// A message of `error_log` on a trigger.
    ErrKind:
    /// Never logged; gives the other messages the numbers of the C table.
    NoError: c"No error",
    /// A trigger of this event already defines a variable with this name.
    DuplicateVar: c"Variable already defined",
    /// Triggers of two events define a variable with this name.
    VarNotUnique: c"Variable name not unique, need to use fully qualified name (subsys.event.var) for variable",
    /// More variables than [`crate::limits::VARS_MAX`].
    TooManyVars: c"Too many variables defined",
    /// A list item of a variable token has no `=`.
    MalformedAssignment: c"Malformed assignment",
    /// The trigger with this name has other keys, values, variables or sort keys.
    NamedMismatch: c"Named hist trigger doesn't match existing named trigger (includes variables)",
    /// The event already has this trigger; the errno is [`Errno::Eexist`].
    TriggerEexist: c"Hist trigger already exists",
    /// `cont` or `clear` found no trigger; the errno is [`Errno::Enoent`].
    TriggerEnoentClear: c"Can't clear or continue a nonexistent hist trigger",
    /// `clock=` names no trace clock.
    SetClockFail: c"Couldn't set trace_clock",
    /// The modifier is unknown, or not allowed for this field.
    BadFieldModifier: c"Invalid field modifier",
    /// An expression has more than three operators.
    TooManySubexpr: c"Too many subexpressions (3 max)",
    /// Only one operand of an operator is in microseconds.
    TimestampMismatch: c"Timestamp units in expression don't match",
    /// The actions of the trigger use more fields of the event than C has variables for.
    TooManyFieldVars: c"Too many field variables defined",
    /// The event of an action's parameter is unknown.
    EventFileNotFound: c"Event file not found",
    /// The other event has no trigger with the same keys.
    HistNotFound: c"Matching event histogram not found",
    /// The helper trigger of an action's parameter was refused without a message.
    HistCreateFail: c"Couldn't create histogram for field",
    /// The helper trigger does not define the variable.
    SynthVarNotFound: c"Couldn't find synthetic variable",
    /// The synthetic event of the action is unknown.
    SynthEventNotFound: c"Couldn't find synthetic event",
    /// A parameter has another type than the field of the synthetic event.
    SynthTypeMismatch: c"Param type doesn't match synthetic event field type",
    /// The action has fewer parameters than the synthetic event has fields.
    SynthCountMismatch: c"Param count doesn't match synthetic event field count",
    /// Never logged; C logs it after the reason why a field cannot be a parameter of an action.
    FieldVarParseFail: c"Couldn't parse field variable",
    /// The variable that C creates for a field has the name of another one, or is one too many.
    VarCreateFindFail: c"Couldn't create or find variable",
    /// The argument of `onmax`, `onchange` or `onover` has no `$`.
    OnxNotVar: c"For onmax(x) or onchange(x), x must be a variable",
    /// The tracked variable is not defined by this trigger.
    OnxVarNotFound: c"Couldn't find onmax or onchange variable",
    /// The variable that C creates for the tracked value has the name of another one, or is one too many.
    OnxVarCreateFail: c"Couldn't create onmax or onchange variable",
    /// Never logged; C logs it after the reason why a field cannot be saved.
    FieldVarCreateFail: c"Couldn't create field variable",
    /// An action has more than [`crate::limits::PARAMS_MAX`] parameters.
    TooManyParams: c"Too many action params",
    /// No trigger defines the variable of a parameter `$v`.
    ParamNotFound: c"Couldn't find param",
    /// A parameter is too short to be the name of anything.
    InvalidParam: c"Invalid action param",
    /// A handler has no action.
    ActionNotFound: c"No action found",
    /// `save()` has no parameters.
    NoSaveParams: c"No params found for save()",
    /// The trigger has a second `save()`; the errno is [`Errno::Eexist`].
    TooManySaveActions: c"Can't have more than one save() action per hist",
    /// The handler does not support the action.
    ActionMismatch: c"Handler doesn't support action",
    /// A closing parenthesis is missing.
    NoClosingParen: c"No closing paren found",
    /// The parameter of `onmatch()` has no `system.`.
    SubsysNotFound: c"Missing subsystem",
    /// The event of `onmatch()` is unknown.
    InvalidSubsysEvent: c"Invalid subsystem or event name",
    /// A key refers to a variable of another trigger.
    InvalidRefKey: c"Using variable references in keys not supported",
    /// No trigger defines the variable of a reference.
    VarNotFound: c"Couldn't find variable",
    /// The event has no such field.
    FieldNotFound: c"Couldn't find field",
    /// Nothing follows `=`.
    EmptyAssignment: c"Empty assignment",
    /// The suffix of a sort field is neither `.ascending` nor `.descending`.
    InvalidSortModifier: c"Invalid sort modifier",
    /// An item of `sort=` is empty.
    EmptySortField: c"Empty sort field",
    /// `sort=` has more than two fields.
    TooManySortFields: c"Too many sort fields (Max = 2)",
    /// A sort field is neither key nor value.
    InvalidSortField: c"Sort field must be a key or a val",
    /// An operand is a string or a stack.
    InvalidStrOperand: c"String type can not be an operand in expression",
    /// A token starts with a digit and is not a number.
    ExpectNumber: c"Expecting numeric literal",
    /// Text follows `-(..)`.
    UnaryMinusSubexpr: c"Unary minus not supported in sub-expressions",
    /// A constant divisor is 0; the errno is [`Errno::Edom`].
    DivisionByZero: c"Division by zero",
    /// `nohitcount` would leave no column; the errno is [`Errno::Enoent`].
    NeedNohcVal: c"Non-hitcount value is required for 'nohitcount'",
    // C has no counterpart of the messages below.
    /// A value is a string or the name of a task, which cannot be summed.
    StringValue: c"String type can not be a value",
    /// A word is neither a flag nor a handler.
    UnknownWord: c"Unknown parameter",
    /// The command has no `keys=`.
    NoKeys: c"No keys given",
    /// The trigger has more than eight keys.
    TooManyKeys: c"Too many keys (Max = 8)",
    /// The keys together exceed [`crate::limits::KEY_SIZE_MAX`].
    KeyTooLong: c"Keys are too long (Max = 1032 bytes, a string of no fixed length counts 256)",
    /// The trigger has more than eight values besides the raw hitcount.
    TooManyVals: c"Too many values (Max = 8)",
    /// `size=` is not a number, or out of range.
    InvalidSize: c"Size must be a number from 128 to 131072",
    /// `size=A..B` is no range of numbers, or out of range.
    InvalidSizes: c"The sizes of size=A..B must be numbers from 128 to 1048576, A at most B",
    /// A table that may grow has variables that are no numbers.
    GrowingVars: c"size=A..B can't be combined with variables that are strings or stacks",
    /// A table with `others` has variables or tracked values.
    OthersVars: c"others can't be combined with onmax, onchange, onover, or variables that are kept in the table",
    /// `expire()` is no time from 100 ms to an hour.
    InvalidExpiry: c"expire() needs a time from 100ms to 1h, a number with ms, s, m or h",
    /// `expire()` is given twice.
    ExpiryTwice: c"expire() may be given once",
    /// A trigger with `expire()` keeps no variable that somebody could take.
    ExpiryNoVar: c"expire() needs a variable that is a number and kept in the table",
    /// A trigger with `expire()` has tracked values, of which each generation would have its own.
    ExpiryTracks: c"expire() can't be combined with onmax, onchange or onover",
    /// The number of `.log2=N` is not from 0 to 6.
    InvalidScale: c"The N of .log2=N must be a number from 0 to 6",
    /// A parameter of `quantiles()` is no percentage, or was given twice.
    InvalidQuantile: c"A quantile is a number above 0 up to 100, with at most 3 decimals, given once",
    /// `quantiles()` has more than [`crate::limits::QUANTILES_MAX`] parameters.
    TooManyQuantiles: c"Too many quantiles (Max = 8)",
    /// Not exactly one key has buckets, as `quantiles()` needs.
    QuantilesKey: c"quantiles() needs exactly one key with .log2, .log2=N or .buckets=N",
    /// The saved values of a row would be lost when `quantiles()` folds rows.
    QuantilesSave: c"quantiles() can't be combined with save()",
    /// The sort field is the key that `quantiles()` folds.
    FoldedSort: c"This key is folded by quantiles(), sort by one of its quantiles",
    /// The filter looks at a variable.
    FilterVar: c"A filter has no variables: filter the synthetic event that has it, or use onover()",
    /// Nothing precedes or nothing follows the word `if`.
    NoFilter: c"Incomplete filter",
    /// The trigger has more than eight handlers.
    TooManyActions: c"Too many handlers (Max = 8)",
    /// An operator lacks an operand.
    MissingOperand: c"Operand missing in expression",
    /// The text of an expression exceeds the buffer that C has for it; the errno is [`Errno::E2big`].
    ExprTooLong: c"Expression is too long (Max = 255 characters)",
    /// A unary minus is not followed by a parenthesis.
    UnaryMinusParens: c"Unary minus needs parentheses: -(..)",
    /// The size or type of the field is not supported; the errno is [`Errno::Enomem`].
    UnsupportedField: c"Field type not supported",
    /// The argument of `onmax`, `onchange` or `onover` is a string or a stack.
    OnxNotNumber: c"For onmax(x) or onchange(x), x must be a number",
    /// The DELTA of `onchange(x,DELTA)` is 0 or no number.
    InvalidDelta: c"The DELTA of onchange(x,DELTA) must be a number above 0",
    /// The T of `onover(x,T)` is missing, no number, or below 0 where `x` never is.
    InvalidThreshold: c"The T of onover(x,T[,H]) must be a number, below 0 only if x can be",
    /// The H of `onover(x,T,H)` is no number, or no `x` is as low as T-H.
    InvalidHysteresis: c"The H of onover(x,T,H) must be a number, and T-H one that x can be",
    /// `limit()` is no number from 1 to 1000000 with a unit.
    InvalidLimit: c"limit() needs a number from 1 to 1000000 and a unit: N/s, N/m or N/h",
    /// The trigger has `limit()` and no action.
    LimitNoAction: c"limit() needs an action to limit",
    /// `overhead()` is no percentage from 0.01 to 100.
    InvalidBudget: c"overhead() needs a percentage from 0.01 to 100 with its sign, as in overhead(1%)",
    /// A parameter is no field but the name of a variable without its `$`; the detail is the parameter with the `$`.
    MissingDollar: c"A variable as a parameter needs its dollar sign",
    /// A column is a variable of the trigger, and another one a field of the same name.
    AmbiguousColumn: c"A variable and a field of the same name are both columns",
    /// `join()` takes names of fields and nothing else.
    JoinField: c"join() takes fields of the event without modifiers",
    /// Nothing in the trigger reads a variable of another one.
    JoinNoRef: c"join() needs a reference to a variable of another trigger",
    /// The variable's table has no such key; the detail is the keys of that table.
    JoinMismatch: c"The fields of join() are of other types or sizes than the keys of the variable",
    /// The trigger reads more than 16 variables; the errno is [`Errno::Enomem`].
    TooManyRefs: c"Too many variable references (Max = 16)",
    /// Another trigger, a tracer or a reader uses the snapshot; the errno is [`Errno::Ebusy`].
    SnapshotBusy: c"The snapshot of this instance is in use",
    /// The kernel has no snapshots; the errno is [`Errno::Enodev`].
    NoSnapshot: c"Snapshots are not built into this kernel",
    /// Another trigger reads variables of the trigger to remove; the errno is [`Errno::Ebusy`].
    TriggerInUse: c"Variables of this trigger are used by another trigger",
    /// No trigger was removed. The command succeeds; the entry shows the most similar trigger.
    NotRemoved: c"No such trigger, below is the nearest one to",
    /// No trigger was removed, as the event has none. The command succeeds.
    NoneToRemove: c"No such trigger, the event has none",
    /// A variable that is a constant has nearly the name of a parameter. The command succeeds.
    LikeParameter: c"Warning: this is a variable, which nothing in the trigger reads, did you mean",
    /// A reference may never find an entry. The command succeeds.
    NeverFound: c"Warning: the variable may never be found, its keys are of other types or sizes",
    /// A negative number is divided, is a divisor, or is tracked by `onmax()`. The command succeeds.
    SignLost: c"Warning: a negative number counts as a large one here, as in C",
}

kinds_with_texts! {
    /// A message of `error_log` on a filter.
    FilterErr:
    /// Never logged; gives the other messages the numbers of the C table.
    NoError: c"No error",
    /// No operator follows the field, or `.function` does not support it.
    InvalidOp: c"Invalid operator",
    /// A parenthesis is not closed; the errno is [`Errno::Enoent`].
    TooManyOpen: c"Too many '('",
    /// A parenthesis was not opened; the errno is [`Errno::Eperm`].
    TooManyClose: c"Too few '('",
    /// A quote has no end; the errno is [`Errno::Esrch`].
    MissingQuote: c"Missing matching quote",
    /// `CPUS` without a brace.
    MissingBraceOpen: c"Missing '{'",
    /// The brace of `CPUS{` is not closed.
    MissingBraceClose: c"Missing '}'",
    /// The operand is a number of 24 or more characters, or a string of 256 or more.
    OperandTooLong: c"Operand too long",
    /// A number for a field that is a string.
    ExpectString: c"Expecting string field",
    /// A string for a field that is a number.
    ExpectDigit: c"Expecting numeric field",
    /// The field supports no such operator or operand.
    IllegalFieldOp: c"Illegal operation for field type",
    /// The event has no such field.
    FieldNotFound: c"Field not found",
    /// The operand is no number, or has more than 64 bits.
    IllegalIntval: c"Illegal integer value",
    /// Never logged here: for the filter of a whole subsystem.
    BadSubsysFilter: c"Couldn't find or set field in one of a subsystem's events",
    /// Something else than an operator follows a condition; the errno is [`Errno::Eperm`].
    TooManyPreds: c"Too many terms in predicate expression",
    /// The text ends with an operator, or with a `!` after one.
    InvalidFilter: c"Meaningless filter expression",
    /// The braces of `CPUS{..}` have no list of CPUs.
    InvalidCpulist: c"Invalid cpulist",
    /// Never logged here: for the events of the function tracer.
    IpFieldOnly: c"Only 'ip' field is supported for function trace",
    /// The operand is neither a number nor a string in quotes.
    InvalidValue: c"Invalid value (did you forget quotes)?",
    /// `.function` names no function.
    NoFunction: c"Function not found",
    /// Any error without a message in C.
    Errno: c"Error",
    /// The text has no condition, only `!`.
    NoFilter: c"No filter found",
}

/// The errno of a refusal, positive as in `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Errno {
    /// Not permitted: C's errno for some mistakes in a filter.
    Eperm = 1,
    /// No such entry.
    Enoent = 2,
    /// No such process: C's errno for a quote without end in a filter.
    Esrch = 3,
    /// Too long.
    E2big = 7,
    /// Out of memory; as in C also the errno of a field whose type is not supported.
    Enomem = 12,
    /// In use.
    Ebusy = 16,
    /// Exists already.
    Eexist = 17,
    /// No such device: the kernel was built without the feature.
    Enodev = 19,
    /// Invalid argument.
    Einval = 22,
    /// Division by zero.
    Edom = 33,
    /// Number out of range.
    Erange = 34,
}

impl Errno {
    /// Returns the errno as a positive number.
    pub const fn code(self) -> i32 {
        // CAST: the enum is `repr(i32)`, so each discriminant is an `i32`.
        self as i32
    }
}

/// One entry of `error_log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry<K = ErrKind> {
    /// The message.
    pub kind: K,
    /// Column of the caret in the logged command, the prefix (`hist:` or `rhist:`) included.
    pub at: u16,
}

/// The error of a command: an errno and a message.
///
/// The glue logs [`Refusal::entry`] and returns [`Refusal::errno`]. Without memory a refusal has no entry.
///
/// PARITY: in C each caller of the failed function may add another entry, less precise than the first.
///
/// # Examples
///
/// ```
/// use rust_hist::error::{LogEntry, ErrKind, Errno, Refusal};
///
/// let refusal = Refusal::new(Errno::Einval, ErrKind::VarNotFound, 10);
///
/// assert_eq!(refusal.errno.code(), 22);
/// assert_eq!(refusal.entry(), Some(LogEntry { kind: ErrKind::VarNotFound, at: 10 }));
/// assert_eq!(ErrKind::VarNotFound.text(), c"Couldn't find variable");
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal<K = ErrKind> {
    /// The errno for the writer.
    pub errno: Errno,
    entry: Option<LogEntry<K>>,
    detail: Vec<u8>,
}

impl Refusal {
    /// Returns a refusal without a message.
    pub fn silent(errno: Errno) -> Self {
        Self::with(errno, None)
    }

    /// Returns whether `kind` is the message.
    pub fn is(&self, kind: ErrKind) -> bool {
        self.entry.is_some_and(|entry| entry.kind == kind)
    }
}

impl<K: Copy> Refusal<K> {
    fn with(errno: Errno, entry: Option<LogEntry<K>>) -> Self {
        Self {
            errno,
            entry,
            detail: Vec::new(),
        }
    }

    /// Returns a refusal with one message, whose caret is in column `at`.
    pub fn new(errno: Errno, kind: K, at: u16) -> Self {
        Self::with(errno, Some(LogEntry { kind, at }))
    }

    /// Returns whether the refusal has no message.
    pub fn is_silent(&self) -> bool {
        self.entry.is_none()
    }

    /// Appends the concatenation of `parts` to the detail, which the log shows after the text of the message.
    pub fn detailed(mut self, parts: &[&[u8]]) -> Self {
        for part in parts {
            if let Err(no_memory) = self.detail.extend_from_slice(part) {
                return no_memory.into();
            }
        }
        self
    }

    /// Returns the text that follows the message; empty if there is none.
    pub fn detail(&self) -> &[u8] {
        &self.detail
    }

    /// Returns the entry of `error_log`, if there is one.
    pub fn entry(&self) -> Option<LogEntry<K>> {
        self.entry
    }
}

impl<K: Copy> From<AllocError> for Refusal<K> {
    fn from(_: AllocError) -> Self {
        Self::with(Errno::Enomem, None)
    }
}
