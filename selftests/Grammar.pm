# SPDX-License-Identifier: GPL-2.0
#
# Reads selftests/grammar, whose head says how it is written.
#
#	my $grammar = Grammar->new($file);
#	$grammar->words('operator')	the alternatives of a rule that are single words, each as often as it counts
#	$grammar->terminals		all words
#	$grammar->derive('trigger', $n)	a random text; $n->($k) is a number from 0 to $k - 1
#	$grammar->derive('trigger', $n, {number => sub { ... }})
#					what stands for some rules instead; where a sub gives nothing, the rule does
#	$grammar->{order}		[section, [comment lines], rule, its text, what the documentation shows instead]...
#
# A rule is a choice of alternatives, [weight, part...]; a part is one of
#	[word => text], [rule => name], [group => choice], [option => choice], [repeat => choice].

package Grammar;

use strict;
use warnings;

sub new {
	my ($class, $file) = @_;
	my $self = bless {file => $file, rules => {}, order => []}, $class;
	open my $f, '<', $file or die "$file: $!\n";
	my ($section, $name, $shown, @comment, %text) = ('');
	while (my $line = <$f>) {
		chomp $line;
		if ($line =~ /^## (.*)/) {
			($section, @comment) = ($1);
		} elsif ($line =~ /^#= ?(.*)/) {
			$shown = $1;
		} elsif ($line =~ /^# (.*)/) {
			push @comment, $1 if $section ne '';
		} elsif ($line =~ /^([a-z][-a-z0-9]*) = (.*)/) {
			$name = $1;
			die "$file:$.: $name comes twice\n" if exists $text{$name};
			$text{$name} = $2;
			push @{$self->{order}}, [$section, [splice @comment], $name, undef, $shown];
			$shown = undef;
		} elsif ($line =~ /^\t(.*)/ && defined $name) {
			$text{$name} .= "\n$1";
		} elsif ($line !~ /^(?:#.*)?$/) {
			die "$file:$.: neither a rule nor a comment\n";
		}
	}
	$_->[3] = $text{$_->[2]} for @{$self->{order}};
	for my $rule (sort keys %text) {
		my @tokens = $text{$rule} =~ /\G\s*("(?:[^"\\]|\\.)*"|[a-z][-a-z0-9]*|\d+|[][(){}|*])/gc;
		$text{$rule} =~ /\G\s*\z/gc or die "$file: $rule: not understood: " . substr($text{$rule}, pos $text{$rule} // 0) . "\n";
		$self->{rules}{$rule} = $self->choice($rule, \@tokens);
		die "$file: $rule: '$tokens[0]' is too much\n" if @tokens;
	}
	for my $rule (sort keys %text) { $self->check($rule, $self->{rules}{$rule}); }
	return $self;
}

my %closing = ('(' => ')', '[' => ']', '{' => '}');
my %kind = ('(' => 'group', '[' => 'option', '{' => 'repeat');
my %escape = (n => "\n", t => "\t");

sub choice {
	my ($self, $rule, $tokens) = @_;
	my @choice = ([1]);
	while (@$tokens && $tokens->[0] !~ /^[])}]/) {
		my $token = shift @$tokens;
		if ($token eq '|') {
			push @choice, [1];
		} elsif ($token eq '*') {
			$choice[-1][0] = shift @$tokens;
		} elsif ($token =~ /^"(.*)"$/s) {
			push @{$choice[-1]}, [word => $1 =~ s/\\(.)/$escape{$1} \/\/ $1/ger];
		} elsif (exists $closing{$token}) {
			push @{$choice[-1]}, [$kind{$token} => $self->choice($rule, $tokens)];
			(shift @$tokens // '') eq $closing{$token} or die "$self->{file}: $rule: a '$token' is not closed\n";
		} else {
			push @{$choice[-1]}, [rule => $token];
		}
	}
	return \@choice;
}

sub check {
	my ($self, $rule, $choice) = @_;
	for my $alternative (@$choice) {
		my ($weight, @parts) = @$alternative;
		$weight =~ /^\d+$/ && @parts or die "$self->{file}: $rule: an alternative is empty\n";
		for my $part (@parts) {
			my ($kind, $what) = @$part;
			if (ref $what) {
				$self->check($rule, $what);
			} elsif ($kind eq 'rule' && !exists $self->{rules}{$what}) {
				die "$self->{file}: $rule: there is no rule $what\n";
			}
		}
	}
}

sub words {
	my ($self, $rule) = @_;
	my $choice = $self->{rules}{$rule} // die "$self->{file}: there is no rule $rule\n";
	return map { my ($weight, @parts) = @$_; @parts == 1 && $parts[0][0] eq 'word' ? ($parts[0][1]) x $weight : () } @$choice;
}

sub terminals {
	my ($self) = @_;
	my %words;
	my @left = map { map { @$_[1 .. $#$_] } @$_ } values %{$self->{rules}};
	while (my $part = shift @left) {
		if ($part->[0] eq 'word') { $words{$part->[1]} = 1; }
		elsif (ref $part->[1]) { push @left, map { @$_[1 .. $#$_] } @{$part->[1]}; }
	}
	return sort grep { $_ ne '' } keys %words;
}

sub derive {
	my ($self, $rule, $number, $instead) = @_;
	my $text = $instead && $instead->{$rule} && $instead->{$rule}->();
	return $text if defined $text;
	return $self->derive_choice($self->{rules}{$rule} // die("$self->{file}: there is no rule $rule\n"), $number, $instead);
}

sub derive_choice {
	my ($self, $choice, $number, $instead) = @_;
	my $sum = 0;
	$sum += $_->[0] for @$choice;
	my $dice = $number->($sum);
	my ($alternative) = grep { ($dice -= $_->[0]) < 0 } @$choice;
	my $text = '';
	for my $part (@$alternative[1 .. $#$alternative]) {
		my ($kind, $what) = @$part;
		if ($kind eq 'word') { $text .= $what; }
		elsif ($kind eq 'rule') { $text .= $self->derive($what, $number, $instead); }
		elsif ($kind eq 'group') { $text .= $self->derive_choice($what, $number, $instead); }
		elsif ($kind eq 'option') { $text .= $self->derive_choice($what, $number, $instead) if $number->(2); }
		else { $text .= $self->derive_choice($what, $number, $instead) while $number->(3) == 0; }
	}
	return $text;
}

1;
