#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What selftests/stock/load runs in the guest: upstream's tests of triggers, unmodified, with the view in the place of tracefs.
# Prints KTAP.

insmod ./rust_hist.ko && rhist shell "$(dirname "$0")/../ftracetest/run" trigger && rmmod rust_hist
