// SPDX-License-Identifier: GPL-2.0
/*
 * Fires the event rust_hist_bench:hit in a loop with interrupts off, and tells how long that took.
 *
 * "COUNT KEYS VALS STRS" written to debugfs' rust_hist_bench/fire has it fire COUNT times with one of
 * KEYS keys, VALS values and STRS (at most 16) strings, by the same random numbers each time. The
 * files cycles and ns tell how long the last loop took.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/timekeeping.h>
#include <asm/tsc.h>

#define CREATE_TRACE_POINTS
#include "rust_hist_bench.h"

static struct dentry *dir;
static u64 cycles, ns;
static char strs[16][16];

static ssize_t fire_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	u64 count, n_keys, n_vals, n_strs, x = 88172645463325252ULL;
	char text[80] = "";

	if (len >= sizeof(text) || copy_from_user(text, from, len))
		return -EINVAL;
	if (sscanf(text, "%llu %llu %llu %llu", &count, &n_keys, &n_vals, &n_strs) != 4 || n_strs > 16)
		return -EINVAL;

	guard(irqsave)();
	ns = ktime_get_raw_fast_ns();
	cycles = rdtsc_ordered();
	while (count--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		trace_hit((x >> 32) * n_keys >> 32, (u32)x * n_vals >> 32, strs[(u32)(x >> 20) * n_strs >> 32]);
	}
	cycles = rdtsc_ordered() - cycles;
	ns = ktime_get_raw_fast_ns() - ns;
	return len;
}

static const struct file_operations fire_fops = { .owner = THIS_MODULE, .write = fire_write };

static int __init rust_hist_bench_init(void)
{
	for (int n = 0; n < 16; n++)
		snprintf(strs[n], sizeof(strs[n]), "string %d", n);
	dir = debugfs_create_dir("rust_hist_bench", NULL);
	debugfs_create_file("fire", 0200, dir, NULL, &fire_fops);
	debugfs_create_u64("cycles", 0400, dir, &cycles);
	debugfs_create_u64("ns", 0400, dir, &ns);
	return 0;
}
module_init(rust_hist_bench_init);

static void __exit rust_hist_bench_exit(void)
{
	debugfs_remove(dir);
}
module_exit(rust_hist_bench_exit);

MODULE_DESCRIPTION("An event to measure triggers with");
MODULE_LICENSE("GPL");
