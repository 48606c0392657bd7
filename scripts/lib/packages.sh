# SPDX-License-Identifier: GPL-2.0
# Sourced after common.sh: the package lists, and packages of this Debian release that are unpacked and not installed, so
# that none of their maintainer scripts runs.

# Reads the package lists of the archive, once.
REFRESHED=
refresh() {
	[ -z "$REFRESHED" ] || return 0
	REFRESHED=1
	need_root
	step "Reading the package lists" "$LOGS/apt-update.log" 0 "${SUDO[@]}" apt-get update ||
		die "apt-get update failed." "Check the network and /etc/apt; see $LOGS/apt-update.log."
}

# Packages of another architecture have lists of their own: dpkg need not know that architecture.
OF_LISTS=()
if [ "$ARCH" != x86_64 ]; then
	OF_LISTS=(-o "APT::Architecture=$ARCH" -o "APT::Architectures=$ARCH" -o "Dir::State::Lists=$CACHE/apt/lists$OF_ARCH"
		-o "Dir::Cache=$CACHE/apt/cache$OF_ARCH" -o Acquire::Languages=none -o APT::Sandbox::User=root)
fi
refresh_lists() {
	[ "$ARCH" != x86_64 ] || { refresh; return; }
	mkdir -p "$CACHE/apt/lists$OF_ARCH/partial" "$CACHE/apt/cache$OF_ARCH/archives/partial"
	step "Reading the package lists of $ARCH" "$LOGS/apt-update$OF_ARCH.log" 0 apt-get "${OF_LISTS[@]}" update ||
		die "apt-get update failed." "Check the network and /etc/apt; see $LOGS/apt-update$OF_ARCH.log."
}

# download_packages STATUS DIR WHAT PACKAGE... - downloads packages into DIR/archives, and their dependencies except for
# packages that are installed by STATUS, a package status as dpkg keeps it. WHAT is for messages.
download_packages() {
	local status=$1 dir=$2 what=$3 log
	shift 3
	log=$LOGS/$(basename "$dir")-download.log
	[ "$ARCH" = x86_64 ] && compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || refresh_lists
	mkdir -p "$dir/archives/partial"
	step "Downloading $what" "$log" 0 \
		apt-get "${OF_LISTS[@]}" -y --no-install-recommends --download-only -o "Dir::State::status=$status" \
		-o "Dir::State::extended_states=$dir/extended_states" -o "Dir::Cache::Archives=$dir/archives" \
		-o APT::Sandbox::User=root -o Debug::NoLocking=true -o DPkg::Post-Invoke= -o APT::Keep-Downloaded-Packages=true \
		install "$@" ||
		die "$what could not be downloaded." "Run 'apt-get update' as root and start again; see $log."
}

# usr_merged ROOT - makes the links that no package of Debian has, before packages are unpacked in ROOT.
usr_merged() {
	local d
	for d in bin sbin lib lib64; do
		mkdir -p "$1/usr/$d"
		ln -s "usr/$d" "$1/$d"
	done
}

# would COMMAND ARGUMENT... - what apt-get would do: "Inst PACKAGE ..." and "Remv PACKAGE ..." lines.
would() { LC_ALL=C apt-get "${WITH_BACKPORTS[@]}" -s --no-install-recommends "$@" 2>/dev/null; }

# The options with which apt also knows the backports of this release, in lists of their own; none until
# with_backports() has read them.
WITH_BACKPORTS=()
with_backports() {
	local SOURCE_SUITES VERSION_CODENAME CACHE=$CACHE/backports APT_PRIVATE
	VERSION_CODENAME=$(. /etc/os-release; echo "${VERSION_CODENAME:-}")
	SOURCE_SUITES="$VERSION_CODENAME $VERSION_CODENAME-updates $VERSION_CODENAME-backports"
	private_apt
	MAY_FAIL=1 step "Reading the package lists of $VERSION_CODENAME-backports" "$LOGS/apt-backports.log" 0 \
		apt-get "${APT_PRIVATE[@]}" update || return
	WITH_BACKPORTS=("${APT_PRIVATE[@]}" -o Debug::NoLocking=false)
}

# keeping_release PACKAGE... - prints the options with which apt-get installs these packages and removes none: no option, or
# the release, of those in the lists, whose versions fit the installed packages. Where there is none, it prints what apt would
# remove, and fails.
keeping_release() {
	local gone release plan
	if plan=$(would install "$@") && ! grep -q '^Remv ' <<<"$plan"; then return; fi
	gone=$(awk '$1 == "Remv" { print $2 }' <<<"$plan" | paste -sd' ')
	while read -r release; do
		if plan=$(would -t "$release" install "$@") && ! grep -q '^Remv ' <<<"$plan"; then
			echo "-t $release"
			return
		fi
	done < <(apt-cache "${WITH_BACKPORTS[@]}" madison "$@" |
		awk -F'|' '{ sub(/\/[^\/]* [^ ]* Packages *$/, "", $3); sub(/.* /, "", $3); print $3 }' | sort -u)
	echo "$gone"
	return 1
}
