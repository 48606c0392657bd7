// SPDX-License-Identifier: GPL-2.0
/*
 * Has any function of the kernel fail for the selftests, also where it is not one of those of fail_function.
 *
 * "SYMBOL VALUE NTH" written to the parameter 'fail' has the NTH call of SYMBOL by the task that writes return
 * VALUE, and not run; nothing but a new line written takes that back. Read, it says "SYMBOL CALLS", how often that
 * task has called it since.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/objtool.h>

/* The text of the parameter, and a symbol in it. */
#define TEXT_SIZE 160

/* What ends a function in assembly, where the architecture has no macro. */
#ifndef ASM_RET
#define ASM_RET "ret\n"
#endif

/* A function of which nothing is left but its end. */
asmlinkage void rust_hist_faults_return(void);
asm(".pushsection .text\n"
	".globl rust_hist_faults_return; .type rust_hist_faults_return, @function\n"
	"rust_hist_faults_return:\n"
	ANNOTATE_NOENDBR "\n" ASM_RET
	".size rust_hist_faults_return, .-rust_hist_faults_return; .popsection\n");

static char symbol[TEXT_SIZE];
static long value;
static int nth;
static struct task_struct *owner;
static atomic_t calls;

/* Only compared: a task that is gone calls nothing. */
static int before(struct kprobe *probe, struct pt_regs *regs)
{
	if (current != owner || atomic_inc_return(&calls) != nth)
		return 0;
	regs_set_return_value(regs, value);
	instruction_pointer_set(regs, (unsigned long)&rust_hist_faults_return);
	return 1;
}
NOKPROBE_SYMBOL(before);

/* With one of these the probe can lead elsewhere. */
static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags) {}
NOKPROBE_SYMBOL(after);

static struct kprobe probe;

static void stop(void)
{
	if (probe.addr)
		unregister_kprobe(&probe);
	probe = (struct kprobe) { .pre_handler = before, .post_handler = after, .symbol_name = symbol };
	atomic_set(&calls, 0);
}

static int fail_set(const char *text, const struct kernel_param *param)
{
	int ret;

	stop();
	if (sscanf(text, "%159s %ld %d", symbol, &value, &nth) != 3)
		return *skip_spaces(text) ? -EINVAL : 0;
	owner = current;
	ret = register_kprobe(&probe);
	if (ret)
		probe.addr = NULL;
	return ret;
}

static int fail_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%s %d\n", symbol, atomic_read(&calls));
}

static const struct kernel_param_ops fail_ops = { .set = fail_set, .get = fail_get };
module_param_cb(fail, &fail_ops, NULL, 0600);

static int __init faults_init(void)
{
	return 0;
}

static void __exit faults_exit(void)
{
	stop();
}

module_init(faults_init);
module_exit(faults_exit);
MODULE_DESCRIPTION("Has functions of the kernel fail, for the selftests of rust_hist");
MODULE_AUTHOR("The rust_hist project");
MODULE_LICENSE("GPL");
