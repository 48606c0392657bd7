# SPDX-License-Identifier: GPL-2.0
# Sourced: the kernel source of a version, from Debian through apt, or from the user's KSRC.

# Debian suites that may have the source, besides the suites of this system.
SOURCE_SUITES="trixie-backports forky sid"

# The flavour stock: Debian's own kernel for virtual machines, which version of it is tested, its series, its suite and the release
# that has its compilers.
STOCK=7.3.4+deb13
STOCK_VERSION=7.3
STOCK_SUITE=trixie-backports
STOCK_RELEASE=trixie

# Prints the Debian mirror of this system as "URI FILE:STANZA".
debian_mirror() {
	local fmt='$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)|$(SOURCESENTRY)'
	apt-get indextargets --format "$fmt" 'Created-By: Packages' |
		awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 == "main" { print $4, $5; exit }'
}

# Prints the "Signed-By:" field of the sources entry FILE:N as deb822 text, or nothing.
signed_by() {
	local file=${1%:*} n=${1##*:}
	case $file in
	*.sources)
		awk -v want="$n" '
			/^[ \t]*$/ { if (seen) stanza++; seen = 0; on = 0; next }
			/^#/ { next }
			{ seen = 1 }
			/^[^ \t]/ { on = 0 }
			tolower($0) ~ /^signed-by:/ { on = 1 }
			on && stanza + 1 == want { print }' "$file"
		;;
	*)
		sed -n "${n}s/^deb[^[]*\[[^]]*signed-by=\([^] ]*\).*/Signed-By: \1/p" "$file" | tr , ' '
		;;
	esac
}

# Prepares $APT_PRIVATE: apt with a list, state and cache of its own, so that the system's stay as
# they are. Verification is apt's, by the keyring that the system names for the same mirror.
private_apt() {
	local dir=$CACHE/apt mirror uri entry
	mirror=$(debian_mirror)
	if [ -z "$mirror" ]; then
		need_root
		step "Reading the system's package lists" "$LOGS/apt-update.log" 0 "${SUDO[@]}" apt-get update || true
		mirror=$(debian_mirror)
	fi
	[ -n "$mirror" ] || die "none of the system's apt sources is Debian's main archive." \
		"Name one in /etc/apt/sources.list and run 'apt-get update', or give a kernel source tree with KSRC=."
	uri=${mirror%% *} entry=${mirror#* }
	mkdir -p "$dir"/{etc,lists/partial,archives/partial}
	{
		printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$uri" "$SOURCE_SUITES"
		signed_by "$entry"
	} >"$dir/etc/debian.sources"
	APT_PRIVATE=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$dir/etc"
		-o "Dir::State::Lists=$dir/lists" -o "Dir::Cache=$dir" -o Dir::Cache::Archives=archives
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false
		-o APT::Sandbox::User=root -o Debug::NoLocking=true -o APT::Architectures=amd64)
}

# Highest Debian version of the package $1 in the private lists.
highest() {
	local best= v
	while read -r v; do
		if [ -z "$best" ] || dpkg --compare-versions "$v" gt "$best"; then best=$v; fi
	done < <(apt-cache "${APT_PRIVATE[@]}" madison "$1" 2>/dev/null | awk -F'|' '{ gsub(/ /, "", $2); print $2 }')
	echo "$best"
}

# Downloads the package of version $1 unless it was downloaded before.
fetch_source() {
	local version=$1 pkg deb v all near dl=$CACHE/download
	mkdir -p "$dl"
	deb=$(compgen -G "$dl/$version/*.deb" | head -n1 || true)
	[ -z "$deb" ] || return 0
	need_space "$CACHE" 1000 "the kernel source package"
	private_apt
	MAY_FAIL=1 step "Looking for the source of Linux $version" "$LOGS/apt-source.log" 0 \
		apt-get "${APT_PRIVATE[@]}" update || true
	pkg=linux-source-$version
	v=$(highest "$pkg")
	if [ -z "$v" ]; then
		all=$(apt-cache "${APT_PRIVATE[@]}" search --names-only '^linux-source-[0-9.]+$' |
			awk '{ sub("linux-source-", "", $1); print $1 }' | sort -uV)
		near=$( { printf '%s\n' "$all"; echo "$version"; } | sort -V | grep -xF -B1 -A1 "$version" |
			grep -vxF "$version" | tail -n1)
		[ -n "$near" ] || die "Debian has no $pkg, and no other linux-source either (see $LOGS/apt-source.log)." \
			"Check the network, or give a kernel source tree with KSRC=."
		[ "${RUST_HIST_NEAREST:-}" = 1 ] ||
			die "Debian has no $pkg any more; it has: $(echo $all)." \
				"To try the nearest, $near, set RUST_HIST_NEAREST=1; or give a source tree with KSRC=."
		pkg=linux-source-$near
		v=$(highest "$pkg")
		say "trying linux-source-$near in place of $version, as RUST_HIST_NEAREST=1 asks"
	fi
	rm -rf "$dl/$version.part"
	mkdir -p "$dl/$version.part"
	(cd "$dl/$version.part" && step "Downloading $pkg $v (about 160 MB)" "$LOGS/download-$version.log" 0 \
		apt-get "${APT_PRIVATE[@]}" download "$pkg=$v") ||
		die "the download of $pkg failed." "Check the network and start again; see $LOGS/download-$version.log."
	mv "$dl/$version.part" "$dl/$version"
}

# exact_source SERIES VERSION: prints the archive of the package linux-source-SERIES of exactly this version, if it is installed, else
# the package itself, which is downloaded unless it was before.
exact_source() {
	local package=linux-source-$1 dl=$CACHE/download dir
	local file=${package}_$2_all.deb
	if [ "$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null)" = "$2" ]; then
		echo "/usr/src/$package.tar.xz"
		return
	fi
	for dir in "$1" "$2"; do
		if [ -f "$dl/$dir/$file" ]; then
			echo "$dl/$dir/$file"
			return
		fi
	done
	private_apt
	MAY_FAIL=1 step "Looking for $package $2" "$LOGS/apt-source.log" 0 apt-get "${APT_PRIVATE[@]}" update || true
	mkdir -p "$dl/$2"
	(cd "$dl/$2" && step "Downloading $package $2 (about 160 MB)" "$LOGS/download-$2.log" 0 \
		apt-get "${APT_PRIVATE[@]}" download "$package=$2") ||
		die "$package $2 could not be downloaded." "Install it, or take a kernel whose source Debian still has; see $LOGS/download-$2.log."
	echo "$dl/$2/$file"
}

# Prints the identity of the source of version $1, which is part of every key.
source_id() {
	local deb
	if [ -n "${KSRC:-}" ]; then
		printf 'ksrc %s %s\n' "$(cd "$KSRC" && pwd -P)" "$(make -s -C "$KSRC" kernelversion)"
		return
	fi
	deb=$(compgen -G "$CACHE/download/$1/*.deb" | head -n1) || return 1
	basename "$deb"
}

# Prints a hash that changes when KSRC is edited; Debian's source never changes.
source_state() {
	[ -z "${KSRC:-}" ] || find "$KSRC" -name .git -prune -o -type f -printf '%T@\n' |
		awk '{ n++; if ($1 > t) t = $1 } END { printf "%d %.6f\n", n, t }'
}

# Unpacks the source of version $1 and prints where; nothing writes there later.
pristine() {
	local version=$1 dir tmp deb
	if [ -n "${KSRC:-}" ]; then
		[ -f "$KSRC/Kbuild" ] && [ -d "$KSRC/rust" ] || die "KSRC=$KSRC is no kernel source tree with Rust in it."
		[ ! -e "$KSRC/.config" ] && [ ! -d "$KSRC/include/config" ] ||
			die "KSRC=$KSRC has been built in place." "Clean it with 'make mrproper', or give it as KDIR= when it is built and patched."
		(cd "$KSRC" && pwd -P)
		return
	fi
	fetch_source "$version" >&2
	dir=$CACHE/source/$(source_id "$version")
	dir=${dir%.deb}
	if [ ! -f "$dir/Makefile" ]; then
		need_space "$CACHE" 4000 "the kernel source"
		tmp=$dir.part
		rm -rf "$tmp"
		mkdir -p "$tmp"
		deb=$(compgen -G "$CACHE/download/$version/*.deb" | head -n1)
		step "Unpacking the source of Linux $version" "$LOGS/unpack-$version.log" 0 \
			bash -c 'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -xOf - --wildcards "./usr/src/linux-source-*.tar.*" |
				xz -dcT0 | tar -xf - -C "$2" --strip-components=1' - "$deb" "$tmp"
		mv "$tmp" "$dir"
	fi
	echo "$dir"
}
