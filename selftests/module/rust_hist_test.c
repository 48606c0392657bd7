// SPDX-License-Identifier: GPL-2.0
/*
 * Fires events a given number of times, for the selftests.
 *
 * "COUNT KEYS START CONTEXT" written to debugfs' rust_hist_test/fire has the
 * event sample fire COUNT times, with keys START ... START + KEYS - 1 in turn
 * and values 0 ... COUNT - 1. CONTEXT is task, softirq (a tasklet), irq or nmi;
 * the last two are for more than one CPU, they interrupt the next one. The
 * write returns when all is done. The file fired counts the hits since the load.
 * The file fire_second does the same with the event second.
 */
#include <linux/debugfs.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/smp.h>
#include <asm/apic.h>
#include <asm/nmi.h>

/* From key TEXT_LONG on, fixed has no NUL, and dyn and rel have key - TEXT_LONG characters. */
#define TEXT_LONG 1000
#define TEXT_LEN 600
static const char test_text[TEXT_LEN + 1] = { [0 ... TEXT_LEN - 1] = 'x' };

#define CREATE_TRACE_POINTS
#include "rust_hist_test.h"

/* A tasklet must not take long. */
#define BATCH 64

static DEFINE_MUTEX(nmi_mutex);
static struct job *nmi_job;
static atomic_t fired;
static struct dentry *dir;

struct job {
	u64 count, keys, start, done;
	bool second;
	struct tasklet_struct tasklet;
};

static void fire(struct job *job)
{
	char fixed[16] = "", text[24];
	const char *dyn = text;
	u64 key = job->start + job->done % job->keys;

	if (key < TEXT_LONG) {
		snprintf(fixed, sizeof(fixed), "fixed-%llu", key);
		snprintf(text, sizeof(text), "text-%llu", key);
	} else {
		memset(fixed, 'y', sizeof(fixed));
		dyn = test_text + TEXT_LEN - min(key - TEXT_LONG, (u64)TEXT_LEN);
	}
	if (job->second)
		trace_second(key, job->done, fixed, dyn);
	else
		trace_sample(key, job->done, fixed, dyn);
	atomic_inc(&fired);
	smp_store_release(&job->done, job->done + 1); /* pairs with send_nmi() */
}

static void fire_tasklet(struct tasklet_struct *tasklet)
{
	struct job *job = container_of(tasklet, struct job, tasklet);

	for (int n = 0; n < BATCH && job->done < job->count; n++)
		fire(job);
}

static void fire_irq(void *job)
{
	fire(job);
}

static int fire_nmi(unsigned int type, struct pt_regs *regs)
{
	struct job *job = xchg(&nmi_job, NULL);

	if (!job)
		return NMI_DONE;
	fire(job);
	return NMI_HANDLED;
}

static void send_nmi(struct job *job, int cpu)
{
	u64 before = job->done;

	guard(mutex)(&nmi_mutex);
	smp_store_release(&nmi_job, job); /* pairs with xchg() in fire_nmi() */
	__apic_send_IPI_mask(cpumask_of(cpu), NMI_VECTOR);
	while (smp_load_acquire(&job->done) == before) /* pairs with fire() */
		cpu_relax();
}

static ssize_t fire_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char text[80] = "", context[16];
	struct job job = { .second = file_inode(file)->i_private };
	int cpu;

	if (len >= sizeof(text) || copy_from_user(text, from, len))
		return -EINVAL;
	if (sscanf(text, "%llu %llu %llu %15s", &job.count, &job.keys, &job.start, context) != 4 ||
	    !job.keys || !strstr("task softirq irq nmi", context))
		return -EINVAL;

	tasklet_setup(&job.tasklet, fire_tasklet);
	guard(cpus_read_lock)();
	while (job.done < job.count && !signal_pending(current)) {
		cpu = cpumask_next_wrap(raw_smp_processor_id(), cpu_online_mask);
		if (context[0] == 's') {
			tasklet_schedule(&job.tasklet);
			tasklet_kill(&job.tasklet);
		} else if (context[0] == 'i') {
			smp_call_function_single(cpu, fire_irq, &job, true);
		} else if (context[0] == 'n') {
			send_nmi(&job, cpu);
		} else {
			fire(&job);
		}
		cond_resched();
	}
	return job.done < job.count ? -EINTR : len;
}

static const struct file_operations fire_fops = { .owner = THIS_MODULE, .write = fire_write };

static int __init rust_hist_test_init(void)
{
	dir = debugfs_create_dir("rust_hist_test", NULL);
	debugfs_create_file("fire", 0200, dir, NULL, &fire_fops);
	debugfs_create_file("fire_second", 0200, dir, &fired, &fire_fops);
	debugfs_create_atomic_t("fired", 0400, dir, &fired);
	return register_nmi_handler(NMI_LOCAL, fire_nmi, 0, "rust_hist_test");
}
module_init(rust_hist_test_init);

static void __exit rust_hist_test_exit(void)
{
	debugfs_remove(dir);
	unregister_nmi_handler(NMI_LOCAL, "rust_hist_test");
}
module_exit(rust_hist_test_exit);

MODULE_DESCRIPTION("An event with a field of every kind, for the selftests of rust_hist");
MODULE_LICENSE("GPL");
