// SPDX-License-Identifier: GPL-2.0
/* The events of the selftests, and what the code in Rust needs of macros and inline functions. */
#include <linux/interrupt.h>

const char rust_hist_test_text[] = { [0 ... 599] = 'x', 0 };

#define CREATE_TRACE_POINTS
#include "rust_hist_test.h"

#define HELPER(prototype, ...) prototype; prototype { __VA_ARGS__; } static_assert(true)

#define EVENT(name, ...) HELPER(void rust_hist_test_##name(u64 key, u64 val, const char *fixed, \
	const char *text), trace_##name(key, val, fixed, ##__VA_ARGS__))

EVENT(sample, text);
HELPER(void rust_hist_test_second(u64 key, u64 val, const char *fixed, const char *text),
	trace_second(key, val, fixed, text); trace_cpus(key));
EVENT(hit);
HELPER(void rust_hist_test_schedule(struct tasklet_struct *tasklet), tasklet_schedule(tasklet));
HELPER(int rust_hist_test_next_cpu(void),
	return cpumask_next_wrap(raw_smp_processor_id(), cpu_online_mask));

#ifdef CONFIG_X86
#include <asm/apic.h>
#include <asm/nmi.h>
HELPER(int rust_hist_test_on_nmi(void),
	return register_nmi_handler(NMI_LOCAL, rust_hist_test_nmi, 0, "rust_hist_test"));
HELPER(void rust_hist_test_off_nmi(void), unregister_nmi_handler(NMI_LOCAL, "rust_hist_test"));
HELPER(void rust_hist_test_send_nmi(int cpu), __apic_send_IPI_mask(cpumask_of(cpu), NMI_VECTOR));
#endif

/* Tests put probes on it, which code in Rust does not take, and find it in stacks. */
HELPER(int fire_write(const void *job, u8 context),
	int ret = rust_hist_test_run(job, context); barrier(); return ret);
