# SPDX-License-Identifier: GPL-2.0
"""The two halves of scripts/profile.

usage: profile.py log DIR PID          has QEMU log the instructions of some hits
       profile.py count DIR FUNCTION   counts them by function; ARCH is the guest's architecture
"""

import bisect
import collections
import os
import re
import socket
import sys
import time

# How many hits are logged.
HITS = 20
# The function in which a hit starts.
ENTRY = "trace_event_raw_event_hit"
# The length of a call instruction with an address in it, by architecture.
CALL = {"x86_64": 5, "arm64": 4}


def symbols_of(where):
    """The functions of the guest's kernel, as addresses and names."""
    symbols = []
    with open(os.path.join(where, "out", "kallsyms"), encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words[1] in "tTwW":
                symbols.append((int(words[0], 16), words[2]))
    return sorted(symbols)


def log(where, pid):
    def command(text):
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(os.path.join(where, "monitor"))
            monitor.sendall(text.encode() + b"\n")
            # Reads up to the second prompt: QEMU prints one at the start.
            said = b""
            while said.count(b"(qemu)") < 2:
                said += monitor.recv(4096)

    out = os.path.join(where, "out")
    while not os.path.exists(os.path.join(out, "ready")):
        time.sleep(0.1)
        os.kill(int(pid), 0)
    entries = [f"/{address:016x}/".encode() for address, name in symbols_of(where) if name == ENTRY]
    # An instruction a block; the second name is that of QEMU before 8.1. Each of the two does not know one of them.
    command("one-insn-per-tb on")
    command("singlestep on")
    command("log exec,nochain")
    with open(os.path.join(where, "log"), "rb") as lines:
        hits, rest = 0, b""
        while hits < HITS:
            time.sleep(0.02)
            os.kill(int(pid), 0)
            whole_lines, _, rest = (rest + lines.read()).rpartition(b"\n")
            hits += sum(whole_lines.count(entry) for entry in entries)
    command("log nochain")
    with open(os.path.join(out, "stop"), "w", encoding="utf-8"):
        pass


def count(where, function):
    symbols = symbols_of(where)
    starts = [address for address, _ in symbols]
    places = re.compile(r"\[[0-9a-f]+/([0-9a-f]+)/")
    with open(os.path.join(where, "log"), encoding="utf-8", errors="replace") as lines:
        ran = [int(found.group(1), 16) for found in map(places.search, lines) if found]

    def all_named(name):
        return {address for address, symbol in symbols if symbol == name}

    entries = all_named(ENTRY)
    hits = [at for at, address in enumerate(ran) if address in entries]
    if len(hits) < 3:
        sys.exit("rust_hist: error: there are not enough hits in QEMU's log")
    ran = ran[hits[0]:hits[-1]]
    hits = len(hits) - 1

    spent, calls = collections.Counter(), collections.Counter()
    for address, times in collections.Counter(ran).items():
        start, name = symbols[bisect.bisect_right(starts, address) - 1]
        spent[name] += times
        if start == address:
            calls[name] += times
    print(f"{len(ran) / hits:10.1f}  a hit, of {hits}")
    for name, times in spent.most_common():
        if times * 20 >= hits:
            print(f"{times / hits:10.1f}  {name}, {calls[name] / hits:.1f} calls")
    if function:
        takes = whole(ran, all_named(function))
        print(f"{takes:10.1f}  a call of {function} with all that it calls" if takes else f"{function} is not called")


def whole(ran, entries):
    """The mean number of instructions of a function's calls, each from its first instruction to the return."""
    takes, at = [], 1
    while at < len(ran):
        if ran[at] in entries:
            try:
                end = ran.index(ran[at - 1] + CALL[os.environ.get("ARCH", "x86_64")], at)
            except ValueError:
                break
            takes.append(end - at)
            at = end
        at += 1
    return sum(takes) / len(takes) if takes else None


if __name__ == "__main__":
    {"log": log, "count": count}[sys.argv[1]](*sys.argv[2:])
