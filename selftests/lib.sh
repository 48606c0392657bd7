# SPDX-License-Identifier: GPL-2.0
#
# What the tests in test.d share. The working directory is that of tracefs, or of an instance.
#
# From 'run': TRACEFS (its top), HIST (the trigger: hist or rhist), HIST_FILE and HIST_STATS (the
# per-event files), SYNTH, SYNTH_FILE and SYNTH_PREFIX (the system, the file and the prefix of synthetic
# events), RUST (1 if the trigger is that of the module, 0 if it is the C code's).
# EVENT is always SYSTEM/NAME. TEXT is a trigger without its name: keys=pid, not hist:keys=pid.

LC_ALL=C
export LC_ALL

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

# --- writing, with the exact errno ---

# write_file FILE BYTES [TRUNCATE] - one write(2); the errno's name, or nothing, is in ERRNO
write_file() {
	# The numbers of O_WRONLY|O_APPEND and O_WRONLY|O_TRUNC.
	ERRNO=$(perl -e '
		my %names = (1 => "EPERM", 2 => "ENOENT", 7 => "E2BIG", 12 => "ENOMEM", 13 => "EACCES", 16 => "EBUSY",
			17 => "EEXIST", 19 => "ENODEV", 22 => "EINVAL", 28 => "ENOSPC", 33 => "EDOM", 34 => "ERANGE",
			95 => "EOPNOTSUPP");
		sub quit { my $n = $! + 0; print $names{$n} // "errno $n"; exit 0 }
		my ($file, $bytes, $truncate) = @ARGV;
		sysopen(my $f, $file, $truncate ? 01001 : 02001) or quit();
		my $n = syswrite($f, $bytes);
		defined $n or quit();
		$n == length $bytes or print "only $n bytes were taken";' -- "$@")
}

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
lines() { grep -v '^#' "events/$1/trigger" || true; }

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
	# What is printed can be given back, which is not so of the C code (H-CMD-10, H-SPF-04).
	[ "$RUST" = 1 ] && [ -z "${4:-}" ] || return 0
	place "$1" "$3"
	shows "$1" "$3"
	unplace "$1" "$3"
}

# no_triggers EVENT
no_triggers() { equal "the triggers of $1" "$(lines "$1")" ""; }

# read_back - after each test: what triggers it leaves are removed by what 'trigger' says of them, made again
# by that text, and then 'trigger' says the same. Not of the C code, as H-CMD-10 and H-SPF-04 say.
read_back() {
	[ "$RUST" = 1 ] && [ -d "/sys/module/$MODULE" ] || return 0
	cd "$TEST_DIR" || return 1
	grep -q "$HIST:" events/*/*/trigger instances/*/events/*/*/trigger 2>/dev/null || return 0
	perl -e '
		use strict;
		my $hist = $ENV{HIST};
		sub content { open(my $f, "<", shift) or return ""; local $/; my $c = <$f>; $c // "" }
		sub command {
			my ($file, $text) = @_;
			sysopen(my $f, $file, 02001) or return "$!";
			return defined syswrite($f, $text) ? "" : "$!";
		}
		my @files;
		for my $dir (".", glob "instances/*") {
			my %seen;
			for my $line (split /^/, content("$dir/show_event_triggers")) {
				$line =~ /^([^:]+):(\S+)/ or next;
				push @files, "$dir/events/$1/$2/trigger" unless $seen{"$1/$2"}++;
			}
			push @files, "$dir/events/ftrace/print/trigger" unless $seen{"ftrace/print"}++;
		}
		my (@all, %before);
		for my $file (@files) {
			my @lines = grep /^$hist:/, split /\n/, content($file);
			next unless @lines;
			$before{$file} = join "\n", sort @lines;
			push @all, [$file, $_] for @lines;
		}
		# What others refer to goes after these, and comes before them.
		my @left = reverse @all;
		for my $round (1 .. 8) {
			@left = grep { my ($file, $line) = @$_; command($file, "!" . $line =~ s/ \[\w+\]$//r) ne "" } @left;
		}
		if (@left) { print "FAILED: by its own text this is not removed: $left[0][1]\n"; exit 1 }
		for my $file (sort keys %before) {
			if (content($file) =~ /^($hist:.*)/m) { print "FAILED: by its own text this was not removed: $1\n"; exit 1 }
		}
		my @make = @all;
		for my $round (1 .. 8) {
			@make = grep {
				my ($file, $line) = @$_;
				my $paused = $line =~ s/ \[paused\]$//;
				$line =~ s/ \[active\]$//;
				$line =~ s/( if |$)/:pause$1/ if $paused;
				command($file, $line) ne "";
			} @make;
		}
		if (@make) { print "FAILED: its own text is refused: $make[0][1]\n", content("error_log"); exit 1 }
		for my $file (sort keys %before) {
			my $after = join "\n", sort grep /^$hist:/, split /\n/, content($file);
			next if $after eq $before{$file};
			print "FAILED: made again from their own text: $file: was\n$before{$file}\nis\n$after\n";
			exit 1;
		}'
}

# --- refusals ---

# entries - what the error log holds, without time stamps
entries() { sed 's/^\[ *[0-9.]*\] //' error_log; }

# refused EVENT BYTES ERRNO - the command as it stands, with its name; says nothing of the log
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
# COMMAND begins with 'hist:' and has a '^' where the caret of the last entry is to be; the name of
# the trigger is put in. The log then has exactly an entry for each MESSAGE.
check_error() { refusal log "$@"; }

# One process for all of it, as an emulated guest takes its time to make one.
refusal() {
	perl -e '
		use strict;
		my ($mode, $event, $command, $errno, @messages) = @ARGV;
		my ($hist, $dir) = ($ENV{HIST}, "events/$event");
		my $caret;
		sub fail { print "FAILED: @_\n"; exit 1 }
		sub content { open(my $f, "<", shift) or return ""; local $/; my $c = <$f>; $c // "" }
		# What a refused command must not change.
		sub snapshot {
			my $infos = join "", grep /^# trigger info/, split /^/, content("$dir/$ENV{HIST_FILE}");
			content("$dir/trigger") . content("$dir/enable") . $infos;
		}

		if ($mode eq "log") {
			$command =~ s/hist:/$hist:/;
			$caret = index $command, "^";
			$caret >= 0 or fail("the test gives no place for a caret: $command");
			substr($command, $caret, 1) = "";
		}
		my $before = snapshot();
		open(my $log, ">", "error_log") or fail("error_log: $!");
		close $log;
		sysopen(my $f, "$dir/trigger", 02001) or fail("$dir/trigger: $!");
		my $n = syswrite($f, $command);
		my $got = defined $n ? "success" : $! + 0;
		close $f;
		my %numbers = (ENOENT => 2, E2BIG => 7, ENOMEM => 12, EBUSY => 16, EEXIST => 17, ENODEV => 19, EINVAL => 22, EDOM => 33, ERANGE => 34);
		my $wanted = $numbers{$errno} // fail("no number for $errno");
		$got eq $wanted or fail("the errno of \"$command\": got $got, wanted $wanted ($errno)");
		my $after = snapshot();
		$before eq $after or fail("\"$command\" changed the state of $event from:\n${before}to:\n$after");
		exit if $mode eq "any";

		# The log has a command without the sign of its removal.
		my $shown = $command;
		$caret-- if $shown =~ s/^!// && $caret;
		my $want = "";
		my $location = "$hist:" . $event =~ tr,/,:,r;
		my @lines = split /^/, content("error_log");
		my @heads = grep /: error: /, @lines;
		my $text = join "", @lines;
		s/^\[ *\d+\.\d+\] // for @heads;
		my $heads = join "", @heads;
		$want .= "$location: error: $_\n" for @messages;
		$heads eq $want or fail("the log of \"$command\": wanted\n${want}got\n$text");
		exit if $mode eq "none";
		my $end = "  Command: $shown\n" . " " x (11 + $caret) . "^\n";
		substr($text, -length $end) eq $end or fail("the last entry for \"$command\" should end in\n${end}but is\n$text");
	' -- "$@"
}

# --- reading ---

# table EVENT - the rows of its histograms
table() { grep '^{' "events/$1/$HIST_FILE" || true; }

# rows EVENT [N] - the rows of its Nth histogram, runs of blanks as one, what is tracked after a '|'
rows() {
	awk -v want="${2:-1}" '
		function flush() { if (row != "") print row; row = "" }
		/^# event histogram/	{ flush(); n++; next }
		n != want		{ next }
		/^\{/			{ flush(); row = $0 }
		/^\t(max|changed): /	{ row = row " |" $0 }
		END			{ flush() }' "events/$1/$HIST_FILE" | tr -s '\t ' ' ' | sed 's/ $//'
}

# rows_are EVENT N ROW...
rows_are() {
	rows_event=$1 rows_n=$2
	shift 2
	[ $# -eq 0 ] || set -- "$(printf '%s\n' "$@")"
	equal "the rows of histogram $rows_n of $rows_event" "$(rows "$rows_event" "$rows_n")" "${1:-}"
}

# total EVENT TITLE - Hits, Entries or Dropped of its first histogram
total() { sed -n "s/^    $2: //p" "events/$1/$HIST_FILE" | head -n 1; }

# stat_of EVENT TITLE - a number of the account of its first trigger
stat_of() { sed -n "s/^$2: //p" "events/$1/$HIST_STATS" | head -n 1; }

# account EVENT - checks that every call is accounted for
account() {
	account=$(awk '
		/^calls: /	{ calls = $2 }
		/^hits: /	{ sum = $2 }
		/^dropped_|^ignored: / { sum += $2 }
		/^memory: /	{ n++; if (calls != sum) print "calls " calls ", accounted for " sum }
		END		{ if (!n) print "no trigger" }' "events/$1/$HIST_STATS")
	equal "the account of $1" "$account" ""
}

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
synth_error() {
	perl -e '
		use strict;
		my ($file, $command, $errno, $message) = @ARGV;
		my $top = $ENV{TRACEFS};
		sub fail { print "FAILED: @_\n"; exit 1 }
		sub content { open(my $f, "<", "$top/$_[0]") or return ""; local $/; my $c = <$f>; $c // "" }
		sub state { content($ENV{SYNTH_FILE}) . content("dynamic_events") . join " ", sort glob "$top/events/$ENV{SYNTH}/*" }
		my $caret = index $command, "^";
		if ($caret >= 0) { substr($command, $caret, 1) = "" } elsif (defined $message) { fail("the test gives no place for a caret: $command") }
		my $before = state();
		open(my $log, ">", "$top/error_log") or fail("error_log: $!");
		close $log;
		sysopen(my $f, "$top/$file", 02001) or fail("$file: $!");
		my $n = syswrite($f, $command);
		my $got = defined $n ? "success" : $! + 0;
		close $f;
		my %numbers = (ENOENT => 2, E2BIG => 7, ENOMEM => 12, EBUSY => 16, EEXIST => 17, ENODEV => 19, EINVAL => 22);
		my $wanted = $numbers{$errno} // fail("no number for $errno");
		$got eq $wanted or fail("the errno of \"$command\": got $got, wanted $wanted ($errno)");
		my $after = state();
		$before eq $after or fail("\"$command\" changed what there is from:\n${before}\nto:\n$after");
		my $text = content("error_log") =~ s/^\[ *\d+\.\d+\] //r;
		# The log has a command without the blanks before it.
		my $shown = $command;
		$caret -= length $1 if $shown =~ s/^(\s+)// && $caret > 0;
		my $location = $ENV{LOCATION} // $ENV{SYNTH_FILE};
		my $want = defined $message ? "$location: error: $message\n  Command: $shown\n" . " " x (11 + $caret) . "^\n" : "";
		$text eq $want or fail("the log of \"$command\": wanted\n${want}got\n$text");
	' -- "$@"
}

# traced NAME - what the trace says of a synthetic event, a line for each of its records
traced() { sed -n "s/^[^#].*: $1: //p" trace; }

# traced_are NAME LINE...
traced_are() {
	traced_name=$1
	shift
	[ $# -eq 0 ] || set -- "$(printf '%s\n' "$@")"
	equal "the trace of $traced_name" "$(traced "$traced_name")" "${1:-}"
}

# records NAME - takes all records from the ring buffers; a line for each that is of this synthetic event: its
# bytes in hexadecimal digits, without the first eight
records() {
	perl -e '
		use strict;
		my $name = shift;
		open(my $i, "<", "events/$ENV{SYNTH}/$name/id") or die "$name: $!\n";
		my $id = <$i> + 0;
		for my $file (glob "per_cpu/cpu*/trace_pipe_raw") {
			sysopen(my $f, $file, 04000) or die "$file: $!\n";
			while (sysread($f, my $page, 65536)) {
				my ($time, $commit) = unpack "Q<Q<", $page;
				my ($at, $end) = (16, 16 + ($commit & 0xfffff));
				while ($at < $end) {
					my $head = unpack "L<", substr $page, $at, 4;
					my $type = $head & 31;
					my ($from, $len) = ($at + 4, $type * 4);
					if ($type >= 30) {
						$at += 8;
						next;
					} elsif ($type == 29) {
						last unless $head >> 5;
						$at += 4 + unpack "L<", substr $page, $at + 4, 4;
						next;
					} elsif ($type == 0) {
						$len = unpack("L<", substr $page, $at + 4, 4) - 4;
						$from = $at + 8;
					}
					my $record = substr $page, $from, $len;
					print unpack("H*", substr $record, 8), "\n" if unpack("S<", $record) == $id;
					$at = $from + $len;
				}
			}
		}' "$1"
}

# --- instances ---

# instance NAME - makes one; 'run' removes it
instance() { mkdir "$TRACEFS/instances/$1"; }

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

# unload - takes it out when what was on its way back has come back
unload() { until_true rmmod "$MODULE"; }

load() { insmod "$MODULE_FILE" "$@"; }

# in_use - rmmod is refused because of a user
in_use() {
	case $(try_rmmod) in
	*"in use"*) ;;
	*) fail "rmmod was not refused with 'in use'" ;;
	esac
	[ -d "/sys/module/$MODULE" ] || fail "the module is gone"
}
