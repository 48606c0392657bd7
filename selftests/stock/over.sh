#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What selftests/stock/load runs in the guest: the tests of test.d with the view in the place of tracefs, but for those that
# left-out names; TESTS are the tests and groups, by default all. Prints KTAP.

VIEW=/sys/kernel/rhist
SELFTESTS=$(dirname "$0")/..
# Programs that find tracefs by themselves, as rhist shell shows it to them.
CLIENTS=clients/trace_cmd

# Where tests find it that load it again.
mkdir -p "/lib/modules/$(uname -r)" && cp ./rust_hist.ko "/lib/modules/$(uname -r)" || exit 1
insmod ./rust_hist.ko || exit 1
# First, as the last one of the others locks the kernel down.
rhist shell sh "$SELFTESTS/run" -1 $CLIENTS || exit 1
mount -t rhistfs none $VIEW || exit 1
# shellcheck disable=SC2046,SC2086
TRACEFS=$VIEW exec sh "$SELFTESTS/run" -1 -x $CLIENTS $(awk '!/^#/ { print "-x", $1 }' "$SELFTESTS/stock/left-out") $TESTS
