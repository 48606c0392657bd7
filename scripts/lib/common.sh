# SPDX-License-Identifier: GPL-2.0
# Sourced by the host scripts: paths, messages, and long steps with a log.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
CACHE=${RUST_HIST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rust_hist}
# The builds of this checkout; the rest of the cache is for all checkouts.
BUILT=$CACHE/checkout/$(printf %s "$ROOT" | sha256sum | cut -c1-16)
LOGS=$BUILT/log
VERSIONS="7.2 7.3"
ARCHES="x86_64 arm64"
ARCH=${ARCH:-x86_64}
FLAVOURS="dropin reference mitigations debug stock plain plain-debug mended built-in"
DEFAULT_VERSION=7.2
DEFAULT_FLAVOUR=dropin
JOBS=${JOBS:-$(nproc)}

# Packages and locally installed tools may be in directories that root's PATH does not have.
export PATH=$PATH:/usr/sbin:/sbin:$HOME/.cargo/bin

mkdir -p "$LOGS"
echo "$ROOT" >"$BUILT/path"

say() { printf '%s\n' "rust_hist: $*" >&2; }

# Prints one sentence with the error, and one with what to do about it.
die() {
	printf 'rust_hist: error: %s\n' "$1" >&2
	shift
	while [ $# -gt 0 ]; do
		printf 'rust_hist:   %s\n' "$1" >&2
		shift
	done
	exit 1
}

# Of the guest's architecture: the compilers' name, kbuild's name and its image, QEMU's program and the package that has it, and a part of the
# names in the cache, which those of x86_64 do without.
case $ARCH in
x86_64) TRIPLE=x86_64-linux-gnu KARCH=x86 IMAGE=arch/x86/boot/bzImage QEMU=qemu-system-x86_64 QEMU_PACKAGE=qemu-system-x86 OF_ARCH= ;;
arm64) TRIPLE=aarch64-linux-gnu KARCH=arm64 IMAGE=arch/arm64/boot/Image QEMU=qemu-system-aarch64 QEMU_PACKAGE=qemu-system-arm OF_ARCH=-arm64 ;;
*) die "ARCH=$ARCH is no supported architecture; there are: $ARCHES." ;;
esac

is_version() { case " $VERSIONS " in *" $1 "*) ;; *) return 1 ;; esac; }
is_flavour() { case " $FLAVOURS " in *" $1 "*) ;; *) return 1 ;; esac; }

# need_kdir DIR: fails unless DIR is the tree of a configured kernel.
need_kdir() {
	[ -d "$1" ] || die "KDIR=$1 is no directory." "Install the headers of that kernel (linux-headers-RELEASE), or build it."
	[ -f "$1/.config" ] || die "KDIR=$1 has no .config, so it is no built kernel tree." \
		"Configure and build it first, or give its source as KSRC=."
}

# The prefix of a command that needs root.
SUDO=()
[ "$(id -u)" = 0 ] || SUDO=(sudo)
need_root() {
	[ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
		die "installing packages needs root, and there is no sudo." "Run as root, or install sudo."
}

# need_x86_64 WHAT: fails for another architecture.
need_x86_64() { [ "$ARCH" = x86_64 ] || die "$1 is for ARCH=x86_64 alone, and ARCH is $ARCH."; }

# key WORD...: a short name for exactly this content.
key() { printf '%s\0' "$@" | sha256sum | cut -c1-16; }

# need_space DIR MIB WHAT
need_space() {
	local have
	have=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
	[ "$have" -ge "$2" ] ||
		die "$3 needs $2 MiB in $1, and only $have MiB are free." \
			"Free some space, or set RUST_HIST_CACHE to a directory on a larger disk."
}

# step TITLE LOG LINES CMD...: run a long command with its output in LOG. LINES is about how many
# lines it will write (0: unknown), for the percentage. With MAY_FAIL=1 a failure is reported in one line.
step() {
	local title=$1 log=$2 lines=$3 pid rc=0 start=$SECONDS last=$SECONDS now n far tty=
	shift 3
	mkdir -p "$(dirname "$log")"
	say "$title (log: $log)"
	[ -t 2 ] && tty=1
	setsid "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	trap 'kill -- -'"$pid"' 2>/dev/null; exit 130' INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		now=$SECONDS
		if [ $((now - last)) -ge "$([ -n "$tty" ] && echo 2 || echo 30)" ]; then
			last=$now
			n=$(wc -l <"$log")
			far="$n lines"
			[ "$lines" -gt 0 ] && far="$((n >= lines ? 99 : n * 100 / lines))%"
			printf '%srust_hist:   %s: %s, %d:%02d%s' "${tty:+$'\r'}" "$title" "$far" \
				$(((now - start) / 60)) $(((now - start) % 60)) "${tty:+$'\e[K'}" >&2
			[ -n "$tty" ] || echo >&2
		fi
		sleep 0.2
	done
	wait "$pid" || rc=$?
	trap - INT TERM
	[ -n "$tty" ] && printf '\r\e[K' >&2
	if [ "$rc" -ne 0 ] && [ "${MAY_FAIL:-}" = 1 ]; then
		say "$title: not all of it worked, see the log; going on"
		return "$rc"
	fi
	if [ "$rc" -ne 0 ]; then
		printf 'rust_hist: %s failed; what the log says:\n' "$title" >&2
		{ grep -nE '(^|[^a-z])([Ee]rror|E):|error\[|\*\*\*|FAILED|No such file' "$log" | tail -15
			echo '   ...'
			tail -8 "$log"; } | sed 's/^/   /' >&2
		say "the whole log: $log"
		return "$rc"
	fi
	say "$title: done in $((SECONDS - start)) s"
}

# The symbols that patches/ exports.
exported() { cat "$ROOT"/patches/*.patch | sed -nE 's/^\+EXPORT_SYMBOL_FOR_MODULES\(([a-z_0-9]+),.*/\1/p' | sort -u; }
