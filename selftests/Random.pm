# SPDX-License-Identifier: GPL-2.0
#
# Random choice for programs that make triggers, the same on each machine: xorshift with 32 bits.
#
#	seed($n)		which numbers come
#	number($k)		a number from 0 to $k - 1
#	one_of(@list)		one of a list
#	shuffled(@list)		the list in another order
#
# After a fork the parent and the child go on by the same numbers until one of them calls seed().

package Random;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(seed number one_of shuffled);

my $state;

sub seed { $state = (($_[0] * 2654435761) ^ 0x9e3779b9) & 0xffffffff || 1; number(7) for 1 .. 8; }

sub number {
	$state ^= ($state << 13) & 0xffffffff;
	$state ^= $state >> 17;
	$state ^= ($state << 5) & 0xffffffff;
	return ($state >> 3) % $_[0];
}

sub one_of { return $_[number(scalar @_)]; }

sub shuffled {
	my @list = @_;
	for (my $n = @list; $n > 1; $n--) {
		my $other = number($n);
		@list[$n - 1, $other] = @list[$other, $n - 1];
	}
	return @list;
}

1;
