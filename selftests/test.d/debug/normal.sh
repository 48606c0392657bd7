# SPDX-License-Identifier: GPL-2.0
#
# hist_debug with names for what differs from run to run. The texts in these tests are those of the C
# code, but for what the tests say.

HIST_DEBUG=${HIST}_debug
[ -e "events/ftrace/print/$HIST_DEBUG" ] || skip "the trigger is built without its debug file"

# normal_debug EVENT... - the files; the addresses of tables are T1, T2 ... in order of appearance. What C
# prints of H-SPF-04 is put right. The line with the path, which C has not, is left out.
normal_debug() {
	for debug_event; do
		cat "events/$debug_event/$HIST_DEBUG"
	done | awk -v hist="$HIST" '
		match($0, /hist_data: [0-9a-f]+$/) {
			address = substr($0, RSTART + 11)
			if (!(address in name))
				name[address] = "T" ++n
			$0 = substr($0, 1, RSTART + 10) name[address]
		}
		{
			sub("^# trigger info: " hist ":", "# trigger info: HIST:")
			gsub(/common_cpucommon_cpu/, "common_cpu")
		}
		/^$/ { empty = empty "\n"; next }
		/^  path: / { empty = ""; next }
		{
			print empty $0
			empty = ""
		}
		END { printf "%s", empty }'
}

# same_debug - compares what a test wants with what it got
same_debug() {
	diff -u "$TMPDIR/wanted" "$TMPDIR/got" || fail "this is not what was wanted"
}
