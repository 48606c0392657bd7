/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What stands in place of the private headers of a kernel without the series:
 * the declarations that scripts/layout makes, and those of core/stock.c.
 */
#ifndef RUST_HIST_STOCK_H
#define RUST_HIST_STOCK_H

#include <linux/fs_context.h>
#include <linux/irq_work.h>
#include <linux/namei.h>
#include <linux/security.h>
#include <linux/trace.h>
#include <linux/trace_clock.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <trace/syscall.h>
#include "layout.h"

enum { HIST_LOOKUP_RCU = LOOKUP_RCU };

extern struct mutex hist_stock_mutex;
extern wait_queue_head_t hist_stock_poll_wq;
extern struct irq_work hist_stock_poll_work;
extern struct delayed_work hist_stock_work;

int hist_stock_with_event_mutex(int (*run)(void *data), void *data);
struct trace_array *hist_stock_top(void);
ssize_t hist_stock_read(struct file *file, void *to, size_t size, loff_t *at);

/* In Rust */
void hist_stock_sweep(struct work_struct *work);
struct trace_event_file *event_file_file(struct file *file);
#define hist_poll_wakeup()							\
	do {									\
		if (wq_has_sleeper(&hist_stock_poll_wq))			\
			irq_work_queue(&hist_stock_poll_work);			\
	} while (0)

#endif /* RUST_HIST_STOCK_H */
