// SPDX-License-Identifier: GPL-2.0
/* Macros and static inline functions, as functions. Each names what it wraps. */
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#include "helpers.h"

/* preempt_disable_notrace() */
void hist_helper_preempt_disable(void)
{
	preempt_disable_notrace();
}

/* preempt_enable_notrace() */
void hist_helper_preempt_enable(void)
{
	preempt_enable_notrace();
}

/* tracepoint_synchronize_unregister() */
void hist_helper_tracepoint_synchronize_unregister(void)
{
	tracepoint_synchronize_unregister();
}

/* trace_event_name() */
const char *hist_helper_trace_event_name(struct trace_event_call *call)
{
	return trace_event_name(call);
}

/* this_cpu_read() of trace_buffered_event */
struct ring_buffer_event *hist_helper_scratch_record(void)
{
	return __this_cpu_read(trace_buffered_event);
}

/* event_file_file() */
struct trace_event_file *hist_helper_event_file_file(struct file *filp)
{
	return event_file_file(filp);
}

/* within_module() */
bool hist_helper_within_module(unsigned long addr, const struct module *mod)
{
	return within_module(addr, mod);
}

/* list_add_tail_rcu() */
void hist_helper_list_add_tail_rcu(struct list_head *node, struct list_head *head)
{
	list_add_tail_rcu(node, head);
}

/* list_del_rcu() */
void hist_helper_list_del_rcu(struct list_head *node)
{
	list_del_rcu(node);
}

/* current->comm; bindgen does not know where it is, see bindings.rs */
const char *hist_helper_current_comm(void)
{
	return current->comm;
}

/* current->pid */
pid_t hist_helper_current_pid(void)
{
	return current->pid;
}

/* get_syscall_name(), inline without CONFIG_FTRACE_SYSCALLS */
const char *hist_helper_syscall_name(int nr)
{
	return get_syscall_name(nr);
}

/* hist_poll_wakeup() */
void hist_helper_poll_wakeup(void)
{
	hist_poll_wakeup();
}

/* tracing_snapshot_cond() and its callback hold it; arch_spin_lock() is inline */
void hist_helper_max_lock(struct trace_array *tr)
{
	local_irq_disable();
	arch_spin_lock(&tr->max_lock);
}

/* arch_spin_unlock() of the above */
void hist_helper_max_unlock(struct trace_array *tr)
{
	arch_spin_unlock(&tr->max_lock);
	local_irq_enable();
}

/* A string parameter, which the module! macro of the kernel crate cannot declare */
char hist_helper_triggers[4096];
module_param_string(triggers, hist_helper_triggers, sizeof(hist_helper_triggers), 0444);
MODULE_PARM_DESC(triggers, "Triggers to make: SYSTEM.EVENT hist:...[; SYSTEM.EVENT hist:...]...");
