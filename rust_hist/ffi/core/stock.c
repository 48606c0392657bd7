// SPDX-License-Identifier: GPL-2.0
/* What only C can define of the stock side: static objects of the kernel, and an event. */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/uio.h>
#include "../helpers.h"

DEFINE_MUTEX(hist_stock_mutex);
DECLARE_WAIT_QUEUE_HEAD(hist_stock_poll_wq);
DECLARE_DELAYED_WORK(hist_stock_work, hist_stock_sweep);

static void wake_pollers(struct irq_work *work)
{
	wake_up_all(&hist_stock_poll_wq);
}

DEFINE_IRQ_WORK(hist_stock_poll_work, wake_pollers);

/*
 * The event rust_hist:event_mutex, of which there are no records. The core
 * calls reg() with event_mutex held, and trace_set_clr_event() makes it do so.
 * hist_stock_mutex protects the variables.
 */
static struct task_struct *hook_task;
static int (*hook_run)(void *data);
static void *hook_data;
static int hook_result;
static struct trace_array *hook_instance;

static int hook_reg(struct trace_event_call *call, enum trace_reg type, void *data)
{
	struct trace_event_file *file = data;

	if (type != TRACE_REG_REGISTER && type != TRACE_REG_UNREGISTER)
		return 0;
	/* With the bit set, unloading would empty the buffer of each instance */
	if (type == TRACE_REG_UNREGISTER)
		clear_bit(EVENT_FILE_FL_WAS_ENABLED_BIT, &file->flags);
	if (READ_ONCE(hook_task) == current && hook_run) {
		hook_instance = file->tr;
		hook_result = hook_run(hook_data);
		hook_run = NULL;
	}
	return 0;
}

static enum print_line_t hook_print(struct trace_iterator *iter, int flags, struct trace_event *event)
{
	return TRACE_TYPE_HANDLED;
}

static struct trace_event_fields hook_fields[] = { {} };
static struct trace_event_functions hook_functions = { .trace = hook_print };
static struct trace_event_class hook_class = {
	.system		= "rust_hist",
	.reg		= hook_reg,
	.fields_array	= hook_fields,
	.fields		= LIST_HEAD_INIT(hook_class.fields),
	.raw_init	= trace_event_raw_init,
};
static struct trace_event_call hook_call = {
	.name		= "event_mutex",
	.class		= &hook_class,
	.event.funcs	= &hook_functions,
	.print_fmt	= "\"\"",
};
static struct trace_event_call *hook_entry __used __section("_ftrace_events") = &hook_call;

/*
 * Runs a function with event_mutex held. If somebody else enables or disables
 * the event meanwhile, a call does nothing, so there are several.
 */
int hist_stock_with_event_mutex(int (*run)(void *data), void *data)
{
	int on;

	lockdep_assert_held(&hist_stock_mutex);
	hook_run = run;
	hook_data = data;
	hook_result = -EBUSY;
	WRITE_ONCE(hook_task, current);
	for (on = 1; hook_run && on < 9; on++)
		trace_set_clr_event("rust_hist", "event_mutex", on & 1);
	trace_set_clr_event("rust_hist", "event_mutex", 0);
	WRITE_ONCE(hook_task, NULL);
	return hook_result;
}

/* The top instance, for a function that hist_stock_with_event_mutex() calls */
struct trace_array *hist_stock_top(void)
{
	return hook_instance;
}

/* What a file shows that is a seq_file; the position counts */
ssize_t hist_stock_read(struct file *file, void *to, size_t size, loff_t *at)
{
	struct kvec part = { to, size };
	struct iov_iter iter;
	struct kiocb kiocb;
	ssize_t got;

	init_sync_kiocb(&kiocb, file);
	kiocb.ki_pos = *at;
	iov_iter_kvec(&iter, ITER_DEST, &part, 1, size);
	got = seq_read_iter(&kiocb, &iter);
	*at = kiocb.ki_pos;
	return got;
}
