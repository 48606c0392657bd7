# SPDX-License-Identifier: GPL-2.0
#
# usage: words.pl load	prints the list for the module's parameter 'triggers'
#        words.pl	makes the other triggers, fires, and compares; the places are there
#
# Each word in each place: all triggers are there at the same time, and the same is fired for all. After each step hist_json,
# or hist_pipe, has to have the lines that follow from all that was fired. A new word is a line of @words, a new place one
# of @places.

use strict;
use warnings;
require "$ENV{SELFTESTS}/test.d/epochs/lib.pl";

my ($hist, $synth) = @ENV{'HIST', 'SYNTH'};
my $sample = 'rust_hist_test/sample';
my $cpus = () = glob "$ENV{TRACEFS}/per_cpu/cpu*";

# K and V are the fields that have key and value of what is fired. 'if' is the filter, 'hit' says what a hit does to the
# table. 'end' are numbers that only the last line of this trigger has, 'stats' those of hist_stats for which to wait. Of a
# name, the second member has 'other'. What has a 'budget' pauses itself at some moment. 'reader' is a trigger on the other
# event of the test module, with the name of this one for T, that ends what has begun here.
my @words = (
	{ text => 'keys=K:vals=V:sort=K:size=128..256', if => 'K < 500', hit => \&grow, stats => { size => 128, grown => 0 } },
	{ text => 'keys=K:vals=V:sort=K:size=128:others', if => 'K < 500', hit => \&find_room },
	{ text => 'keys=K:vals=V.sum,V.min,V.max,V.avg,V.stddev:sort=K', if => 'K < 4', hit => \&collect },
	{ text => 'keys=K:vals=V:sort=K:overhead', if => 'K < 2000', hit => \&add, samples => 1 },
	{ text => 'keys=K:vals=V:sort=K:overhead(0.01%)', if => 'K < 1000', hit => \&add, samples => 1, budget => 1,
		other => 'keys=K:vals=V:sort=K:overhead' },
	{ text => 'keys=V:c=K:sort=V:onchange($c,50).save(K)', if => 'V < 4 && K < 500', hit => \&change },
	{ text => 'keys=V:o=K:sort=V:onover($o,90,80).save(K)', if => 'V < 4 && K < 500', hit => \&cross },
	{ text => 'keys=V:l=K:sort=V:onchange($l,1).save(K):limit(3/h)', if => 'V < 4 && K < 500', hit => \&change_seldom,
		end => { lost_limited => 0 } },
	{ text => 'keys=K:vals=V:s=V:sort=K:size=128:expire(1h)', if => 'K < 500', hit => \&begin,
		end => { retired => 0, expired => 0, overwritten => 0 }, stats => { forced => 0, expired => 0, overwritten => 0 } },
	{ text => 'keys=K:e=V:sort=K:expire(100ms)', if => 'V < 4 && K < 4', hit => \&begin_and_expire,
		end => { retired => 0, expired => 0, overwritten => 0 }, stats => { expired => 0, entries => 0 } },
	{ text => 'keys=K:p=V:sort=K:expire(60m)', if => 'K < 4', hit => \&begin_to_end, reader => 'keys=id:d=T.$p+when:vals=$d:sort=id',
		end => { retired => 0, expired => 0, overwritten => 0 }, stats => { overwritten => 0 } },
);

# Where the triggers are. Those of one name are on two events, the first of which has the odd keys. 'gone' is what makes
# the events go.
my @places = (
	{ name => 'triggers=', dir => '.', events => [$sample], k => 'key', v => 'val' },
	{ name => 'an instance', dir => 'instances/words', events => [$sample], k => 'key', v => 'val' },
	{ name => 'a synthetic event', dir => '.', events => ["$synth/made"], k => 'k', v => 'v', gone => [$ENV{SYNTH_FILE}, '!made'] },
	{ name => 'a probe', dir => '.', events => ['words/probe'], k => 'k', v => 'v', gone => ['dynamic_events', '-:words/probe'] },
	{ name => 'a name', dir => '.', events => ['words/odd', 'words/even'], k => 'k', v => 'v', gone => ['dynamic_events', '-:words/odd', '-:words/even'] },
);

# --- what hits do: of a table, with key and value, by the first or the second member ---

# count ROWS, KEY, SUM... - returns the row
sub count {
	my ($rows, $k, @sums) = @_;
	my $row = $rows->{$k} //= { v => [0] };
	$row->{v}[$_] += (1, @sums)[$_] for 0 .. @sums;
	return $row;
}

sub add { my ($t, $k, $v) = @_; count($t->{rows}, $k, $v) }

sub grow {
	my ($t, $k, $v) = @_;
	add(@_);
	@{$t->{stats}}{'size', 'grown'} = (256, 1) if keys %{$t->{rows}} > 96;
}

sub find_room {
	my ($t, $k, $v) = @_;
	my $is_row = exists $t->{rows}{$k} || keys %{$t->{rows}} < 128;
	count($is_row ? ($t->{rows}, $k) : ($t->{others} //= {}, 'others'), $v);
}

sub collect {
	my ($t, $k, $v) = @_;
	my $row = $t->{rows}{$k} //= {};
	push @{$row->{all}}, $v;
	my @all = sort { $a <=> $b } @{$row->{all}};
	my ($n, $sum, $squares) = (scalar @all, 0, 0);
	($sum, $squares) = ($sum + $_, $squares + $_ * $_) for @all;
	my ($mean, $deviation) = map { sprintf '%d.%02d', $_ / 100, $_ % 100 } int(100 * $sum / $n),
		int(sqrt(10000 * ($n * $squares - $sum * $sum) / ($n * $n)));
	$row->{v} = [$n, $sum, $all[0], $all[-1], $mean, $deviation];
}

sub change {
	my ($t, $k, $v) = @_;
	my $row = count($t->{rows}, $v);
	$row->{kept} = $k unless defined $row->{kept} && abs($k - $row->{kept}) < 50;
}

sub cross {
	my ($t, $k, $v) = @_;
	my $row = count($t->{rows}, $v);
	if ($k <= 10) { $row->{over} = 0 }
	elsif ($k > 90 && !$row->{over}) { @$row{'over', 'kept'} = (1, $k) }
}

sub change_seldom {
	my ($t, $k, $v, $member) = @_;
	my $row = count($t->{rows}, $v);
	return if defined $row->{kept} && $k == $row->{kept};
	if ($t->{taken}[$member]++ < 3) { $row->{kept} = $k } else { $t->{end}{lost_limited}++ }
}

sub count_ends { my ($t, $what) = @_; $_->{$what}++ for @$t{'end', 'stats'} }

# The maps are those of the generations, the youngest first. One that has more than 96 rows is the last but one.
sub begin {
	my ($t, $k, $v) = @_;
	my $young = $t->{maps}[0] //= {};
	count_ends($t, 'overwritten') if $young->{$k};
	count($young, $k, $v);
	add(@_);
	return if keys %$young <= 96;
	$t->{stats}{forced}++;
	unshift @{$t->{maps}}, {};
	my $old = $t->{maps}[2] or return;
	for my $k (keys %$old) {
		my ($hits, $sum) = @{$old->{$k}{v}};
		my $row = $t->{rows}{$k};
		$t->{end}{retired} += $hits;
		count_ends($t, $t->{maps}[1]{$k} ? 'overwritten' : 'expired');
		$row->{v} = [$row->{v}[0] - $hits, $row->{v}[1] - $sum];
		delete $t->{rows}{$k} unless $row->{v}[0];
	}
	$#{$t->{maps}} = 1;
}

sub begin_and_expire {
	my ($t) = @_;
	$t->{end}{retired}++;
	count_ends($t, 'expired');
}

sub begin_to_end {
	my ($t, $k, $v) = @_;
	count_ends($t, 'overwritten') if exists $t->{begun}{$k};
	$t->{begun}{$k} = $v;
	count($t->{rows}, $k);
}

# --- tables ---

for my $word (@words) {
	my $filter = $word->{if} =~ s/K/\$_[0]/gr =~ s/V/\$_[1]/gr;
	$word->{passes} = eval "sub { $filter }" or die $@;
	($word->{saves}) = $word->{text} =~ /:(on\w+\(.*?\))\.save/;
}

# begin_epoch TABLE
sub begin_epoch {
	my ($t) = @_;
	delete @$t{'maps', 'others', 'text'};
	@$t{'rows', 'hits', 'end'} = ({}, 0, { %{$t->{word}{end} // {}} });
}

# clear TABLE - what a limit has given away stays so
sub clear {
	my ($t) = @_;
	begin_epoch($t);
	@$t{'calls', 'stats', 'begun'} = (0, { %{$t->{word}{stats} // {}} }, {});
}

# hit TABLE, KEY, VALUE, MEMBER
sub hit {
	my ($t, @hit) = @_;
	$t->{$_}++ for 'hits', 'calls';
	delete $t->{text};
	$t->{word}{hit}->($t, @hit);
}

# What hits go to. Places share them, but for those of one name, and each that pauses itself has its own.
my @tables;
{
	my %shared;
	for my $place (@places) {
		my $is_named = @{$place->{events}} > 1;
		for my $n (0 .. $#words) {
			my $t = \$shared{$words[$n]{budget} ? "$place->{name} $n" : "$is_named $n"};
			unless ($$t) {
				$$t = { word => $words[$n], is_named => $is_named, is_continued => 1, pending => [] };
				clear($$t);
				push @tables, $$t;
				$$t->{reader} = { rows => {}, hits => 0, end => {} } if $words[$n]{reader};
			}
			push @{$place->{tables}}, $$t;
		}
	}
}

# text TABLE - its lines but the first
sub text {
	my ($t) = @_;
	my $line = sub {
		my ($key, $row) = @_;
		my ($kept, $saves) = ($row->{kept}, $t->{word}{saves});
		my $saved = defined $kept ? "{\"value\":$kept,\"row\":{\"K\":$kept}}" : 'null';
		return "{$key,\"v\":[" . join(',', @{$row->{v}}) . ']' . ($saves ? ",\"saved\":{\"$saves\":$saved}" : '') . "}\n";
	};
	my $text = join '', map { $line->("\"k\":[$_]", $t->{rows}{$_}) } sort { $a <=> $b } keys %{$t->{rows}};
	$text .= $line->('"others":true', $t->{others}{others}) if $t->{others};
	my $ignored = $t->{ignored} // 0;
	my @end = ([entries => scalar keys %{$t->{rows}}], [calls => $t->{hits} + $ignored], [hits => $t->{hits}],
		[dropped_full => 0], [dropped_nested => 0], [ignored => $ignored], [lost_saves => 0], [lost_traces => 0],
		map({ [$_ => $t->{end}{$_}] } grep { exists $t->{end}{$_} } qw(lost_limited retired expired overwritten)));
	return $text . '{"type":"end"' . join('', map { ",\"$_->[0]\":$_->[1]" } @end) . "}\n";
}

# --- the triggers ---

# trigger PLACE, N, MEMBER, MORE - the text of the Nth word there
sub trigger {
	my ($place, $n, $member, $more) = @_;
	my $word = $words[$n];
	my ($text, $if) = ($word->{text}, $word->{if});
	if (@{$place->{events}} > 1) {
		$text = $word->{other} // $text if $member;
		$text = "name=word$n:$text";
		$if .= $member ? ' && !(K & 1)' : ' && K & 1';
	}
	$text = "$hist:$text" . ($more // '') . " if $if";
	return $text =~ s/\bK\b/$place->{k}/gr =~ s/\bV\b/$place->{v}/gr;
}

# dotted PLACE - its first event
sub dotted { $_[0]{events}[0] =~ tr,/,.,r }

# reader PLACE, N - the file and the text of the trigger that reads the Nth there
sub reader {
	my ($place, $n) = @_;
	my $event = dotted($place);
	return "$place->{dir}/events/rust_hist_test/second/trigger", "$hist:" . $words[$n]{reader} =~ s/\bT\b/$event/r;
}

# each_trigger PLACES, WHAT - calls it with place, number of the word, and of the event
sub each_trigger {
	my ($places, $what) = @_;
	for my $place (@$places) {
		for my $member (0 .. $#{$place->{events}}) { $what->($place, $_, $member) for 0 .. $#words }
	}
}

sub file { my ($place, $member, $name) = @_; "$place->{dir}/events/$place->{events}[$member]/$name" }

# command MORE - to all triggers
sub command {
	my ($more) = @_;
	each_trigger(\@places, sub { write_to(file($_[0], $_[2], 'trigger'), trigger(@_, $more)) });
}

# put FILE, TEXT - what is wrong
sub put {
	my ($file, $text) = @_;
	# O_WRONLY|O_APPEND
	sysopen(my $f, $file, 02001) or return "$file: $!";
	return defined syswrite($f, $text) ? '' : "$text: $!";
}

# until_true WHAT, TEST - which says what is wrong
sub until_true {
	my ($what, $test) = @_;
	my $wrong;
	for (1 .. 4000) {
		$wrong = $test->() or return;
		select(undef, undef, undef, 0.05);
	}
	fail("$what: $wrong");
}

# --- steps ---

my $is_paused = 0;

# fired COUNT, KEYS, START - fires, in the order of lib.sh
sub fired {
	my ($count, $keys, $start) = @_;
	fire($count, $keys, $start);
	return if $is_paused;
	for my $v (0 .. $count - 1) {
		my $k = $start + $v % $keys;
		my %passes = map { $_ => 1 } grep { $_->{passes}->($k, $v) } @words;
		for my $t (grep { $passes{$_->{word}} } @tables) {
			my @hit = ($k, $v, $t->{is_named} && $k % 2 == 0 ? 1 : 0);
			if ($t->{word}{budget} && !$hit[2]) { push @{$t->{pending}}, \@hit } else { hit($t, @hit) }
		}
	}
	settle();
}

# ended COUNT, KEYS, START - likewise, the other event
sub ended {
	my ($count, $keys, $start) = @_;
	write_to("$ENV{FIRE}_second", "$count $keys $start task");
	for my $t (grep { $_->{reader} } @tables) {
		for my $v (0 .. $count - 1) {
			my $k = $start + $v % $keys;
			my ($reader, $begun) = ($t->{reader}, delete $t->{begun}{$k});
			if (defined $begun) {
				count($reader->{rows}, $k, $begun + $v);
				$reader->{hits}++;
			} else {
				$reader->{ignored}++;
			}
		}
	}
}

# stats PLACE, MEMBER - what hist_stats says, a hash for each table
sub stats {
	my @stats = map { +{ /^(\w+): (\w+)$/mg } } split /\n\n/, content(file(@_, $ENV{HIST_STATS}));
	@stats >= @words or fail("$_[0]{name} has only " . @stats . " triggers");
	return @stats;
}

# settle - until it says what there is to wait for
sub settle {
	for my $place (@places) {
		until_true($place->{name}, sub {
			my @stats = stats($place, 0);
			for my $n (0 .. $#words) {
				my $wanted = $place->{tables}[$n]{stats};
				for (grep { $stats[$n]{$_} != $wanted->{$_} } keys %$wanted) {
					return "$words[$n]{text}: $_: $stats[$n]{$_}, wanted $wanted->{$_}";
				}
			}
			return '';
		});
	}
}

# storm - fires until all that have a budget have paused themselves, and all that are timed have a sample
sub storm {
	my $n = 500;
	until_true('storm', sub {
		fired($n, 2, 500);
		$n *= 2 if $n < 8000;
		for my $place (@places) {
			for my $member (0 .. $#{$place->{events}}) {
				my @stats = stats($place, $member);
				for (grep { $words[$_]{samples} } 0 .. $#words) {
					my $what = "$place->{name}, $words[$_]{text}";
					return "no sample of $what" unless $stats[$_]{overhead_samples};
					return "$what goes on" if $words[$_]{budget} && !$member && !$stats[$_]{paused_by};
				}
			}
		}
		return '';
	});
}

# compare STEP, [FILE] - of all tables, and says which are wrong
sub compare {
	my ($step, $name) = @_;
	my @wrong;
	for my $place (@places) {
		for my $member (0 .. $#{$place->{events}}) {
			# Who reads the pipe by one event has the hits of the other.
			next if $name && $member;
			my @got = split /^(?=\{"v":1,)/m, content(file($place, $member, $name // $ENV{HIST_JSON}));
			for my $n (0 .. $#words) {
				my $wrong = difference($place, $member, $n, $got[$n] // '', $name);
				push @wrong, "$place->{name}: $words[$n]{text}: $wrong" if $wrong;
			}
		}
		my @got = $name ? () : split /^(?=\{"v":1,)/m, content("$place->{dir}/events/rust_hist_test/second/$ENV{HIST_JSON}");
		for my $n (grep { $words[$_]{reader} && !$name } 0 .. $#words) {
			my $event = dotted($place);
			my ($got) = map { s/.*\n//r } grep { /^.*=\Q$event\E\.\$/ } @got;
			my $wrong = unlike($got // '', text($place->{tables}[$n]{reader}));
			push @wrong, "$place->{name}: the reader of $words[$n]{text}: $wrong" if $wrong;
		}
	}
	fail("$step:\n" . join "\n", @wrong) if @wrong;
}

# difference PLACE, MEMBER, N, GOT, IS_PIPE - what is wrong with one
sub difference {
	my ($place, $member, $n, $got, $is_pipe) = @_;
	my $t = $place->{tables}[$n];
	my ($head, $lines) = split /(?<=\n)/, $got, 2;
	# Tables that others read are not consumed.
	return $lines || $head !~ /"consumed":false/ ? $got : '' if $t->{word}{reader} && $is_pipe;
	my ($calls) = ($lines // '') =~ /"calls":(\d+)/ or return "no table: $got";
	my $is_over = $head =~ /"paused_by":"overhead"/;

	# One that has paused itself has had all up to that moment. What it has cost before it was continued does not count, so
	# that then it has had one at least.
	if (my @pending = splice @{$t->{pending}}) {
		my $before = $t->{hits};
		hit($t, @{shift @pending}) while @pending && (!$is_over || $t->{hits} < $calls);
		return 'no call of one that was continued' if $t->{is_continued} && $t->{hits} == $before;
		$t->{is_continued} = 0;
	}
	my $state = $is_paused ? '"paused"' : $is_over ? '"paused","paused_by":"overhead"' : '"active"';
	return "not $state: $head" unless $head =~ /"state":$state,(?!"paused_by)/;
	if ($t->{word}{samples}) {
		# One of 128 on each CPU, from the first call on, whenever it was cleared; not those that were interrupted.
		return "$t->{calls} calls: $head" unless $head =~ /"samples":(\d+)/ && $1 <= $t->{calls} / 128 + $cpus;
	}
	return unlike($lines, ($t->{text} //= text($t)) =~ s/"row":\{"K"/"row":{"$place->{k}"/gr);
}

# unlike GOT, WANTED - some lines that are in one of the two
sub unlike {
	my ($got, $wanted) = @_;
	return '' if $got eq $wanted;
	my %is = map { $_ => 1 } split /^/, $got;
	my @less = grep { !delete $is{$_} } split /^/, $wanted;
	return join '', "wanted\n", splice(@less, 0, 3), "got\n", splice @{[sort keys %is]}, 0, 3;
}

if (@ARGV) {
	my $place = $places[0];
	print join ';', map { dotted($place) . ' ' . trigger($place, $_, 0) } 0 .. $#words;
	exit 0;
}

my @made = @places[1 .. $#places];
my $feed = "$hist:keys=common_type:size=128:onmatch(rust_hist_test.sample).trace(made,key,val)";
write_to("events/$sample/trigger", $feed);
each_trigger(\@made, sub { write_to(file($_[0], $_[2], 'trigger'), trigger(@_)) });
for my $place (@places) { write_to(reader($place, $_)) for grep { $words[$_]{reader} } 0 .. $#words }
compare('at first');
# As many keys as make one that is to get another map ask for it, twice.
fired(97, 97, 0);
ended(6, 6, 0);
compare('the first keys');
fired(97, 97, 97);
compare('all keys');
# 45 is 50 away from 95, and 94 is 49 away from it.
fired(@$_) for [20, 4, 0], [4, 1, 95], [4, 1, 45], [4, 1, 94];
compare('some more');
storm();
compare('a storm');

compare('an epoch', $ENV{HIST_PIPE});
begin_epoch($_) for grep { !$_->{reader} } @tables;
compare('after an epoch');
fired(@$_) for [20, 4, 0], [4, 1, 99];
ended(6, 6, 0);
compare('the next epoch');

command(':pause');
$is_paused = 1;
fired(97, 97, 97);
compare('paused');
command(':cont');
$is_paused = 0;
$_->{is_continued} = 1 for @tables;
compare('continued');
# 99 was above 90, 10 ends that, and 90 is not above 90.
fired(@$_) for [4, 1, 10], [4, 1, 90], [4, 1, 93];
compare('after that');

command(':clear');
clear($_) for @tables;
ended(6, 6, 0);
compare('cleared');
fired(@$_) for [97, 97, 0], [4, 1, 95];
ended(6, 6, 0);
compare('the last ones');

# What they are on goes after them, and not before; an instance with those that have no variables.
write_to("events/$sample/trigger", "!$feed");
for my $place (@made) {
	for my $n (grep { $words[$_]{reader} } 0 .. $#words) {
		my ($file, $text) = reader($place, $n);
		write_to($file, "!$text");
	}
	my ($file, @texts) = @{$place->{gone} // []};
	my $go = sub {
		return rmdir $place->{dir} ? '' : "rmdir: $!" unless $file;
		while (@texts) {
			my $wrong = put($file, $texts[0]);
			return $wrong if $wrong;
			shift @texts;
		}
		return '';
	};
	$go->() or fail("$place->{name} has gone before its triggers");
	each_trigger([$place], sub {
		return unless $file || $words[$_[1]]{text} =~ /:\w=/;
		write_to(file($place, $_[2], 'trigger'), '!' . trigger(@_));
	});
	until_true($place->{name}, $go);
}
