#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What selftests/stock/load runs in the guest, with the module beside it: loads the module, looks at the view, uses it, and unloads
# the module. Prints KTAP; ends with the number of failures.

VIEW=/sys/kernel/rhist
TRACEFS=/sys/kernel/tracing
EVENT=$VIEW/events/sched/sched_process_fork
n=0
bad=0

# check WHAT COMMAND...
check() {
	what=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n $what"
	else
		echo "not ok $n $what"
		bad=$((bad + 1))
	fi
}

fails() { ! "$@" 2>/dev/null; }
# Opening for nothing else removes all triggers, and empties the log.
write() { echo "$2" >>"$1"; }
empty() { : >"$1"; }
refused() { fails write "$@"; }
has() { grep -qF -- "$2" "$1"; }
lacks() { ! grep -qF -- "$2" "$1"; }
same() { [ "$1" = "$2" ]; }
same_names() { [ "$(ls "$1")" = "$(ls "$2")" ]; }
hits() { sed -n 's/.*Hits: //p' "$1"; }
forks() { for _ in 1 2 3 4 5; do /bin/true; done; }
busy() { fails rmmod rust_hist; }
gone() { [ ! -e "$1" ]; }

check 'the module loads' insmod ./rust_hist.ko
check 'the view is mounted' mount -t rhistfs none $VIEW

check 'the top looks like tracefs' same_names $TRACEFS $VIEW
check 'so does a system' same_names $TRACEFS/events/sched $VIEW/events/sched
check 'an event has the files of the module' ls $EVENT/hist_json $EVENT/hist_pipe $EVENT/hist_stats
check 'its other files are links' same "$(readlink $EVENT/format)" $TRACEFS/events/sched/sched_process_fork/format
check 'which can be read' has $EVENT/format 'name: sched_process_fork'
check 'what there is not is not there' gone $VIEW/events/sched/sched_nothing
check 'README ends with the text of the module' has $VIEW/README hist_json

check 'a trigger is made' write $EVENT/trigger 'hist:keys=parent_comm:vals=child_pid:sort=hitcount'
check 'it is shown' has $EVENT/trigger 'hist:keys=parent_comm:vals=hitcount,child_pid:sort=hitcount'
check 'with all others' has $VIEW/show_event_triggers 'sched:sched_process_fork        hist:keys=parent_comm'
check 'but not in tracefs' lacks $TRACEFS/events/sched/sched_process_fork/trigger 'hist:'
check 'one of C is passed on' write $EVENT/trigger traceon:1
check 'which tracefs has' has $TRACEFS/events/sched/sched_process_fork/trigger traceon
check 'and the view, too' has $EVENT/trigger traceon
check 'it goes by the view' write $EVENT/trigger '!traceon'
before=$(hits $EVENT/hist)
forks
after=$(hits $EVENT/hist)
check 'hits are counted' [ "$after" -ge $((before + 5)) ]
check 'the table is C'\''s to look at' has $EVENT/hist '# event histogram'
check 'json is' has $EVENT/hist_json '"keys"'
check 'a trigger is paused' write $EVENT/trigger 'hist:keys=parent_comm:vals=child_pid:sort=hitcount:pause'
before=$(hits $EVENT/hist)
forks
check 'and has no hits' same "$(hits $EVENT/hist)" "$before"
check 'and cleared' write $EVENT/trigger 'hist:keys=parent_comm:vals=child_pid:sort=hitcount:clear'
check 'and is empty' same "$(hits $EVENT/hist)" 0
check 'the module is in use' busy
check 'the trigger is removed' write $EVENT/trigger '!hist:keys=parent_comm:vals=child_pid:sort=hitcount'
check 'and is gone' lacks $EVENT/trigger 'hist:'

check 'a wrong line is refused' refused $EVENT/trigger 'hist:keys=nothing'
check 'and explained' has $VIEW/error_log 'hist:sched:sched_process_fork: error: '
check 'the log is emptied' empty $VIEW/error_log
check 'and empty' lacks $VIEW/error_log error:
CALL=$VIEW/events/syscalls/sys_enter_openat
check 'a system call has triggers' write $CALL/trigger 'hist:keys=common_pid'
: </dev/null
before=$(hits $CALL/hist)
check 'with hits' [ "$before" -gt 0 ]
check 'is enabled' write $CALL/enable 1
: </dev/null
check 'is disabled' write $CALL/enable 0
between=$(hits $CALL/hist)
check 'and hit meanwhile' [ "$between" -gt "$before" ]
: </dev/null
check 'and after that' [ "$(hits $CALL/hist)" -gt "$between" ]
check 'in an instance that the view does not show' ls -d $TRACEFS/instances/rust_hist
check 'nor lists' same "$(ls $VIEW/instances)" ''
check 'nor makes' fails mkdir $VIEW/instances/rust_hist
check 'its trigger goes' write $CALL/trigger '!hist:keys=common_pid'
check 'and the instance with it' gone $TRACEFS/instances/rust_hist
check 'a user may have an instance of that name' mkdir $VIEW/instances/rust_hist
check 'while system calls have triggers, too' write $CALL/trigger 'hist:keys=common_pid'
check 'whose instance is another one' ls -d $TRACEFS/instances/rust_hist_calls
check 'and is not listed' same "$(ls $VIEW/instances)" rust_hist
check 'and goes' write $CALL/trigger '!hist:keys=common_pid'
check 'alone' same "$(ls $TRACEFS/instances)" rust_hist
check 'that of the user goes by rmdir' rmdir $VIEW/instances/rust_hist

PRINT=events/ftrace/print
check 'an event of the tracing core has triggers' write $VIEW/$PRINT/trigger 'hist:keys=common_pid'
echo 1 >$TRACEFS/trace_marker
echo 2 >$TRACEFS/trace_marker
check 'with hits' same "$(hits $VIEW/$PRINT/hist)" 2
check 'beside those of C' write $VIEW/$PRINT/trigger traceon:1
check 'where a comment stands for it' has $TRACEFS/$PRINT/trigger '# hist triggers of rust_hist'
check 'it is emptied' empty $VIEW/$PRINT/trigger
check 'and empty' lacks $TRACEFS/$PRINT/trigger 'rust_hist'
check 'one of C goes by its own line' write $VIEW/$PRINT/trigger '!traceon'

check 'a trigger is made' write $EVENT/trigger 'hist:keys=parent_comm'
check 'enable shows it' same "$(cat $EVENT/enable)" '0*'
check 'and can be written to' write $EVENT/enable 1
check 'which it shows' same "$(cat $EVENT/enable)" '1*'
check 'beside tracefs' same "$(cat $TRACEFS/events/sched/sched_process_fork/enable)" 1
write $EVENT/enable 0
check 'the trigger is removed' write $EVENT/trigger '!hist:keys=parent_comm'
check 'enable shows nothing' same "$(cat $EVENT/enable)" 0

# With the last trigger the event is free before the write returns, though files of it are open.
PROBE=$VIEW/events/kprobes/rhist_probe
for text in 'kprobe_events p:rhist_probe do_exit' 'synthetic_events rhist_probe u64 val'; do
	list=$TRACEFS/${text%% *}
	check "a line of $list" write "$list" "${text#* }"
	[ -d $PROBE ] || PROBE=$VIEW/events/synthetic/rhist_probe
	exec 3<$PROBE/hist 4>>$PROBE/trigger
	check 'an event that is in use' write $PROBE/trigger 'hist:keys=common_pid'
	case $list in
	*kprobe*) gone='-:rhist_probe' ;;
	*) gone='!rhist_probe' ;;
	esac
	check 'cannot be deleted' refused "$list" "$gone"
	check 'the trigger goes' eval 'echo "!hist:keys=common_pid" >&4'
	check 'the event can be deleted at once' write "$list" "$gone"
	check 'its open files cannot be read' eval '! cat <&3 2>/dev/null'
	check 'nor written' eval '! echo "hist:keys=common_pid" 2>/dev/null >&4'
	exec 3<&- 4>&-
done

check 'variables' write $EVENT/trigger 'hist:keys=child_pid:ts0=common_timestamp.usecs'
check 'a join' write $VIEW/events/sched/sched_process_exit/trigger \
	'hist:keys=pid:lat=common_timestamp.usecs-$ts0:onmax($lat).save(comm)'
forks
check 'matches' has $VIEW/events/sched/sched_process_exit/hist 'max:'
# It would read the variable once for the next one.
check 'and goes' write $VIEW/events/sched/sched_process_exit/trigger \
	'!hist:keys=pid:lat=common_timestamp.usecs-$ts0:onmax($lat).save(comm)'
check 'a synthetic event of the kernel' write $TRACEFS/synthetic_events 'rhist_life u64 lat; char comm[16]; char[] text'
check 'is generated' write $VIEW/events/sched/sched_process_exit/trigger \
	'hist:keys=pid:lat2=common_timestamp.usecs-$ts0:onmatch(sched.sched_process_fork).trace(rhist_life,$lat2,comm,comm)'
check 'is enabled' write $TRACEFS/events/synthetic/rhist_life/enable 1
forks
write $TRACEFS/events/synthetic/rhist_life/enable 0
check 'is recorded' has $TRACEFS/trace 'rhist_life: lat='
check 'with its strings' grep -q 'rhist_life: lat=[0-9]* comm=true text=true' $TRACEFS/trace
check 'cannot be deleted' refused $TRACEFS/synthetic_events '!rhist_life'
for event in sched_process_exit sched_process_fork; do
	check "$event is emptied" empty $VIEW/events/sched/$event/trigger
	check 'and has no trigger' lacks $VIEW/events/sched/$event/trigger 'hist:'
done
check 'can be deleted' write $TRACEFS/synthetic_events '!rhist_life'

check 'an instance is made' mkdir $VIEW/instances/rhist_own
check 'has a trigger' write $VIEW/instances/rhist_own/events/sched/sched_process_fork/trigger 'hist:keys=parent_comm'
forks
check 'with hits' [ "$(hits $VIEW/instances/rhist_own/events/sched/sched_process_fork/hist)" -ge 5 ]
check 'is busy' fails rmdir $VIEW/instances/rhist_own
check 'loses it' write $VIEW/instances/rhist_own/events/sched/sched_process_fork/trigger '!hist:keys=parent_comm'
check 'is removed' rmdir $VIEW/instances/rhist_own
check 'is gone in tracefs' gone $TRACEFS/instances/rhist_own

echo 1 >$TRACEFS/set_event_pid
check 'PID filters' write $EVENT/trigger 'hist:keys=parent_comm'
forks
check 'hold for triggers' same "$(hits $EVENT/hist)" 0
: >$TRACEFS/set_event_pid
: >$EVENT/trigger

# mounted - its options, and owner and mode of an entry
mounted() {
	grep " $OTHER rhistfs " /proc/mounts | cut -d' ' -f4
	stat -c '%u %g %a' "$OTHER$1"
}
OTHER=/tmp/other
mkdir $OTHER
check 'the root is for its owner alone' same "$(stat -c '%u %g %a' $VIEW)" '0 0 700'
check 'the view is mounted for a group' mount -t rhistfs -o gid=7,mode=750 none $OTHER
check 'which has it' same "$(mounted /)" "$(printf 'rw,relatime,gid=7,mode=750\n0 7 750')"
check 'with all in it' same "$(mounted /events/sched/sched_waking/hist)" "$(printf 'rw,relatime,gid=7,mode=750\n0 7 440')"
check 'the other mount is as it was' same "$(stat -c '%u %g %a' $VIEW)" '0 0 700'
check 'the options are changed' mount -o remount,uid=3,gid=8 $OTHER
check 'for all' same "$(mounted /events/sched)" "$(printf 'rw,relatime,uid=3,gid=8,mode=750\n3 8 750')"
check 'but where links lead' fails mount -o remount,lower=/tmp $OTHER
check 'which may be named' mount -o remount,lower=/sys/kernel/tracing $OTHER
umount $OTHER
for options in gid=4294967295 gid=x gid mode=10000 mode=8 lower=tmp lower nothing=1; do
	check "the option $options is refused" fails mount -t rhistfs -o $options none $OTHER
done
check 'links lead elsewhere' mount -t rhistfs -o "lower=/tmp/a b" none $OTHER
check 'as it says' same "$(readlink $OTHER/trace)" '/tmp/a b/trace'
check 'and the list of mounts' has /proc/mounts 'lower=/tmp/a\040b'
check 'that mount goes' umount $OTHER

# A program that looks for tracefs, in a mount namespace of its own.
# shellcheck disable=SC2016
check 'a program has the view in the place of tracefs' rhist shell sh -ec '
	cd /sys/kernel/tracing
	echo hist:keys=parent_comm >events/sched/sched_process_fork/trigger
	grep -q "^hist:" events/sched/sched_process_fork/trigger
	! grep -q "^hist:" /sys/kernel/rhist/events/sched/sched_process_fork/trigger
	[ "$(cat current_tracer)" = nop ] && [ -f trace ]
	rhist shell grep -q "hits\|Hits" events/sched/sched_process_fork/hist'
check 'others do not' lacks /proc/mounts "$TRACEFS rhistfs"
check 'the trigger stays' has $EVENT/trigger 'hist:'
: >$EVENT/trigger
check 'a wrong command is said' fails rhist shell /nothing/there

check 'the module stays while it is mounted' busy
check 'the view is unmounted' umount $VIEW
check 'the module is unloaded' rmmod rust_hist
check 'its event is gone' gone $TRACEFS/events/rust_hist
check 'it loads again' insmod ./rust_hist.ko
check 'and goes again' rmmod rust_hist
echo "1..$n"
exit "$bad"
