/* SPDX-License-Identifier: GPL-2.0 */
/* The event whose triggers are measured. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rust_hist_bench

#if !defined(_RUST_HIST_BENCH_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RUST_HIST_BENCH_H

#include <linux/tracepoint.h>

TRACE_EVENT(hit,
	TP_PROTO(u64 key, u64 val, const char *str),
	TP_ARGS(key, val, str),
	TP_STRUCT__entry(
		__field(u64, key)
		__field(u64, val)
		__array(char, str, 16)
	),
	TP_fast_assign(
		__entry->key = key;
		__entry->val = val;
		memcpy(__entry->str, str, 16);
	),
	TP_printk("key=%llu val=%llu str=%s", __entry->key, __entry->val, __entry->str)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE rust_hist_bench
#include <trace/define_trace.h>
