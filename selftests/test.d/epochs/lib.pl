# SPDX-License-Identifier: GPL-2.0
#
# What the tests of hist_json and hist_pipe share. The keys of their tables are numbers.
#
#	tables($text)		of the lines: a list of hashes of the line of the table (head), its rows ({ key => [values] }),
#				the values of the row of others, if there is one, and the numbers of the last line (end),
#				likewise
#	content($fd_or_file)	all that it says from where it is
#	fire($count, $keys)	as in lib.sh
#	check($what, $got, $wanted)

use strict;
use warnings;

sub fail { print "FAILED: @_\n"; exit 1 }

sub check {
	my ($what, $got, $wanted) = @_;
	$got eq $wanted or fail("$what: got '$got', wanted '$wanted'");
}

sub content {
	my ($file) = @_;
	my ($f, $text) = (undef, '');
	if (ref $file) { $f = $file } else { open($f, '<', $file) or return "errno " . ($! + 0) }
	while (1) {
		my $n = sysread($f, $text, 65536, length $text) // return "errno " . ($! + 0);
		return $text if $n == 0;
	}
}

sub again {
	my ($f) = @_;
	sysseek($f, 0, 0);
	return content($f);
}

sub fire {
	open(my $f, '>', $ENV{FIRE}) or fail("$ENV{FIRE}: $!");
	syswrite($f, join ' ', @_, (1, 0, 'task')[@_ - 1 .. 2]) or fail("fire: $!");
}

sub write_to {
	my ($file, $text) = @_;
	open(my $f, '>>', $file) or fail("$file: $!");
	defined syswrite($f, $text) or fail("'$text' was refused for $file: $!");
}

sub tables {
	my @tables;
	for my $line (split /\n/, $_[0]) {
		next if $line =~ /^\{"v":1,"type":"none",/;
		if ($line =~ /^\{"v":1,"type":"hist",/) {
			push @tables, { head => $line, rows => {} };
			for my $name (qw(epoch from to real)) {
				$line =~ /"$name":(\d+)/ or fail("no $name: $line");
				$tables[-1]{$name} = $1;
			}
			$tables[-1]{consumed} = $1 if $line =~ /"consumed":(true|false)/;
		} elsif ($line =~ /^\{"k":\[([-\d,]+)\],"v":\[([-\d,]+)\](.*)\}$/) {
			exists $tables[-1]{rows}{$1} and fail("two rows of one key: $line");
			$tables[-1]{rows}{$1} = [split /,/, $2];
			$tables[-1]{saved}{$1} = $3;
		} elsif ($line =~ /^\{"others":true,"v":\[([-\d,]+)\]\}$/) {
			$tables[-1]{others} = [split /,/, $1];
		} elsif ($line =~ /^\{"type":"end",(.*)\}$/) {
			my %end = $1 =~ /"(\w+)":(\d+)/g;
			my $rows = $tables[-1]{rows};
			my $hits = ($tables[-1]{others} ? $tables[-1]{others}[0] : 0) + ($end{retired} // 0);
			$hits += $_->[0] for values %$rows;
			check("the entries of $line", $end{entries}, scalar keys %$rows);
			check("the hits of $line", $end{hits}, $hits);
			check("the calls of $line", $end{calls}, $hits + $end{dropped_full} + $end{dropped_nested} + $end{ignored});
			$tables[-1]{end} = \%end;
		} else {
			fail("no line of JSON: $line");
		}
	}
	return @tables;
}

1;
