/* SPDX-License-Identifier: GPL-2.0 */
/* Events with fields of every kind, each a function of one number. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rust_hist_test

#if !defined(_RUST_HIST_TEST_H) || defined(TRACE_HEADER_MULTI_READ)
#define _RUST_HIST_TEST_H

#include <linux/tracepoint.h>

/* In Rust */
int rust_hist_test_nmi(unsigned int kind, struct pt_regs *regs);
int rust_hist_test_run(const void *job, u8 context);

TRACE_EVENT(sample,
	TP_PROTO(u64 key, u64 val, const char *fixed, const char *text),
	TP_ARGS(key, val, fixed, text),
	TP_STRUCT__entry(
		__field(u64, key)
		__field(u64, val)
		__field(u8, un8)
		__field(s8, sn8)
		__field(u16, un16)
		__field(s16, sn16)
		__field(u32, un32)
		__field(s32, sn32)
		__field(s64, sn64)
		__array(char, fixed, 16)
		__string(dyn, text)
		__rel_string(rel, text)
		__field(const char *, ptr)
		__array(u8, blob, 24)
	),
	TP_fast_assign(
		__entry->key = key;
		__entry->val = val;
		__entry->un8 = key;
		__entry->sn8 = -key;
		__entry->un16 = key * 3;
		__entry->sn16 = -key * 3;
		__entry->un32 = key * 5;
		__entry->sn32 = -key * 5;
		__entry->sn64 = -key * 7;
		memcpy(__entry->fixed, fixed, 16);
		__assign_str(dyn);
		__assign_rel_str(rel);
		__entry->ptr = rust_hist_test_text;
		memset(__entry->blob, key, sizeof(__entry->blob));
	),
	TP_printk("key=%llu val=%llu dyn=%s", __entry->key, __entry->val, __get_str(dyn))
);

/* The same number in other types and places, to be matched with those of sample, or not. */
TRACE_EVENT(second,
	TP_PROTO(u64 key, u64 val, const char *fixed, const char *text),
	TP_ARGS(key, val, fixed, text),
	TP_STRUCT__entry(
		__field(u16, small)
		__field(u64, id)
		__field(u64, when)
		__field(s64, minus)
		__array(char, fixed, 16)
		__array(char, longer, 24)
		__string(dyn, text)
	),
	TP_fast_assign(
		__entry->small = key;
		__entry->id = key;
		__entry->when = val;
		__entry->minus = -key;
		memcpy(__entry->fixed, fixed, 16);
		memset(__entry->longer, 0, 24);
		memcpy(__entry->longer, fixed, 16);
		__assign_str(dyn);
	),
	TP_printk("id=%llu when=%llu dyn=%s", __entry->id, __entry->when, __get_str(dyn))
);

/* A mask of CPUs: the bits of the same number. It is fired together with second. */
TRACE_EVENT(cpus,
	TP_PROTO(u64 key),
	TP_ARGS(key),
	TP_STRUCT__entry(
		__field(u64, key)
		__cpumask(mask)
	),
	TP_fast_assign(
		__entry->key = key;
		memset(__get_cpumask(mask), 0, __get_dynamic_array_len(mask));
		memcpy(__get_cpumask(mask), &key, sizeof(unsigned long));
	),
	TP_printk("key=%llu mask=%s", __entry->key, __get_cpumask(mask))
);

/* What the benchmarks put triggers on: small, so that what a trigger adds is seen. */
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
#define TRACE_INCLUDE_FILE rust_hist_test
#include <trace/define_trace.h>
