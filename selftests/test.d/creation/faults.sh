# SPDX-License-Identifier: GPL-2.0
#
# Allocations may fail, also where the kernel may wait, and without a word in its log; which do is for
# /proc/thread-self/fail-nth to say. See also ../../Faults.pm.

[ -d /sys/kernel/debug/failslab ] || skip "no fault injection"
for kind in failslab fail_page_alloc; do
	for setting in ignore-gfp-wait=N ignore-gfp-highmem=N min-order=0 cache-filter=N task-filter=N verbose=0 probability=0 times=-1; do
		[ ! -f /sys/kernel/debug/$kind/${setting%=*} ] || echo ${setting#*=} >/sys/kernel/debug/$kind/${setting%=*}
	done
done
# What the debug kernel allocates for itself, once for each allocation, is not ours to fail, and it does without.
if [ -d /sys/kernel/slab/kmemleak_object ]; then
	for cache in /sys/kernel/slab/*/failslab; do
		case $cache in
		*/kmemleak_*|*/debug_objects_cache/*) ;;
		*) echo 1 >"$cache" 2>/dev/null || true ;;
		esac
	done
	echo Y >/sys/kernel/debug/failslab/cache-filter
fi
