# SPDX-License-Identifier: GPL-2.0
"""Writes an initramfs for scripts/vm: an archive of cpio's "newc" format, whose files all are root's.

usage: cpio.py OUTPUT [-x PATTERN]... PATH=SOURCE...

Each SOURCE, a file or a directory with all that is in it, comes to PATH. Paths that match a PATTERN are left out.
"""

import fnmatch
import os
import stat
import sys


def main():
    output, patterns, sources = sys.argv[1], [], []
    arguments = iter(sys.argv[2:])
    for argument in arguments:
        if argument == "-x":
            patterns.append(next(arguments))
        else:
            sources.append(argument.split("=", 1))
    with open(output, "wb") as out:
        count = 0

        def entry(name, mode, data):
            nonlocal count
            count += 1
            name = name.encode() + b"\0"
            numbers = (count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
            header = b"070701" + b"".join(b"%08x" % number for number in numbers) + name
            for part in header, data:
                out.write(part + bytes(-len(part) % 4))

        def add(name, source):
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                return
            mode = os.lstat(source).st_mode
            if stat.S_ISLNK(mode):
                entry(name, mode, os.readlink(source).encode())
            elif stat.S_ISDIR(mode):
                if name:
                    entry(name, mode, b"")
                for child in sorted(os.listdir(source)):
                    add(f"{name}/{child}".lstrip("/"), os.path.join(source, child))
            elif stat.S_ISREG(mode):
                with open(source, "rb") as file:
                    entry(name, mode, file.read())

        made = set()
        for path, source in sources:
            path = path.strip("/")
            parts = path.split("/")[:-1]
            for n in range(len(parts)):
                parent = "/".join(parts[: n + 1])
                if parent not in made:
                    made.add(parent)
                    entry(parent, stat.S_IFDIR | 0o755, b"")
            add(path, os.path.realpath(source))
        entry("TRAILER!!!", 0, b"")


main()
