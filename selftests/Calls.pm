# SPDX-License-Identifier: GPL-2.0
#
# System calls that Perl has no function for.
#
#	use lib $ENV{SELFTESTS}; use Calls;
#	call($name, @arguments)		makes one
#	nr($name)			its number on this machine
#	await($fds, $n, $ms)		poll(2)

package Calls;

use strict;
use warnings;
use Exporter 'import';
use POSIX ();
our @EXPORT = qw(call nr await);

# NAME => [x86-64, arm64]
my %nr = (
	bpf => [321, 280],
	clock_gettime => [228, 113],
	close => [3, 57],
	fadvise64 => [221, 223],
	delete_module => [176, 106],
	fdatasync => [75, 83],
	finit_module => [313, 273],
	fsync => [74, 82],
	getpgid => [121, 155],
	getppid => [110, 173],
	nanosleep => [35, 101],
	openat => [257, 56],
	perf_event_open => [298, 241],
	sched_setaffinity => [203, 122],
	sched_setscheduler => [144, 119],
	setfsgid => [123, 152],
	ppoll => [271, 73],
	pread64 => [17, 67],
	pwrite64 => [18, 68],
	read => [0, 63],
	write => [1, 64],
);
my $arch = { x86_64 => 0, aarch64 => 1 }->{(POSIX::uname())[4]} // die "Calls: the numbers of this machine are not known\n";

sub nr { return ($nr{$_[0]} // die "Calls: $_[0] has no number here\n")->[$arch] }

# It may change its arguments.
sub call {
	my $name = shift;
	return syscall(nr($name), @_);
}

sub await {
	my ($n, $ms) = @_[1, 2];
	my $time = pack 'q2', int($ms / 1000), $ms % 1000 * 1_000_000;
	return syscall(nr('ppoll'), $_[0], $n, $time, 0, 0);
}

1;
