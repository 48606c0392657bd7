// SPDX-License-Identifier: GPL-2.0
/*
 * The in-kernel API of synthetic events: its two functions that take any number
 * of arguments, which Rust cannot define, and its exports. This file is left out
 * of builds for a kernel that exports functions of these names itself.
 */
#include <linux/export.h>
#include <linux/trace_events.h>
#include <trace_synth.h>

int __synth_event_gen_cmd_start(struct dynevent_cmd *cmd, const char *name, struct module *mod, ...)
{
	int ret = synth_event_gen_cmd_array_start(cmd, name, mod, NULL, 0);
	const char *type, *field;
	va_list args;

	va_start(args, mod);
	while (!ret && (type = va_arg(args, const char *)) && (field = va_arg(args, const char *)))
		ret = synth_event_add_field(cmd, type, field);
	va_end(args);
	return ret;
}
EXPORT_SYMBOL_GPL(__synth_event_gen_cmd_start);

/* Arguments beyond the largest number of fields are refused unread, by what this calls. */
int synth_event_trace(struct trace_event_file *file, unsigned int n_vals, ...)
{
	u64 vals[SYNTH_FIELDS_MAX];
	va_list args;

	va_start(args, n_vals);
	for (unsigned int i = 0; i < min(n_vals, SYNTH_FIELDS_MAX); i++)
		vals[i] = va_arg(args, u64);
	va_end(args);
	return synth_event_trace_array(file, vals, n_vals);
}
EXPORT_SYMBOL_GPL(synth_event_trace);

/* What Rust defines, in rust_hist/ffi/synth_api.rs */
#define EXPORT_RUST(name) EXPORT_SYMBOL_GPL(synth_event_##name)
EXPORT_RUST(add_field);
EXPORT_RUST(add_field_str);
EXPORT_RUST(add_fields);
EXPORT_RUST(add_next_val);
EXPORT_RUST(add_val);
EXPORT_RUST(cmd_init);
EXPORT_RUST(create);
EXPORT_RUST(delete);
EXPORT_RUST(gen_cmd_array_start);
EXPORT_RUST(trace_array);
EXPORT_RUST(trace_end);
EXPORT_RUST(trace_start);
