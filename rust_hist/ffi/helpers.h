/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What of the tracing core exists only as a macro or a static inline function,
 * as functions that Rust can call. They decide nothing.
 */
#ifndef RUST_HIST_HELPERS_H
#define RUST_HIST_HELPERS_H

#include <linux/poll.h>
#include <trace.h>

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
	HIST_AT_FILE_PRIVATE_DATA	= offsetof(struct file, private_data),
	HIST_AT_SEQ_FILE_PRIVATE	= offsetof(struct seq_file, private),
	HIST_AT_MODULE_STATE		= offsetof(struct module, state),
};

/* The parameter `triggers`, its NUL included */
extern char hist_helper_triggers[4096];


void hist_helper_preempt_disable(void);
void hist_helper_preempt_enable(void);
void hist_helper_tracepoint_synchronize_unregister(void);
const char *hist_helper_trace_event_name(struct trace_event_call *call);
struct ring_buffer_event *hist_helper_scratch_record(void);
struct trace_event_file *hist_helper_event_file_file(struct file *filp);
bool hist_helper_within_module(unsigned long addr, const struct module *mod);
void hist_helper_list_add_tail_rcu(struct list_head *node, struct list_head *head);
void hist_helper_list_del_rcu(struct list_head *node);
const char *hist_helper_current_comm(void);
pid_t hist_helper_current_pid(void);
const char *hist_helper_syscall_name(int nr);
void hist_helper_poll_wakeup(void);
void hist_helper_max_lock(struct trace_array *tr);
void hist_helper_max_unlock(struct trace_array *tr);

#endif /* RUST_HIST_HELPERS_H */
