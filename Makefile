# SPDX-License-Identifier: GPL-2.0
#
# The verbs for people. kbuild reads Kbuild, not this file; the work is done by scripts/.

# A kernel of one's own: KSRC= its source, or KDIR= its built tree.
export KSRC KDIR

# The architecture of the guest: x86_64 or arm64.
export ARCH ?= x86_64

FLAVOUR ?= dropin
WHERE = $(FLAVOUR) $(VERSION)

.PHONY: help demo test test-ci test-all soak lint advisories host-test models tsan fuzz fuzzer debug defects bench kernel module tool deb vm release check-kdir setup undo fmt clippy checkpatch clean distclean

help:
	@echo 'make demo        boot Debian'\''s kernel with the module, show histograms of live events; KERNEL=patched builds one'
	@echo 'make test        build a kernel, show on it that all works; TESTS="a b" runs some'
	@echo 'make test-ci     what CI runs: both versions, all flavours, C beside ours, lints'
	@echo 'make test-all    the same, and what takes long on all kernels'
	@echo 'make host-test   unit, property and model-check tests on this machine, without a guest; T=NAME runs some'
	@echo 'make soak        an hour of the stress on two CPUs, and of rhist bio; SOAK_SECONDS= for less'
	@echo 'make models      the model checks: loom, nested interrupts, litmus tests'
	@echo 'make tsan        the tests with threads under ThreadSanitizer'
	@echo 'make fuzz        ten minutes of fuzzing on this machine'
	@echo 'make fuzzer      the guest under random commands, with events and modules; FUZZ_SECONDS= says how long'
	@echo 'make debug       all selftests, the tests of upstream, the fuzzer and the stress in the kernel with KASAN and lockdep'
	@echo 'make defects     show the defects of C in upstream/, and that its patches mend them; N=9 takes one patch alone'
	@echo 'make bench       measure what triggers cost, C and ours; write Documentation/benchmarks.rst'
	@echo 'make lint        formatting, clippy, checkpatch, layers, warning-free module builds, machine code'
	@echo 'make advisories  what is known of the crates of rhist; needs a network and cargo-deny, which no test needs'
	@echo
	@echo 'make setup       install what is missing, get the kernel source'
	@echo 'make undo        remove the packages that were installed'
	@echo 'make kernel      build the test kernel   (FLAVOUR=dropin|reference|mitigations|debug|stock|plain|mended|built-in VERSION=7.2|7.3)'
	@echo 'make module      build rust_hist.ko for it, or for KDIR='
	@echo 'make tool        build rhist, which asks histograms questions; prints where it is'
	@echo 'make deb         make Debian packages of rhist and, for DKMS, of the module; prints where they are'
	@echo 'make vm          a shell in the guest, with the module loaded; T="map/full synth" runs these tests in it'
	@echo 'make release     test, date and tag the version in VERSION; TESTS="a b" runs these jobs instead of make test-ci'
	@echo 'make check-kdir KDIR=DIR   name every option and symbol that a built kernel lacks'
	@echo 'make fmt         format the Rust sources'
	@echo 'make clean       remove what was built of the module and the tests'
	@echo 'make distclean   remove the whole cache: sources, kernels, root file system'
	@echo
	@echo 'ARCH=arm64 does demo, test, test-all, bench, kernel, module, tool and vm for a guest of that architecture, in emulation.'
	@echo 'KSRC=DIR uses a kernel source of your own, KDIR=DIR a built tree.'

demo:
	@scripts/demo

test:
	@scripts/test $(TESTS)

test-ci:
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-10} STRESS_SECONDS=$${STRESS_SECONDS:-60} CYCLES=$${CYCLES:-50} scripts/test --ci

test-all:
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-40} scripts/test --all

lint:
	@scripts/test --lint

# cargo-deny wants a newer Rust than rhist does, and its database is no registry: no job runs it.
advisories:
	@command -v cargo-deny >/dev/null || { echo "cargo-deny is missing; 'cargo install --locked cargo-deny' installs it." >&2; exit 1; }
	@cargo deny --manifest-path tools/rhist/Cargo.toml check

soak:
	@scripts/test soak-7.2 soak-bio-7.2

host-test:
	@scripts/test $(if $(T),--host '$(T)',host loom)

models:
	@scripts/test loom nested litmus

tsan:
	@scripts/test tsan

fuzz:
	@scripts/test fuzz

fuzzer:
	@scripts/test fuzzer-7.2 fuzzer-7.3

debug:
	@scripts/test selftests-debug-all upstream-debug fuzzer-debug stress-debug

defects:
	@$(if $(N),scripts/setup vm && scripts/defects $(or $(VERSION),7.2) $(N),scripts/test defects-$(or $(VERSION),7.2))

bench:
	@scripts/bench $(if $(KVM),--kvm)

kernel:
	@scripts/setup
	@scripts/kernel build $(WHERE)

module:
	@scripts/setup
	@scripts/kernel module $(WHERE)

tool:
	@scripts/tool

deb:
	@scripts/deb

vm:
	@scripts/setup vm
	@scripts/vm --kernel $(FLAVOUR) $(if $(VERSION),--version $(VERSION)) $(if $(T),\
		--add "$$(selftests/build $(WHERE)):/selftests" -- /rust_hist/selftests/run -1 $(T))

release:
	@scripts/release $(TESTS)

check-kdir:
	@scripts/check-kdir '$(KDIR)'

setup:
	@scripts/setup all

undo:
	@scripts/setup --undo

fmt:
	@git ls-files '*.rs' | xargs rustfmt --edition 2021 --config-path .rustfmt.toml

clippy:
	@scripts/test clippy

checkpatch:
	@scripts/test checkpatch

clean:
	@scripts/clean

distclean:
	@scripts/clean all
