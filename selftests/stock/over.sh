#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What selftests/stock/load runs in the guest after view.sh: the tests of test.d with the view in the place of tracefs, but for
# those that left-out names. Prints KTAP.

VIEW=/sys/kernel/rhist
SELFTESTS=$(dirname "$0")/..

# Where tests find it that load it again.
mkdir -p "/lib/modules/$(uname -r)" && cp ./rust_hist.ko "/lib/modules/$(uname -r)" || exit 1
insmod ./rust_hist.ko && mount -t rhistfs none $VIEW || exit 1
# shellcheck disable=SC2046
TRACEFS=$VIEW exec sh "$SELFTESTS/run" -1 $(awk '!/^#/ { print "-x", $1 }' "$SELFTESTS/stock/left-out")
