/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Input of bindgen: the kernel's private tracing headers, and our own helpers.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>
#include <linux/stacktrace.h>
#include <linux/tracefs.h>
#include <linux/vmalloc.h>

#include "helpers.h"
