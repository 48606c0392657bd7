# SPDX-License-Identifier: GPL-2.0
#
# What the tests of starts that expire share.

# stats_are EVENT TITLE N [TITLE N]... - what its first table says at this moment
stats_are() {
	stats_event=$1
	shift
	while [ $# -gt 0 ]; do
		[ "$(stat_of "$stats_event" "$1")" = "$2" ] || return 1
		shift 2
	done
}

# expired_are EVENT N - so many of its starts have expired
expired_are() { stats_are "$1" expired "$2"; }
