# SPDX-License-Identifier: GPL-2.0
#
# The common functions of the tests in test.d. The working directory is that of tracefs, or of an instance.
#
# From 'run': TRACEFS (its top), HIST (the trigger: hist or rhist), HIST_FILE and HIST_STATS (the
# per-event files; HIST_JSON and HIST_PIPE are beside them), SYNTH, SYNTH_FILE and SYNTH_PREFIX (the system, the file and the prefix of synthetic
# events), RUST (1 if the trigger is that of the module, 0 if it is the C code's).
# EVENT is always SYSTEM/NAME. TEXT is a trigger without its name: keys=pid, not hist:keys=pid.

LC_ALL=C
export LC_ALL
# Programs that busybox has built in with another behaviour: as functions, for other functions; as aliases, so that $!
# is their process.
case $SHELL_OF_TESTS in
busybox*)
	for program in bin/dmesg sbin/insmod sbin/rmmod sbin/modprobe; do
		eval "${program#*/}() { /usr/$program \"\$@\"; }"
		alias "${program#*/}=/usr/$program"
	done
	;;
esac
SELFTESTS=${SELFTESTS:-$OLDPWD}
export SELFTESTS
HIST_JSON=${HIST_FILE:-hist}_json
HIST_PIPE=${HIST_FILE:-hist}_pipe
export HIST_JSON HIST_PIPE

# number_of NAME - of a system call, on this machine
number_of() { perl -I"$SELFTESTS" -MCalls -e 'print nr(shift)' "$1"; }
# shown_call NAME - as .syscall shows it
shown_call() { printf '%-30s[%3u]' "sys_$1" "$(number_of "$1")"; }

# --- results ---

fail() {
	echo "FAILED: $*"
	exit 1
}

skip() {
	echo "$*" >"$SKIPPED"
	exit 4
}

# not CMD... - as '!' hides a failure from 'sh -e'
not() {
	if "$@"; then
		fail "this should have failed: $*"
	fi
}

# equal WHAT GOT WANTED
equal() {
	[ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

# between WHAT GOT LEAST MOST
between() {
	[ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || fail "$1: got '$2', wanted $3 to $4"
}

# has PATTERN FILE - an extended regular expression
has() {
	grep -Eq -- "$1" "$2" || {
		head -n 40 "$2"
		fail "no line of $2 matches '$1'"
	}
}

lacks() {
	if grep -Eq -- "$1" "$2"; then
		fail "a line of $2 matches '$1'"
	fi
}

# until_true CMD... - tries for some minutes, so that it gives up only where nothing moves any more
until_true() {
	tries=4000
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || fail "this did not come true: $*"
		sleep 0.05
	done
}

# start_reading FD - reads a byte. The shell's own 'read' may poll, and a hist file is ready when there is a new hit.
start_reading() { dd bs=1 count=1 <&"$1" >/dev/null 2>&1; }

# --- what is no work for a shell ---

# ask NAME ARGUMENT... - a function of lib.pl. An emulated guest takes its time to start a program, so 'run' has
# started it for all tests (ANSWERS); one at a time can ask it.
ask() {
	if [ -z "${ANSWERS:-}" ]; then
		HIST=$HIST HIST_FILE=$HIST_FILE HIST_STATS=$HIST_STATS SYNTH=$SYNTH SYNTH_FILE=$SYNTH_FILE TRACEFS=$TRACEFS RUST=$RUST \
			"$SELFTESTS/lib.pl" "$@"
		return
	fi
	printf '%s\0' $(($# + 1)) "$PWD" "$@" >&8
	ask_text=
	while IFS= read -r ask_line <&9; do
		case $ask_line in
		"$ASK_END"long*)
			cat "$TMPDIR/answer"
			return "${ask_line##* }"
			;;
		"$ASK_END"*)
			printf %s "$ask_text"
			return "${ask_line#"$ASK_END"}"
			;;
		esac
		ask_text=$ask_text$ask_line$ASK_NEWLINE
	done
	fail "nobody answers $*"
}
ASK_END=$(printf '\001')
ASK_NEWLINE='
'

# --- writing, with the exact errno ---

# write_file FILE BYTES [TRUNCATE] - one write(2); the errno's name, or nothing, is in ERRNO
write_file() { ERRNO=$(ask write_file "$@"); }

# accepted FILE BYTES
accepted() {
	printf '%s' "$2" >>"$1" || {
		tail -n 3 error_log
		fail "'$2' was refused for $1"
	}
}

# --- triggers ---

trigger_file() { echo "events/$1/trigger"; }

# place EVENT TEXT - makes a trigger
place() { accepted "events/$1/trigger" "$HIST:$2"; }

# unplace EVENT TEXT - removes one
unplace() { accepted "events/$1/trigger" "!$HIST:$2"; }

# lines EVENT - the triggers of an event as the file shows them
lines() {
	while IFS= read -r lines_line; do
		case $lines_line in '#'*) ;; *) printf '%s\n' "$lines_line" ;; esac
	done <"events/$1/trigger" || true
}

# count_triggers EVENT
count_triggers() { lines "$1" | wc -l; }

# shows EVENT TEXT [STATE] - the only trigger of the event is printed like this
shows() {
	equal "the triggers of $1" "$(lines "$1")" "$HIST:$2 [${3:-active}]"
}

# remove_all EVENT - by their own lines, the last first, as others may refer to those before
remove_all() {
	lines "$1" | tac | sed 's/ \[[a-z]*\]$//; s/^/!/' >"$TMPDIR/removed"
	while read -r remove_line; do
		accepted "events/$1/trigger" "$remove_line"
	done <"$TMPDIR/removed"
	equal "the triggers of $1 after the removal of all" "$(lines "$1")" ""
}

# accepts EVENT TEXT LINE [STATE] - it is taken, printed as LINE, and what is printed removes it
accepts() {
	place "$1" "$2"
	shows "$1" "$3" "${4:-active}"
	unplace "$1" "$3"
	equal "the triggers of $1 after its removal" "$(lines "$1")" ""
	# What is printed can be given back, which is not so of the C code (H-CMD-10, H-CMD-36, H-SPF-04).
	[ "$RUST" = 1 ] || return 0
	place "$1" "$3 [${4:-active}]"
	shows "$1" "$3" "${4:-active}"
	unplace "$1" "$3 [${4:-active}]"
	no_triggers "$1"
}

# no_triggers EVENT
no_triggers() { equal "the triggers of $1" "$(lines "$1")" ""; }

# read_back - after each test: what triggers it leaves are removed by what 'trigger' says of them, made again
# by that text, and then 'trigger' says the same. Not of the C code, as H-CMD-10, H-CMD-36 and H-SPF-04 say.
read_back() {
	[ "$RUST" = 1 ] && [ -d "/sys/module/$MODULE" ] || return 0
	cd "$TEST_DIR" || return 1
	ask read_back
}

# --- refusals ---

# entries - what the error log holds, without time stamps
entries() { sed 's/^\[ *[0-9.]*\] //' error_log; }

# refused EVENT BYTES ERRNO - BYTES is the whole command with its name; does not check the log
refused() { refusal any "$@"; }

# refused_quietly EVENT TEXT ERRNO [MESSAGE] - C logs nothing; ours the MESSAGE, if there is one
refused_quietly() {
	if [ "$RUST" = 1 ] && [ $# -gt 3 ]; then
		refusal none "$1" "$HIST:$2" "$3" "$4"
	else
		refusal none "$1" "$HIST:$2" "$3"
	fi
}

# check_error EVENT COMMAND ERRNO MESSAGE...
#
# COMMAND begins with 'hist:' and has a '^' where the caret of the last entry is to be, and an '@' where C has
# it if that is elsewhere; the name of the trigger is put in. The log then has exactly an entry for each MESSAGE,
# and ours has but the first one, or the one that has a '!' before it.
# One that ends in '...' ends so in C, and ours says more.
check_error() { refusal log "$@"; }

refusal() { ask refusal "$@"; }

# --- reading ---

# table EVENT - the rows of its histograms
table() { grep '^[{]' "events/$1/$HIST_FILE" || true; }

# rows EVENT [N] - the rows of its Nth histogram, runs of blanks as one, what is tracked after a '|'
rows() { ask rows "$1" "${2:-1}"; }

# rows_are EVENT N ROW...
rows_are() {
	rows_event=$1 rows_n=$2
	shift 2
	[ $# -eq 0 ] || set -- "$(printf '%s\n' "$@")"
	equal "the rows of histogram $rows_n of $rows_event" "$(rows "$rows_event" "$rows_n")" "${1:-}"
}

# total EVENT TITLE - Hits, Entries or Dropped of its first histogram
total() { ask total "$@"; }

# stat_of EVENT TITLE - a number of the account of its first trigger
stat_of() { ask stat_of "$@"; }

# account EVENT CALLS... - checks that its first trigger has been called so often, the second ...; those beyond the
# last number as often as that one says, and '-' says nothing. Calls are what is asked for because the file adds
# them up itself, of the hits in the rows, the drops, and what was ignored: one that is missing is missing in both.
account() { ask account "$@" || exit 1; }

# --- sources of events ---

MARK=ftrace/print

# mark N [TEXT] - N records of the event ftrace:print
mark() {
	mark_n=$1
	while [ "$mark_n" -gt 0 ]; do
		printf '%s' "${2:-mark}" >trace_marker
		mark_n=$((mark_n - 1))
	done
}

# The event of the test module, each of whose fields is a function of the key, see selftests/module.
SAMPLE=rust_hist_test/sample
FIRE=/sys/kernel/debug/rust_hist_test/fire
# The requirement for tests that use it: the module is loaded by 'run'.

# fire COUNT [KEYS [START [CONTEXT]]] - keys START, START + 1, ... in turn, values 0 ... COUNT - 1
fire() { echo "$1 ${2:-1} ${3:-0} ${4:-task}" >"$FIRE"; }

# The other event of that module: id is key as a u64, small as a u16, when is val.
SECOND=rust_hist_test/second
fire_second() { echo "$1 ${2:-1} ${3:-0} ${4:-task}" >"${FIRE}_second"; }
# fired - how many of both the module has fired since it was loaded
fired() { cat "${FIRE%/*}/fired"; }

# --- synthetic events ---

# Their files and the log of what is wrong with them are those of the top directory, also for an instance.

# synth DEFINITION... - makes them
synth() {
	for synth_text; do
		printf '%s' "$synth_text" >>"$TRACEFS/$SYNTH_FILE" || {
			tail -n 3 "$TRACEFS/error_log"
			fail "'$synth_text' was refused"
		}
	done
}

# unsynth NAME... - disables and deletes them
unsynth() {
	for synth_name; do
		[ ! -f "events/$SYNTH/$synth_name/enable" ] || echo 0 >"events/$SYNTH/$synth_name/enable"
		synth "!$synth_name"
	done
}

# synths - what the file lists
synths() { cat "$TRACEFS/$SYNTH_FILE"; }

# enable_synth NAME...
enable_synth() {
	for synth_name; do
		echo 1 >"events/$SYNTH/$synth_name/enable"
	done
}

# synth_error FILE COMMAND ERRNO [MESSAGE] - FILE is SYNTH_FILE or dynamic_events. COMMAND has a '^' where the
# caret of the log's only entry is to be. Without a MESSAGE the log stays empty.
synth_error() { ask synth_error "${LOCATION:-$SYNTH_FILE}" "$@"; }

# traced NAME - what the trace says of a synthetic event, a line for each of its records
traced() { ask traced "$1"; }

# traced_are NAME LINE...
traced_are() {
	traced_name=$1
	shift
	[ $# -eq 0 ] || set -- "$(printf '%s\n' "$@")"
	equal "the trace of $traced_name" "$(traced "$traced_name")" "${1:-}"
}

# records NAME - takes all records from the ring buffers; a line for each that is of this synthetic event: its
# bytes in hexadecimal digits, without the first eight
records() { ask records "$1"; }

# --- instances ---

# instance NAME - makes one; 'run' removes it
instance() { mkdir "$TRACEFS/instances/$1"; }

# remove_instance NAME EVENT... - removes one with its triggers, which are on these events. The view refuses to while there are
# any.
remove_instance() {
	gone_instance=instances/$1
	shift
	if [ "$IDLE" != 0 ]; then
		not rmdir "$gone_instance" 2>/dev/null
		for gone_event; do within "$gone_instance" remove_all "$gone_event"; done
	fi
	rmdir "$gone_instance"
}

# within DIRECTORY CMD... - runs a function of this file elsewhere
within() {
	within_from=$PWD
	cd "$1"
	shift
	"$@"
	cd "$within_from"
}

# --- the module ---

MODULE=rust_hist
# 'run' names a copy of its own.
MODULE_FILE=${MODULE_FILE:-$(find "/lib/modules/$(uname -r)" -name $MODULE.ko | head -n 1)}

# try_rmmod - the text of rmmod's refusal, or nothing
try_rmmod() { rmmod "$MODULE" 2>&1 || true; }

# unload - takes it out when what was on its way back has come back. The view goes before it, and leaves the test in tracefs.
unload() {
	[ "$IDLE" = 0 ] || { cd /sys/kernel/tracing && umount "$TRACEFS"; }
	until_true rmmod "$MODULE"
}

load() {
	insmod "$MODULE_FILE" "$@" || return
	[ "$IDLE" = 0 ] || { mount -t rhistfs none "$TRACEFS" && cd "$TRACEFS"; }
}

# IDLE, from 'run': references on the module that nobody uses. A mount of the view is one.
IDLE=${IDLE:-0}
unused() { read -r references </sys/module/$MODULE/refcnt && [ "$references" = "$IDLE" ]; }

# in_use - rmmod is refused because of a user
in_use() {
	case $(try_rmmod) in
	*"in use"*) ! unused || fail "nothing but a mount uses the module" ;;
	*) fail "rmmod was not refused with 'in use'" ;;
	esac
	[ -d "/sys/module/$MODULE" ] || fail "the module is gone"
}
