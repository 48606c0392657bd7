# SPDX-License-Identifier: GPL-2.0
# Sourced: picks the tools that build the kernel. Sets RUSTC, RUSTC_MAJOR_LLVM, BINDGEN, LLVM_SUFFIX,
# CLANG, TOOLCHAIN_ID and the array KMAKE (make and its arguments).
#
# Limits are Linux's own (scripts/min-tool-version.sh); the newest accepted tool wins, and a clang
# that shares its LLVM with rustc is preferred, for CONFIG_RUST_INLINE_HELPERS.

MIN_RUSTC=1.85.0
MIN_BINDGEN=0.71.1
MIN_LLVM=17
# Older ones treat structs as opaque with libclang 22, and the kernel crate then does not build.
MIN_BINDGEN_LLVM22=0.72.1

# at_least HAVE WANT
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n1)" = "$2" ]; }

# Each candidate prints a line "VERSION PATH".
_rustc_candidates() {
	local r v
	for r in ${RUSTC:-/usr/bin/rustc /usr/bin/rustc-[0-9]* /usr/lib/rust-*/bin/rustc \
		"$(command -v rustc || true)" "$HOME/.cargo/bin/rustc"}; do
		[ -x "$r" ] || continue
		v=$("$r" --version 2>/dev/null | awk '{ print $2 }') || continue
		[ -n "$v" ] && printf '%s %s\n' "${v%%-*}" "$r"
	done
}

rustc_text_of() { sed -n 's/^CONFIG_RUSTC_VERSION_TEXT="\(.*\)"$/\1/p' "$1/.config"; }

# Prints the compiler that built the kernel tree $1: no other reads its metadata.
rustc_of() {
	local text r
	text=$(rustc_text_of "$1")
	while read -r _ r; do
		if [ "$("$r" --version)" = "$text" ]; then
			echo "$r"
			return
		fi
	done < <(_rustc_candidates)
	return 1
}

rust_library_of() { printf '%s/lib/rustlib/src/rust/library' "$("$1" --print sysroot)"; }

# Prints the path, or prints why there is none and fails.
find_rustc() {
	local v r why="no rustc was found"
	[ -z "${RUSTC:-}" ] || why="RUSTC=$RUSTC is none"
	while read -r v r; do
		if ! at_least "$v" "$MIN_RUSTC"; then
			why="$r is $v"
			continue
		fi
		if [ ! -f "$(rust_library_of "$r")/core/src/lib.rs" ]; then
			why="$r ($v) has no library source in $(rust_library_of "$r")"
			continue
		fi
		echo "$r"
		return
	done < <(_rustc_candidates | awk '!seen[$0]++' | sort -s -k1,1Vr)
	echo "$why"
	return 1
}

# min_bindgen LLVM
min_bindgen() { if [ "$1" -ge 22 ]; then echo "$MIN_BINDGEN_LLVM22"; else echo "$MIN_BINDGEN"; fi; }

# find_bindgen LLVM
find_bindgen() {
	local b v why="no bindgen was found" min
	min=$(min_bindgen "$1")
	for b in ${BINDGEN:-"$CACHE/tools/bin/bindgen" "$(command -v bindgen || true)" \
		/usr/bin/bindgen "$HOME/.cargo/bin/bindgen"}; do
		[ -x "$b" ] || continue
		v=$("$b" --version 2>/dev/null | awk '{ print $2 }')
		if at_least "${v:-0}" "$min"; then
			echo "$b"
			return
		fi
		why="$b is $v"
	done
	echo "$why"
	return 1
}

# Prints the suffix as in LLVM=SUFFIX ("-22", or "1" for unsuffixed tools). $1: LLVM of rustc.
find_llvm() {
	local n c v best= bestv=0 why="no clang was found"
	for c in /usr/bin/clang-[0-9]* "$(command -v clang || true)"; do
		[ -x "$c" ] || continue
		case ${c##*/} in
		clang) n=1 ;;
		clang-[0-9]|clang-[0-9][0-9]) n=-${c##*-} ;;
		*) continue ;;
		esac
		v=$("$c" -dumpversion 2>/dev/null) || continue
		v=${v%%.*}
		[ "$v" -ge "$MIN_LLVM" ] 2>/dev/null || { why="$c is version $v"; continue; }
		if ! _llvm_complete "${n#1}"; then
			why="clang $v is there, but not its ld.lld${n#1}, llvm-ar${n#1}, llvm-objcopy${n#1} and llvm-nm${n#1}"
			continue
		fi
		# The version rustc shares counts above all others.
		[ "$v" = "$1" ] && v=9999
		if [ "$v" -gt "$bestv" ]; then
			best=$n bestv=$v
		fi
	done
	[ -n "$best" ] || { echo "$why"; return 1; }
	echo "$best"
}

_llvm_complete() {
	local t
	for t in ld.lld llvm-ar llvm-objcopy llvm-nm llvm-strip llvm-readelf llvm-objdump; do
		command -v "$t$1" >/dev/null || return 1
	done
}

rustc_llvm() { "$1" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p'; }

# Called when the tools are needed; the message of a failure has the remedy.
pick_toolchain() {
	local r b l lib how="Run scripts/setup, or name a suitable one in the environment (RUSTC=, BINDGEN=)."
	[ -z "${TOOLCHAIN_ID:-}" ] || return 0
	r=$(find_rustc) || die "the kernel needs rustc >= $MIN_RUSTC with its library source, but $r." "$how"
	RUSTC_LLVM=$(rustc_llvm "$r")
	l=$(find_llvm "$RUSTC_LLVM") || die "the kernel needs LLVM >= $MIN_LLVM (clang, lld, llvm), but $l." "$how"
	RUSTC=$r LLVM_SUFFIX=$l CLANG=clang${l#1}
	LLVM_MAJOR=$("$CLANG" -dumpversion)
	LLVM_MAJOR=${LLVM_MAJOR%%.*}
	b=$(find_bindgen "$LLVM_MAJOR") ||
		die "the kernel needs bindgen >= $(min_bindgen "$LLVM_MAJOR") with LLVM $LLVM_MAJOR, but $b." "$how"
	BINDGEN=$b
	# bindgen loads libclang: the one of this clang.
	for lib in "/usr/lib/llvm-$LLVM_MAJOR/lib" /usr/lib64 /usr/lib; do
		if compgen -G "$lib/libclang*.so*" >/dev/null; then
			export LIBCLANG_PATH=${LIBCLANG_PATH:-$lib}
			break
		fi
	done
	TOOLCHAIN_ID=$("$RUSTC" -vV; "$CLANG" --version | head -n1; "$BINDGEN" --version)
	KMAKE=(make "ARCH=$KARCH" "LLVM=$LLVM_SUFFIX" "RUSTC=$RUSTC" "BINDGEN=$BINDGEN"
		KBUILD_BUILD_USER=rust_hist KBUILD_BUILD_HOST=test
		"KBUILD_BUILD_TIMESTAMP=Thu Jan 1 00:00:00 UTC 1970")
}

say_toolchain() {
	pick_toolchain
	say "toolchain: $("$RUSTC" --version | cut -d' ' -f1,2) ($RUSTC, LLVM $RUSTC_LLVM), clang $LLVM_MAJOR ($CLANG), $("$BINDGEN" --version) ($BINDGEN)"
	[ "$RUSTC_LLVM" = "$LLVM_MAJOR" ] ||
		say "rustc and clang do not share an LLVM version: CONFIG_RUST_INLINE_HELPERS stays off"
}

# clippy-driver reads the metadata that rustc wrote, so it must be of the same build.
find_clippy() {
	local c want
	want=$("$RUSTC" --version)
	for c in "$(dirname "$RUSTC")/clippy-driver" "$(command -v clippy-driver || true)"; do
		if [ -x "$c" ] && [ "$("$c" --rustc --version)" = "$want" ]; then
			echo "$c"
			return
		fi
	done
	return 1
}

need_clippy() {
	find_clippy || die "there is no clippy-driver of the same build as $RUSTC." "Run 'scripts/setup test' to install it."
}

# What builds modules for the kernel of a distribution, which GCC has built: packages.
STOCK_TOOLS="rustc rust-src bindgen gcc-14 make pahole"

# Prints the GCC that built the kernel tree $1, or nothing if clang did.
gcc_of() { sed -n 's/^CONFIG_CC_VERSION_TEXT="\([^ ]*gcc[^ ]*\) .*/\1/p' "$1/.config"; }

# tools_here KDIR: sets KMAKE for the kernel of a distribution, if the compilers that built it are here.
tools_here() {
	local cc rustc bindgen
	cc=$(gcc_of "$1")
	rustc=$(rustc_of "$1") && bindgen=$(find_bindgen 0) && command -v "$cc" >/dev/null &&
		[ -f "$(rust_library_of "$rustc")/core/src/lib.rs" ] &&
		KMAKE=(make "ARCH=$KARCH" "RUSTC=$rustc" "BINDGEN=$bindgen" "CC=$cc" "HOSTCC=$cc")
}

# Is KDIR the flavour stock, or what scripts/metadata made for it?
is_stock() { case $(readlink -f "$1/.config") in "$(readlink -f "$CACHE")"/kernel/*-stock/*) ;; *) return 1 ;; esac; }

# tools_of KDIR: does so, for the flavour stock also with the compilers of its release, unpacked, where others are here.
tools_of() {
	local root
	tools_here "$1" && return
	is_stock "$1" || die "the kernel in $1 was built by $(gcc_of "$1") and $(rustc_text_of "$1"), and not all of that is here." \
		"Install these, the library source of that rustc (rust-src), and bindgen."
	# shellcheck disable=SC2086
	root=$("$ROOT/scripts/unpacked" --release "$STOCK_RELEASE" $STOCK_TOOLS)
	KMAKE=("$ROOT/scripts/lib/in-root" "$root" "$ROOT:$CACHE" make "ARCH=$KARCH" "CC=$(gcc_of "$1")" "HOSTCC=$(gcc_of "$1")")
}
