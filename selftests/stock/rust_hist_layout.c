// SPDX-License-Identifier: GPL-2.0
/*
 * Compiles what scripts/layout prints with the compiler and the public headers of the same kernel.
 */
#include <linux/module.h>
#include "layout.h"

MODULE_DESCRIPTION("Holds the assertions of the layout");
MODULE_LICENSE("GPL");
