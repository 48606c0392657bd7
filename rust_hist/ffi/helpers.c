// SPDX-License-Identifier: GPL-2.0
/* What only C can say: the helpers of helpers.h, a static key, a string parameter, and a version. */
#include <linux/module.h>

#define HIST_HELPER(prototype, ...) prototype; prototype { __VA_ARGS__; } static_assert(true)
#include "helpers.h"

struct hist_helper_key hist_helper_pollers = { STATIC_KEY_FALSE_INIT };

/* A string parameter, which the module! macro of the kernel crate cannot declare */
char hist_helper_triggers[4096];
module_param_string(triggers, hist_helper_triggers, sizeof(hist_helper_triggers), 0444);
MODULE_PARM_DESC(triggers, "Triggers to make: SYSTEM.EVENT hist:...[; SYSTEM.EVENT hist:...]...");

MODULE_VERSION(RUST_HIST_VERSION);
