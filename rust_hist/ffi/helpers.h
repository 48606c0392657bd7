/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What of the kernel exists only as a macro or a static inline function, as
 * functions that Rust can call. They decide nothing.
 */
#ifndef RUST_HIST_HELPERS_H
#define RUST_HIST_HELPERS_H

#include <linux/kprobes.h>
#include <linux/poll.h>
#ifdef RUST_HIST_STOCK
#include "core/stock.h"
#else
#include <trace.h>
#include <trace_dynevent.h>
#endif

/* EPOLL* of <uapi/linux/eventpoll.h>, whose casts bindgen does not evaluate */
enum {
	HIST_POLL_READABLE	= (__force int)(EPOLLIN | EPOLLRDNORM),
	HIST_POLL_PRIORITY	= (__force int)EPOLLPRI,
	HIST_POLL_ERROR		= (__force int)EPOLLERR,
};

/*
 * What Rust reaches into of structures that the kernel crate has from bindgen,
 * which does not get all of them right: an empty member has no alignment there.
 */
enum {
	HIST_SIZE_FILE_OPERATIONS	= sizeof(struct file_operations),
	HIST_SIZE_SEQ_OPERATIONS	= sizeof(struct seq_operations),
	HIST_SIZE_NOTIFIER_BLOCK	= sizeof(struct notifier_block),
	HIST_SIZE_TRACEPOINT		= sizeof(struct tracepoint),
	HIST_AT_FILE_PRIVATE_DATA	= offsetof(struct file, private_data),
	HIST_AT_SEQ_FILE_PRIVATE	= offsetof(struct seq_file, private),
	HIST_AT_MODULE_STATE		= offsetof(struct module, state),
	HIST_AT_MODULE_TEXT		= offsetof(struct module, mem[MOD_TEXT]),
	HIST_AT_DENTRY_INODE		= offsetof(struct dentry, d_inode),
	HIST_AT_DENTRY_SB		= offsetof(struct dentry, d_sb),
	HIST_STACK_OF_TASK		= THREAD_SIZE,
};

/* The parameter `triggers`, its NUL included */
extern char hist_helper_triggers[4096];

/* How many open files have polled; what tests a static key in Rust wants it as a member */
extern struct hist_helper_key { struct static_key_false key; } hist_helper_pollers;

/*
 * Helpers, one line each: how Rust calls it, and the C that it stands for.
 * helpers.c defines them, everybody else gets the declarations.
 */
#ifndef HIST_HELPER
#define HIST_HELPER(prototype, ...) prototype
#endif

HIST_HELPER(void hist_helper_preempt_disable(void), preempt_disable_notrace());
HIST_HELPER(void hist_helper_preempt_enable(void), preempt_enable_notrace());
HIST_HELPER(void hist_helper_tracepoint_sync(void), tracepoint_synchronize_unregister());
HIST_HELPER(const char *hist_helper_trace_event_name(struct trace_event_call *call),
		return trace_event_name(call));
HIST_HELPER(struct trace_event_file *hist_helper_event(struct file *f), return event_file_file(f));
HIST_HELPER(void hist_helper_list_add_tail_rcu(struct list_head *node, struct list_head *head),
		list_add_tail_rcu(node, head));
HIST_HELPER(void hist_helper_list_del_rcu(struct list_head *node), list_del_rcu(node));
/* bindgen does not know where they are, see bindings.rs */
HIST_HELPER(const char *hist_helper_current_comm(void), return current->comm);
HIST_HELPER(pid_t hist_helper_current_tgid(void), return current->tgid);
/* The bytes that are left of the task's stack; THREAD_SIZE or more on another stack, of which nothing is known */
HIST_HELPER(unsigned long hist_helper_stack_left(void),
		return (unsigned long)__builtin_frame_address(0) - (unsigned long)task_stack_page(current));
HIST_HELPER(bool hist_helper_in_nmi(void), return in_nmi());
/* What a task is called in the initial namespace is the number itself */
HIST_HELPER(uid_t hist_helper_current_uid(void), return __kuid_val(current_uid()));
HIST_HELPER(int hist_helper_current_node(void), return numa_node_id());
HIST_HELPER(bool hist_helper_pause(void),
		schedule_timeout_killable(1); return fatal_signal_pending(current));
#ifdef CONFIG_CGROUPS
HIST_HELPER(u64 hist_helper_current_cgroup(void), return cgroup_id(task_dfl_cgroup(current)));
#endif
/* Where kprobes would put a probe of that name, or NULL; no such probe is armed */
#ifdef CONFIG_KPROBES
HIST_HELPER(void *hist_helper_function(const char *name),
		struct kprobe probe = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };

		if (register_kprobe(&probe))
			return NULL;
		unregister_kprobe(&probe);
		return probe.addr);
#else
HIST_HELPER(void *hist_helper_function(const char *name), return NULL);
#endif
HIST_HELPER(int hist_helper_cpu_list(const char *list, u64 *set),
		return bitmap_parselist(list, (unsigned long *)set, nr_cpu_ids));
#ifndef RUST_HIST_STOCK
/* Inline in some configurations */
HIST_HELPER(const char *hist_helper_syscall_name(int nr), return get_syscall_name(nr));
/* Of struct dyn_event */
HIST_HELPER(int hist_helper_dyn_event_add(struct dyn_event *ev, struct trace_event_call *call),
		return dyn_event_add(ev, call));
HIST_HELPER(void hist_helper_dyn_event_remove(struct dyn_event *ev), dyn_event_remove(ev));
HIST_HELPER(bool hist_helper_dyn_event_busy(struct trace_event_call *call),
		return atomic_read(&call->refcnt) != 0);
HIST_HELPER(struct hlist_head *hist_helper_perf_head(struct trace_event_call *call),
		return this_cpu_ptr(call->perf_events));
HIST_HELPER(void hist_helper_caller_regs(struct pt_regs *regs), perf_fetch_caller_regs(regs));
#endif
HIST_HELPER(void hist_helper_poll_wakeup(void), hist_poll_wakeup());
HIST_HELPER(void hist_helper_pollers_inc(void), static_branch_inc(&hist_helper_pollers.key));
HIST_HELPER(void hist_helper_pollers_dec(void), static_branch_dec(&hist_helper_pollers.key));
/* tracing_snapshot_cond() and its callback hold it; arch_spin_lock() is inline */
HIST_HELPER(void hist_helper_max_lock(struct trace_array *tr),
		local_irq_disable(); arch_spin_lock(&tr->max_lock));
HIST_HELPER(void hist_helper_max_unlock(struct trace_array *tr),
		arch_spin_unlock(&tr->max_lock); local_irq_enable());

#endif /* RUST_HIST_HELPERS_H */
