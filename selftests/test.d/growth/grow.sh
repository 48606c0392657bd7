# SPDX-License-Identifier: GPL-2.0
#
# What the tests of tables that grow share.

# sizes_are EVENT SIZE... - the sizes of its tables at this moment
sizes_are() {
	sizes_event=$1
	shift
	[ "$(sed -n 's/^size: //p' "events/$sizes_event/$HIST_STATS" | tr '\n' ' ')" = "$* " ]
}
