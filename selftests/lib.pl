#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
#
# usage: selftests/lib.pl NAME ARGUMENT...
#        selftests/lib.pl <QUESTIONS >ANSWERS
#
# The functions that a shell is too slow for; lib.sh describes them. With a NAME it runs this function. Without, it
# reads requests until the end of the file: a request is the number of its words, then the directory, the name and the
# arguments, each followed by a NUL; an answer is the output of the function, and
# a line of \x01 and its status; or only that line, with 'long' before the status, if the output is in a file.
#
# Environment: HIST, HIST_FILE, HIST_STATS, SYNTH, SYNTH_FILE, TRACEFS, RUST, and TMPDIR for answers that are long.

use strict;
use warnings;
use Errno ();

my ($hist, $top, $rust) = @ENV{'HIST', 'TRACEFS', 'RUST'};
# The maximum bytes of an answer that is not long.
my $MOST = 4000;

# Ends a function with a message.
sub fail {
	print "FAILED: @_\n";
	die "failed\n";
}

sub content {
	open(my $f, '<', $_[0]) or return '';
	local $/;
	return scalar(<$f>) // '';
}

# Returns the name of errno.
sub errno {
	for my $name (qw(EPERM ENOENT E2BIG ENOMEM EACCES EBUSY EEXIST ENODEV EINVAL ENOSPC EDOM ERANGE EOPNOTSUPP)) {
		return $name if $!{$name};
	}
	return 'errno ' . ($! + 0);
}

# put FILE BYTES [FLAGS] - one write(2); the errno's name, or nothing
sub put {
	my ($file, $bytes, $flags) = @_;
	# The number of O_WRONLY|O_APPEND.
	sysopen(my $f, $file, $flags // 02001) or return errno();
	my $n = syswrite($f, $bytes) // return errno();
	return $n == length $bytes ? '' : "only $n bytes were taken";
}

sub clear_log {
	open(my $log, '>', $_[0]) or fail("$_[0]: $!");
	close $log;
}

my %functions;

$functions{write_file} = sub {
	my ($file, $bytes, $truncate) = @_;
	# O_WRONLY|O_TRUNC
	print put($file, $bytes, $truncate ? 01001 : undef), "\n";
};

$functions{refusal} = sub {
	my ($mode, $event, $command, $errno, @messages) = @_;
	my $dir = "events/$event";
	my $caret;
	# Of several entries of C ours has one.
	my ($only) = (grep({ /^!/ } @messages), @messages);
	@messages = ($only) if $rust && @messages;
	s/^!// for @messages;
	# What a refused command must not change.
	my $state = sub {
		my $infos = join '', grep { /^# trigger info/ } split /^/, content("$dir/$ENV{HIST_FILE}");
		return content("$dir/trigger") . content("$dir/enable") . $infos;
	};

	if ($mode eq 'log') {
		$command =~ s/hist:/$hist:/;
		my %at;
		$at{$1} = $-[0] while $command =~ s/([\^@])//;
		$caret = $rust ? $at{'^'} : $at{'@'} // $at{'^'};
		defined $caret or fail("the test gives no place for a caret: $command");
	}
	my $before = $state->();
	clear_log('error_log');
	my $got = put("$dir/trigger", $command) || 'success';
	$got eq $errno or fail("the errno of \"$command\": got $got, wanted $errno");
	my $after = $state->();
	$before eq $after or fail("\"$command\" changed the state of $event from:\n${before}to:\n$after");
	return if $mode eq 'any';

	# The log of C has a command without the sign of its removal.
	my $shown = $command;
	$caret-- if !$rust && $shown =~ s/^!//;
	my $location = "$hist:" . $event =~ tr,/,:,r;
	my $text = content('error_log');
	my @heads = grep { /: error: / } split /^/, $text;
	s/^\[ *\d+\.\d+\] // for @heads;
	my $want = join '', map { "$location: error: $_\n" } @messages;
	# The detail that ours appends to a message.
	my $more = $rust ? ': .+' : '';
	my $pattern = quotemeta($want) =~ s/\\\.\\\.\\\.\\\n/$more\n/gr;
	# Of these ours says what may have been meant, if it knows.
	$pattern =~ s/(?<=find\\ field|field\\ modifier|n\\ parameter|don\\'t\\ match)(?=\\\n)/(?:: .+)?/g if $rust;
	join('', @heads) =~ /^$pattern\z/ or fail("the log of \"$command\": wanted\n${want}got\n$text");
	return if $mode eq 'none';
	my $end = "  Command: $shown\n" . ' ' x (11 + $caret) . "^\n";
	substr($text, -length $end) eq $end or fail("the last entry for \"$command\" should end in\n${end}but is\n$text");
};

$functions{synth_error} = sub {
	my ($location, $file, $command, $errno, $message) = @_;
	my $state = sub {
		return content("$top/$ENV{SYNTH_FILE}") . content("$top/dynamic_events") . join ' ', sort glob "$top/events/$ENV{SYNTH}/*";
	};
	my $caret = index $command, '^';
	if ($caret >= 0) { substr($command, $caret, 1) = '' } elsif (defined $message) { fail("the test gives no place for a caret: $command") }
	my $before = $state->();
	clear_log("$top/error_log");
	my $got = put("$top/$file", $command) || 'success';
	$got eq $errno or fail("the errno of \"$command\": got $got, wanted $errno");
	my $after = $state->();
	$before eq $after or fail("\"$command\" changed what there is from:\n${before}\nto:\n$after");
	my $text = content("$top/error_log") =~ s/^\[ *\d+\.\d+\] //r;
	# The log has a command without the blanks before it.
	my $shown = $command;
	$caret -= length $1 if $shown =~ s/^(\s+)// && $caret > 0;
	my $want = defined $message ? "$location: error: $message\n  Command: $shown\n" . ' ' x (11 + $caret) . "^\n" : '';
	$text eq $want or fail("the log of \"$command\": wanted\n${want}got\n$text");
};

# Lines of triggers of ours.
my $ours = qr/^(?:$hist|(?:en|dis)able_$hist):.*/m;

# The trigger files of this directory and of the instances in it that list one.
sub hist_files {
	my @files;
	for my $dir ('.', glob 'instances/*') {
		my %seen = ('ftrace/print' => 1);
		for my $line (split /^/, content("$dir/show_event_triggers")) {
			$seen{"$1/$2"} = 1 if $line =~ /^([^:]+):(\S+)/;
		}
		push @files, map { "$dir/events/$_/trigger" } sort keys %seen;
	}
	return grep { content($_) =~ $ours } @files;
}

$functions{read_back} = sub {
	my (@all, %before);
	for my $file (hist_files()) {
		my @lines = content($file) =~ /$ours/g;
		$before{$file} = join "\n", sort @lines;
		push @all, [$file, $_] for @lines;
	}
	# What others refer to goes after these, and comes before them.
	my @left = reverse @all;
	for my $round (1 .. 8) {
		@left = grep { my ($file, $line) = @$_; put($file, "!$line") ne '' } @left;
	}
	fail("by its own text this is not removed: $left[0][1]") if @left;
	for my $file (sort keys %before) {
		fail("by its own text this was not removed: $&") if content($file) =~ $ours;
	}
	my @make = @all;
	for my $round (1 .. 8) {
		@make = grep { my ($file, $line) = @$_; put($file, $line) ne '' } @make;
	}
	fail("its own text is refused: $make[0][1]\n" . content('error_log')) if @make;
	for my $file (sort keys %before) {
		my @lines = content($file) =~ /$ours/g;
		my $after = join "\n", sort @lines;
		$after eq $before{$file} or fail("made again from their own text: $file: was\n$before{$file}\nis\n$after");
	}
};

$functions{rows} = sub {
	my ($event, $want) = @_;
	my ($n, @rows) = (0);
	my $in_row;
	for (split /\n/, content("events/$event/$ENV{HIST_FILE}")) {
		if (/^# event histogram/) { $n++; $in_row = 0 }
		elsif ($n != $want) { next }
		elsif (/^\{/) { push @rows, $_; $in_row = 1 }
		elsif (/^\t(max|changed|over): / && $in_row) { $rows[-1] .= " |$_" }
	}
	tr/\t / /s, s/ $// for @rows;
	print map { "$_\n" } @rows;
};

# The first line of FILE that begins with TITLE and a colon: what follows.
sub first {
	my ($file, $title) = @_;
	print "$1\n" if content($file) =~ /^\Q$title\E: (.*)/m;
}

$functions{total} = sub { first("events/$_[0]/$ENV{HIST_FILE}", "    $_[1]") };

$functions{stat_of} = sub { first("events/$_[0]/$ENV{HIST_STATS}", $_[1]) };

$functions{account} = sub {
	my ($event, @fired) = @_;
	my ($calls, $sum, $n, @wrong) = (0, 0, 0);
	@fired or fail("the test does not say how often $event was fired");
	for (split /\n/, content("events/$event/$ENV{HIST_STATS}")) {
		if (/^calls: (\d+)/) { $calls = $1 }
		elsif (/^hits: (\d+)/) { $sum = $1 }
		elsif (/^(?:dropped_\w+|ignored): (\d+)/) { $sum += $1 }
		elsif (/^memory: /) {
			my $wanted = $fired[$n] // $fired[-1];
			$n++;
			push @wrong, "trigger $n: $calls calls, wanted $wanted" if $wanted ne '-' && $calls != $wanted;
			push @wrong, "trigger $n: $calls calls, accounted for $sum" if $calls != $sum;
		}
	}
	push @wrong, "$n triggers" if $n < @fired;
	fail("the account of $event: " . join '; ', @wrong) if @wrong;
};

$functions{traced} = sub {
	my ($name) = @_;
	for (split /\n/, content('trace')) {
		print "$1\n" if /^[^#].*: \Q$name\E: (.*)/;
	}
};

$functions{records} = sub {
	my ($name) = @_;
	my $id = content("events/$ENV{SYNTH}/$name/id") + 0;
	for my $file (glob 'per_cpu/cpu*/trace_pipe_raw') {
		# O_NONBLOCK
		sysopen(my $f, $file, 04000) or fail("$file: $!");
		while (sysread($f, my $page, 65536)) {
			my ($time, $commit) = unpack 'Q<Q<', $page;
			my ($at, $end) = (16, 16 + ($commit & 0xfffff));
			while ($at < $end) {
				my $head = unpack 'L<', substr $page, $at, 4;
				my $type = $head & 31;
				my ($from, $len) = ($at + 4, $type * 4);
				if ($type >= 30) {
					$at += 8;
					next;
				} elsif ($type == 29) {
					last unless $head >> 5;
					$at += 4 + unpack 'L<', substr $page, $at + 4, 4;
					next;
				} elsif ($type == 0) {
					$len = unpack('L<', substr $page, $at + 4, 4) - 4;
					$from = $at + 8;
				}
				my $record = substr $page, $from, $len;
				print unpack('H*', substr $record, 8), "\n" if unpack('S<', $record) == $id;
				$at = $from + $len;
			}
		}
	}
};

# call NAME ARGUMENT... - the status
sub call {
	my ($name, @arguments) = @_;
	my $function = $functions{$name};
	return 0 if eval { ($function // fail("there is no function '$name'"))->(@arguments); 1 };
	print $@ unless $@ eq "failed\n";
	return 1;
}

exit call(@ARGV) if @ARGV;

# Next word of a question.
sub word {
	local $/ = "\0";
	chomp(my $word = <STDIN> // exit);
	return $word;
}

# Keeps what is printed. A file in memory would need a module that the guest of Debian's kernels is without.
sub Answer::TIEHANDLE { my $text = ''; return bless \$text, shift }
sub Answer::PRINT { my $text = shift; $$text .= join '', @_ }

$| = 1;
while (1) {
	my ($dir, @question) = map { word() } 1 .. word();
	my $status = 1;
	tie *ANSWER, 'Answer';
	select ANSWER;
	$status = call(@question) if chdir $dir;
	select STDOUT;
	my $text = ${tied *ANSWER};
	# A shell reads single bytes.
	if (length $text > $MOST) {
		open(my $long, '>', "$ENV{TMPDIR}/answer") or die "lib.pl: $!\n";
		print $long $text;
		close $long;
		($text, $status) = ('', "long $status");
	}
	print "$text\x01$status\n";
	# A directory that somebody is in is in use.
	chdir '/';
}
