// SPDX-License-Identifier: GPL-2.0
/*
 * Shows the defects of the C implementation that take code in the kernel: to load it with number=NN fails with EDOM
 * where the kernel has defect NN of upstream/README.rst.
 */
#include <linux/module.h>
#include <linux/kallsyms.h>
#include <linux/trace_events.h>
#include "trace.h"
#include "tracing_map.h"

static int number;
module_param(number, int, 0);

/* The kernel's map, with what another CPU does between the claim of a slot and the request for an element. */
static void (*others)(struct tracing_map *map);
#define atomic_fetch_add_unless(counter, n, limit) ({				\
	if (others)								\
		others(map);							\
	(atomic_fetch_add_unless)(counter, n, limit);				\
})
#include "tracing_map.c"

/* 640 characters */
#define X4(x) "" x x x x
static noinline void long_name(void) __asm__(X4(X4(X4("long_name_"))));
static noinline void long_name(void)
{
	barrier();
}

static int write_in_front(void)
{
	char *text = kmalloc(16 + KSYM_SYMBOL_LEN, GFP_KERNEL);
	int ret;

	if (!text)
		return -ENOMEM;
	memset(text, 'x', 16);
	sprint_symbol(text + 16, (unsigned long)long_name);
	ret = memchr_inv(text, 'x', 16) ? -EDOM : 0;
	kfree(text);
	return ret;
}

static u32 second;

static u32 slot_of(u32 key, struct tracing_map *map)
{
	return jhash(&key, sizeof(key), 0) >> (32 - (map->map_bits + 1));
}

/* Takes the last element with a key that has the same slot as the one that is being inserted. */
static void insert_second(struct tracing_map *map)
{
	others = NULL;
	tracing_map_insert(map, &second);
}

static int unreachable_key(void)
{
	u32 slot, key, n;
	struct tracing_map *map = tracing_map_create(7, sizeof(key), NULL, NULL);
	int ret;

	if (IS_ERR(map))
		return PTR_ERR(map);
	ret = tracing_map_add_sum_field(map);
	if (ret >= 0)
		ret = tracing_map_add_key_field(map, 0, tracing_map_cmp_none);
	if (ret >= 0)
		ret = tracing_map_init(map);
	if (ret)
		goto out;
	for (n = 0; n < map->max_elts - 1; n++)
		tracing_map_insert(map, &n);
	/* A slot that nobody has, and two keys for it */
	for (slot = 0; TRACING_MAP_ENTRY(map->map, slot)->key; slot++)
		;
	for (key = n; slot_of(key, map) != slot; key++)
		;
	for (second = key + 1; slot_of(second, map) != slot; second++)
		;
	others = insert_second;
	tracing_map_insert(map, &key);
	ret = tracing_map_lookup(map, &second) ? 0 : -EDOM;
out:
	tracing_map_destroy(map);
	return ret;
}

static struct synth_field_desc fields[] = { { "u64", "first" }, { "u64", "last" } };

static int name_of_no_field(void)
{
	struct synth_event_trace_state state;
	struct trace_event_file *file;
	int ret = synth_event_create("defect", fields, ARRAY_SIZE(fields), THIS_MODULE);

	if (ret)
		return ret;
	file = trace_get_event_file(NULL, "synthetic", "defect");
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		goto delete;
	}
	ret = trace_array_set_clr_event(file->tr, "synthetic", "defect", true);
	if (ret)
		goto put;
	ret = synth_event_trace_start(file, &state);
	if (!ret) {
		ret = synth_event_add_val("no_such_field", 1, &state) == -EINVAL ? 0 : -EDOM;
		synth_event_trace_end(&state);
	}
	trace_array_set_clr_event(file->tr, "synthetic", "defect", false);
put:
	trace_put_event_file(file);
delete:
	synth_event_delete("defect");
	return ret;
}

static int counted_twice(void)
{
	const char *t = "u64", *n = "field";
	struct dynevent_cmd cmd;
	char *text = kzalloc(MAX_DYNEVENT_CMD_LEN, GFP_KERNEL);
	int ret;

	if (!text)
		return -ENOMEM;
	synth_event_cmd_init(&cmd, text, MAX_DYNEVENT_CMD_LEN);
	/* 33 pairs, which nobody creates an event of */
	ret = synth_event_gen_cmd_start(&cmd, "defect", THIS_MODULE,
		t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n,
		t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n,
		t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n, t, n);
	kfree(text);
	return ret == -EINVAL ? -EDOM : ret;
}

static int __init defects_init(void)
{
	switch (number) {
	case 1:
		return write_in_front();
	case 10:
		return unreachable_key();
	case 25:
		return name_of_no_field();
	case 26:
		return counted_twice();
	}
	return -EINVAL;
}

static void __exit defects_exit(void) { }

module_init(defects_init);
module_exit(defects_exit);
MODULE_DESCRIPTION("Defects of C's synthetic events, map and names of symbols");
MODULE_LICENSE("GPL");
