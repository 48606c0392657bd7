# SPDX-License-Identifier: GPL-2.0
#
# What the tests share that have something of the kernel fail, see test.d/creation. The working directory is that
# of tracefs.
#
#	use lib $ENV{SELFTESTS}; use Faults;
#	content($file)			what it says, or the word none
#	state_of(@events)		all that a command that fails must leave as it was
#	difference($before, $after)	of two such; nothing if they are equal
#	command($file, $text)		writes it with one write; the errno, or 0
#	writer($file, $text)		what does so each time, to a file that is open already
#	failing_nth($n, $do)		does it while the Nth allocation fails; its errno, and whether one has failed
#	each_allocation($what, $do, $undo, @events)
#					has each allocation of what it does fail, then of what takes it back; both
#					give an errno. One that is done nevertheless must have done the same as
#					without a failure. Returns how many had it fail, and how many did not.
#	failing_call($f, $v, $n, $do)	does it while the Nth call of function $f returns $v; its errno, and the calls

package Faults;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(fail content state_of difference command writer failing_nth each_allocation failing_call set_clock);

sub fail { print "FAILED: @_\n"; exit 1 }

sub content {
	open(my $f, '<', shift) or return 'none';
	local $/;
	return <$f> // '';
}

sub state_of {
	my @events = @_;
	my $state = join "\n", map { "$_: " . content($_) } $ENV{SYNTH_FILE}, qw(dynamic_events show_event_triggers trace_clock);
	for my $event (@events) {
		$state .= "$event/$_: " . content("events/$event/$_") for 'trigger', 'enable', 'filter', $ENV{HIST_FILE};
	}
	return $state . join ' ', "\ndirectories:", sort(glob "events/$ENV{SYNTH}/*"), sort glob 'instances/*';
}

# Of a state, what a command that is done must have brought about though an allocation failed. If that was one for
# the directory of a new event there is none, and nobody is told: __add_event_to_tracers() does not look.
sub done { return $_[0] =~ s/\ndirectories:.*//sr }

# Lines are compared with those in their place; what comes and goes is seen by that, too.
sub difference {
	my @before = split /^/, shift;
	my @after = split /^/, shift;
	my $text = '';
	for my $n (0 .. ($#before > $#after ? $#before : $#after)) {
		my ($is, $was) = ($after[$n] // "(nothing)\n", $before[$n] // "(nothing)\n");
		$text .= "was: ${was}is: $is" if $was ne $is;
	}
	return substr $text, 0, 2000;
}

sub command {
	my ($file, $text) = @_;
	sysopen(my $f, $file, 02001) or return $! + 0;
	return defined syswrite($f, $text) ? 0 : $! + 0;
}

sub writer {
	my ($file, $text) = @_;
	sysopen(my $f, $file, 02001) or fail("$file: $!");
	return sub { defined syswrite($f, $text) ? 0 : $! + 0 };
}

sub failing_nth {
	my ($nth, $do) = @_;
	sysopen(my $fault, '/proc/thread-self/fail-nth', 2) or fail("fail-nth: $!");
	my $left = '0' x 32;
	syswrite($fault, "$nth") // fail("fail-nth: $!");
	my $errno = $do->();
	sysseek($fault, 0, 0);
	sysread($fault, $left, 20) // fail("fail-nth: $!");
	syswrite($fault, '0');
	# 0 is left when a fault was put in.
	return ($errno, $left + 0 == 0);
}

my $NOMEM = 12;

# One way, from one state to another: until it is done without a failure. Returns as each_allocation() does.
sub each_of_one {
	my ($what, $do, $undo, $before, $done, $set_clock, @events) = @_;
	my ($refused, $of_no_matter) = (0, 0);
	for my $nth (1 .. 5000) {
		my ($errno, $failed) = failing_nth($nth, $do);
		if ($errno) {
			$failed or fail("$what: errno $errno without a fault, number $nth\n" . content('error_log'));
			$errno == $NOMEM or fail("$what: errno $errno at allocation $nth\n" . content('error_log'));
			$refused++;
		} else {
			my $other = difference(done($done), done(state_of(@events)));
			$other eq '' or fail("$what: done otherwise than without a fault, allocation $nth:\n$other");
			return ($refused, $of_no_matter) unless $failed;
			# The kernel did without that one.
			$of_no_matter++;
			my $error = $undo->();
			$error == 0 or fail("$what: taken back: errno $error after allocation $nth");
			set_clock() if $set_clock;
		}
		my $difference = difference($before, state_of(@events));
		$difference eq '' or fail("$what: allocation $nth, errno $errno:\n$difference");
	}
	fail("$what: no end is to be seen");
}

sub each_allocation {
	my ($what, $do, $undo, @events) = @_;
	my $before = state_of(@events);
	my ($done, $back) = map {
		my $errno = $_->();
		$errno == 0 or fail("$what: errno $errno without a fault\n" . content('error_log'));
		state_of(@events);
	} $do, $undo;
	set_clock();
	my ($refused, $of_no_matter) = each_of_one($what, $do, $undo, $before, $done, 1, @events);
	# A command that sets the clock sets it again, and what takes it back leaves it so.
	my @back = each_of_one("what takes back $what", $undo, $do, $done, $back, 0, @events);
	set_clock();
	my $difference = difference($before, state_of(@events));
	$difference eq '' or fail("$what, taken back:\n$difference");
	print "$what: $refused allocations make it fail, $of_no_matter are of no matter; back: @back\n";
	return ($refused, $of_no_matter);
}

# Open all the time, so that it calls little of what may fail.
my ($switch, $counter);
sub failing_call {
	my ($function, $value, $nth, $do) = @_;
	my $parameter = '/sys/module/rust_hist_faults/parameters/fail';
	defined $switch or sysopen($switch, $parameter, 1) && sysopen($counter, $parameter, 0) or fail("$parameter: $!");
	syswrite($switch, "$function $value $nth\n") // fail("$function: $!");
	my $errno = $do->();
	sysseek($counter, 0, 0);
	sysread($counter, my $said, 200) // fail("$parameter: $!");
	syswrite($switch, "\n");
	return ($errno, $said =~ / (\d+)$/ ? $1 : fail("$parameter: $said"));
}

sub set_clock { open(my $f, '>', 'trace_clock') or fail("trace_clock: $!"); syswrite($f, 'local') }

1;
