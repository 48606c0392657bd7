# SPDX-License-Identifier: GPL-2.0
"""Checks the machine code of a hit, for scripts/check-object.

usage: object.py SUFFIX MODULE DOCUMENT [-v]

SUFFIX is that of the LLVM tools, MODULE a rust_hist.ko with debug information. What DOCUMENT allows is in
four of its sections, each a list of definitions: the terms are functions, the definitions say why.
"""

import bisect
import collections
import json
import re
import subprocess
import sys

# Functions that the core calls for a hit, and those that these call through a pointer.
ROOT = re.compile(r"::Command>?.*::(timed|filtered|filtered_slowly|hit_record|look|hit)(::<.*>)?$")
# A front, which computes a key and finds the element, and a back, which a front calls through a pointer.
FRONT = re.compile(r"ffi::command::Command.*::(hit_record|look|hit|rest_of_record|rest_of_look)(::<.*>)?$")
BACK = re.compile(r"hist_trigger::hot::leave_(record|hit)(::<.*>)?$")
# The functions that the core or another entry jumps to.
ENTRY = re.compile(rf"ffi::command::Command.*::(timed|filtered|filtered_slowly)(::<.*>)?$|{FRONT.pattern}|{BACK.pattern}")
# The most bytes of stack of a chain of calls in a hit, the kernel's functions not counted; see the document.
STACK_MAX = 4896
# The largest frame of any function of the module, hit or not: the kernel warns of larger ones in C (CONFIG_FRAME_WARN).
FRAME_MAX = 2048
# The most bytes of stack that a write to `trigger` takes, the kernel's functions not counted. The kernel's stacks have
# 16 KiB, and an allocation may be a hit, with STACK_MAX bytes more.
WRITE_MAX = 8736
WRITE = re.compile(r"ffi::command::Command.*::parse_callback$")
# The compiler of actions calls the look-ups through a pointer, and one of them compiles a trigger without actions.
LOOKS_UP = re.compile(r"::compile_actions$")
LOOK_UP = re.compile(r" as .*Resolver>::")
WITHOUT_ACTIONS = re.compile(r"hist_trigger::helper::compile$")

SECTIONS = {
    "Locked instructions": "locked instruction",
    "Divisions": "division",
    "Calls out of the module": "call out of the module",
    "Indirect calls": "indirect call",
}


class X86:
    """What an instruction of x86-64 is, and what a relocation says."""

    sections = SECTIONS
    relocation = re.compile(r"\s+[0-9a-f]+:\s+(R_X86_64_\w+)\s+(\S+)$")
    direct = re.compile(r"(?:callq?|j\w+) 0x([0-9a-f]+)")
    calls = re.compile(r"call|j")
    locked = re.compile(r"lock\b|xchg\w* .*\(")
    division = re.compile(r"i?div[bwlq]? ")
    # 2 % above the last measurement: what makes less of something lowers its limit.
    limits = {
        "size: text": 684_500,
        "bytes a hit can reach": 220_300,
        "bytes outside": 320_000,
        "entries": 70,
        "largest function of a hit": 6_520,
        "largest function outside": 11_020,
        "copies of one generic function": 27_300,
    }
    trap = re.compile(r"ud[12]")
    # The return address.
    frame = 8
    # What follows is reached from the body of the function.
    leaves = re.compile(r"(ret|jmp)q?\b")

    @staticmethod
    def addend(kind):
        return 4 if kind in ("R_X86_64_PC32", "R_X86_64_PLT32") else 0

    @staticmethod
    def is_indirect(body, at):
        text = body[at][1]
        # A jump through a table has an index.
        return re.match(r"(call|jmp)q? \*", text) and not re.search(r",[1248]\)|, 8\)|\(,%", text)

    @staticmethod
    def replacements(_obj):
        # Replacements are in a section of their own.
        return {}

    @staticmethod
    def pushed(text):
        if re.match(r"push|pop", text):
            return 8 if text.startswith("push") else -8
        if m := re.match(r"(?:sub|add)q \$(-?0x[0-9a-f]+|-?\d+), %rsp", text):
            n = int(m[1], 0)
            return n if text.startswith("sub") else -n
        return 0


class Arm64:
    """The same of arm64."""

    sections = SECTIONS | {"Atomic instructions of arm64": "locked instruction"}
    relocation = re.compile(r"\s+[0-9a-f]+:\s+(R_AARCH64_\w+)\s+(\S+)$")
    direct = re.compile(r"(?:bl?|b\.\w+|cbn?z|tbn?z) (?:.*, )?0x([0-9a-f]+) <")
    calls = re.compile(r"bl? ")
    # Each has either a load or a store of a pair of exclusive ones.
    locked = re.compile(r"(?:ld(?:add|set|clr|eor|[su]max|[su]min)|swp|cas|stl?x[rp])\w* ")
    division = re.compile(r"[us]div ")
    limits = {}
    trap = re.compile(r"brk|udf")
    frame = 0
    leaves = re.compile(r"ret\b")

    @staticmethod
    def addend(_kind):
        return 0

    @staticmethod
    def is_indirect(body, at):
        return re.match(r"(blr|br) x", body[at][1])

    @staticmethod
    def replacements(obj):
        """By address those instructions that the kernel may put in the place of others, and where: see struct alt_instr.

        They lie behind the functions of an object file.
        """
        dump = obj.tool("llvm-readelf", "-x", ".altinstructions", obj.path)
        data = bytes.fromhex("".join("".join(line[11:46].split()) for line in dump.splitlines() if line.startswith("0x")))
        places = {}
        for line in obj.tool("llvm-objdump", "-r", "--section=.rela.altinstructions", obj.path).splitlines():
            if m := re.match(r"([0-9a-f]+) R_AARCH64_PREL32 +\.text(?:\+0x([0-9a-f]+))?$", line):
                places[int(m[1], 16)] = int(m[2] or "0", 16)
        found = {}
        for item in range(0, len(data), 12):
            if item in places and item + 4 in places:
                for byte in range(0, data[item + 11], 4):
                    found[places[item + 4] + byte] = places[item]
        return found

    @staticmethod
    def pushed(text):
        if m := re.match(r"st[pr] .*\[sp, #-(0x[0-9a-f]+|\d+)\]!", text):
            return int(m[1], 0)
        if m := re.match(r"sub sp, sp, #(0x[0-9a-f]+|\d+)(, lsl #12)?", text):
            return int(m[1], 0) << (12 if m[2] else 0)
        return 0


PANICS = re.compile(r"core::panicking|panic|unwrap_failed|expect_failed|slice_\w*_fail|rust_begin_unwind|__stack_chk_fail")
ATOMICS = re.compile(r"^(rust_helper_|__atomic_|__sync_|__aarch64_|atomic|arch_atomic|raw_atomic)")


def allowed(path, sections):
    """Returns by kind the functions that the document names, and those that only some kernels have."""
    lists, optional = {kind: set() for kind in sections.values()}, set()
    lines = open(path, encoding="utf-8").read().splitlines()
    kind = None
    for line, below in zip(lines, lines[1:] + [""]):
        if re.fullmatch(r"([=\-~^])\1{2,}", below):
            kind = sections.get(line)
        elif kind and line.startswith("``"):
            terms, _, classifier = line.partition(" : ")
            terms = re.findall(r"``([^`]+)``", terms)
            lists[kind].update(terms)
            optional.update(terms if classifier == "by configuration" else ())
    return lists, optional


def without_generics(name):
    """Returns a demangled path without its generic arguments: <a::B<C> as D>::e::<F> is a::B::e."""
    out, depth = "", 0
    name = re.sub(r"\bimpl <", "<", name)
    # The type before a path is in brackets like generic arguments.
    if name.startswith("<"):
        end, depth = 0, 0
        for end, c in enumerate(name):
            depth += (c == "<") - (c == ">" and name[end - 1] != "-")
            if depth == 0:
                break
        inner, rest = name[1:end], name[end + 1 :]
        depth = 0
        for i, c in enumerate(inner):
            depth += (c == "<") - (c == ">" and inner[i - 1] != "-")
            if depth == 0 and inner.startswith(" as ", i):
                inner = inner[:i]
                break
        return without_generics(inner) + without_generics(rest)
    depth = 0
    for i, c in enumerate(name):
        if c == "<":
            depth += 1
        elif c == ">" and name[i - 1] != "-":
            depth -= 1
        elif depth == 0:
            out += c
    return out.replace("::::", "::").rstrip(":")


def short(name):
    """Returns the last two parts of a function's path, closures left out."""
    parts = [p for p in without_generics(name).split("::") if p and not p.startswith("{")]
    return "::".join(parts[-2:])


class Object:
    def __init__(self, suffix, path):
        self.suffix, self.path = suffix, path
        self.functions = {}
        self.starts = []
        is_arm64 = "aarch64" in self.tool("llvm-readelf", "-h", path).lower()
        self.machine = Arm64 if is_arm64 else X86
        self.read()

    def tool(self, name, *args, text=None):
        return subprocess.run([name + self.suffix, *args], input=text, check=True, capture_output=True, text=True).stdout

    def read(self):
        """Fills functions: by symbol a list of (address, instruction, [(type, target) of relocations])."""
        symbols = []
        for line in self.tool("llvm-objdump", "-t", self.path).splitlines():
            if m := re.match(r"([0-9a-f]+) .{6}F \.text\s+([0-9a-f]+) (?:\.hidden )?(\S+)$", line):
                symbols.append((m[3], int(m[1], 16), int(m[2], 16)))
        self.ends = ends = {name: start + size for name, start, size in symbols}
        replacements = self.machine.replacements(self)
        name, body = None, None
        for line in self.tool("llvm-objdump", "-dr", "--no-show-raw-insn", "--section=.text", self.path).splitlines():
            if m := re.match(r"([0-9a-f]+) <(.*)>:$", line):
                # A label in a function is no other one.
                if m[2] not in ends:
                    continue
                name = m[2]
                self.functions.setdefault(name, [])
                self.starts.append((int(m[1], 16), name))
            elif m := self.machine.relocation.match(line):
                body[-1][2].append((m[1], m[2]))
            elif m := re.match(r"\s+([0-9a-f]+):\s+(.*\S)", line):
                address, text = int(m[1], 16), re.sub(r"\s+", " ", m[2])
                if address in replacements:
                    # Code of a replacement belongs to the function of the replaced code.
                    address = replacements[address]
                    body = self.functions[self.holder(address)]
                elif address < ends[name]:
                    body = self.functions[name]
                else:
                    # Between functions.
                    body = []
                # A prefix is on a line of its own.
                if body and body[-1][1] in ("lock", "rep", "repne"):
                    body[-1] = (body[-1][0], body[-1][1] + " " + text, body[-1][2])
                else:
                    body.append((address, text, []))
        self.starts.sort()
        # The compiler keeps one of functions that are equal, under all their names.
        starts = dict(self.starts)
        self.aliases = {name: starts[start] for name, start, _ in symbols if name not in self.functions and start in starts}

    def holder(self, address):
        return self.starts[bisect.bisect_right(self.starts, (address, "\xff")) - 1][1]

    def references(self, symbol):
        """Yields (address, instruction, target, whether it is in this section) of a function."""
        for address, text, relocations in self.functions[symbol]:
            for kind, target in relocations:
                base, offset = re.match(r"(.*?)([+-]0x[0-9a-f]+)?$", target).groups()
                base = self.aliases.get(base, base)
                offset = int(offset or "0", 16)
                offset += self.machine.addend(kind)
                if base == ".text":
                    yield address, text, self.holder(offset), True
                else:
                    yield address, text, base, base in self.functions
            m = self.machine.direct.match(text)
            holder = self.holder(int(m[1], 16)) if m and not relocations else None
            # What lies between functions is another way for one instruction of this one.
            if holder and int(m[1], 16) < self.ends[holder]:
                yield address, text, holder, True

    def inlined(self, addresses):
        """Returns for each address the functions whose code it is, the innermost first."""
        addresses = list(addresses)
        text = "".join(f"{a:#x}\n" for a in addresses)
        lines = self.tool("llvm-symbolizer", "--obj=" + self.path, "--output-style=JSON", text=text).splitlines()
        found = [[frame["FunctionName"] for frame in json.loads(line)["Symbol"]] for line in lines]
        # All sections of an object file begin at 0, so the symbolizer may take a constant for the outermost function.
        holders = [self.holder(address) for address in addresses]
        names = self.demangled(set(holders))
        for frames, holder in zip(found, holders):
            frames[-1:] = [names[holder]]
        return found

    def demangled(self, symbols):
        symbols = list(symbols)
        return dict(zip(symbols, self.tool("llvm-cxxfilt", text="\n".join(symbols) + "\n").splitlines()))

    def frame(self, symbol):
        """Returns the bytes of stack that a function takes, its return address among them."""
        depth = body = most = 0
        for _, text, _ in self.functions[symbol]:
            pushed = self.machine.pushed(text)
            depth += pushed
            most = max(most, depth)
            # Arguments that were pushed for a call are popped before the next jump.
            if pushed > 8:
                body = depth
            elif self.machine.leaves.match(text):
                depth = body
        return self.machine.frame + most


def roots(obj):
    """Returns the functions by which the core calls the trigger commands for a hit."""
    names = obj.demangled(obj.functions)
    return [s for s, name in names.items() if "ffi::command::Command<" in name and ROOT.search(name)]


def closure(obj):
    """Returns the functions that a hit can call, each with those that it refers to."""
    names = obj.demangled(obj.functions)
    backs = {s for s, name in names.items() if BACK.search(name)}
    graph, todo = {}, roots(obj)
    while todo:
        symbol = todo.pop()
        if symbol not in graph:
            graph[symbol] = {t for _, _, t, here in obj.references(symbol) if here and t != symbol}
            body = obj.functions[symbol]
            if FRONT.search(names[symbol]) and any(obj.machine.is_indirect(body, at) for at in range(len(body))):
                graph[symbol] |= backs
            todo += graph[symbol]
    return graph


def findings(obj, graph):
    """Yields (kind, address, symbol, what) for all instructions that need a reason in a hit."""
    machine = obj.machine
    for symbol in graph:
        body = obj.functions[symbol]
        for at, (address, text, _) in enumerate(body):
            if machine.locked.match(text):
                yield "locked instruction", address, symbol, text
            elif machine.division.match(text):
                yield "division", address, symbol, text
            elif machine.is_indirect(body, at):
                yield "indirect call", address, symbol, text
            elif machine.trap.match(text):
                yield "panic", address, symbol, text
        for address, text, target, here in obj.references(symbol):
            if not here and machine.calls.match(text) and not target.startswith(".") and target != "__fentry__":
                yield "call out of the module", address, symbol, target


def weights(obj, graph, verbose):
    """Returns how much there is of what has a limit. Prints the largest ones if verbose."""
    sizes = {symbol: obj.ends[symbol] - start for start, symbol in obj.starts}
    names = obj.demangled(sizes)
    copies = collections.defaultdict(list)
    for symbol, size in sizes.items():
        copies[without_generics(names[symbol])].append(size)
    entries = [symbol for symbol in sizes if ENTRY.search(names[symbol])]
    shared = {name: found for name, found in copies.items() if len(found) > 1 and not ENTRY.search(name)}

    def most(symbols):
        return max(sizes[symbol] for symbol in symbols)

    if verbose:
        for name, found in sorted(copies.items(), key=lambda item: -sum(item[1]))[:40]:
            print(f"{sum(found):8} bytes in {len(found):3}: {name}")
    outside = sizes.keys() - graph.keys()
    return {
        "size: text": int(obj.tool("llvm-size", obj.path).splitlines()[1].split()[0]),
        "bytes a hit can reach": sum(sizes[symbol] for symbol in graph),
        "bytes outside": sum(sizes[symbol] for symbol in outside),
        "entries": len(entries),
        "largest function of a hit": most(graph),
        "largest function outside": most(outside),
        "copies of one generic function": max(sum(found) for found in shared.values()),
    }


def deepest(obj, names, callees, call, found=None):
    """Returns the bytes of the deepest chain of calls, and the chain.

    A call is a tuple that begins with the function; `callees` returns the calls that it makes.
    """
    found = {} if found is None else found
    if call not in found:
        # A function that calls itself has the stack of one call.
        found[call] = 0, []
        below = [deepest(obj, names, callees, callee, found) for callee in callees(call)]
        size, chain = max(below, default=(0, []), key=lambda b: b[0])
        symbol = call[0]
        found[call] = size + obj.frame(symbol), [f"{short(names[symbol])} {obj.frame(symbol)}"] + chain
    return found[call]


def deepest_write(obj):
    """Returns the bytes of the deepest chain of calls from a write to `trigger`, and the chain."""
    names = obj.demangled(obj.functions)
    look_ups = {s for s, name in names.items() if LOOK_UP.search(name)}
    without_actions = {s for s, name in names.items() if WITHOUT_ACTIONS.search(name)}
    if not look_ups or not without_actions:
        sys.exit("the look-ups of a trigger's actions have other names")

    def callees(call):
        symbol, has_actions = call
        has_actions = has_actions and symbol not in without_actions
        below = {t for _, text, t, here in obj.references(symbol) if here and t != symbol and obj.machine.calls.match(text)}
        if has_actions and LOOKS_UP.search(names[symbol]):
            below |= look_ups
        return [(callee, has_actions) for callee in below]

    writes = (s for s, name in names.items() if WRITE.search(name))
    return max((deepest(obj, names, callees, (s, True)) for s in writes), key=lambda found: found[0])


def main():
    suffix, path, document = sys.argv[1:4]
    verbose = "-v" in sys.argv[4:]
    obj = Object(suffix, path)
    graph = closure(obj)
    if not graph:
        sys.exit(f"there is no hit in {path}")
    found = list(findings(obj, graph))
    names = obj.demangled(set(graph) | {f[3] for f in found})
    lists, optional = allowed(document, obj.machine.sections)
    used = {kind: collections.Counter() for kind in lists}
    bad = []

    for (kind, _, symbol, what), frames in zip(found, obj.inlined([f[1] for f in found])):
        what = names.get(what, what)
        where = [short(f) for f in frames if f] or [short(names[symbol])]
        story = f"{kind}: {what}, in " + " < ".join(where[:8])
        # Functions of the library are named together with their caller.
        callers = sorted({short(names[s]) for s, callees in graph.items() if symbol in callees})
        if len(where) < 4 and callers:
            story += " (called by " + ", ".join(callers) + ")"
        if PANICS.search(what):
            bad.append(story.replace(kind, "panic path", 1))
        elif ATOMICS.match(what):
            bad.append(f"atomic helper: {story}")
        else:
            terms = {what} if kind == "call out of the module" else set(where)
            match = terms & lists.get(kind, set())
            used.setdefault(kind, collections.Counter()).update(match)
            if not match:
                bad.append(story)
        if verbose:
            print(story)

    for kind, terms in lists.items():
        bad += [f"the document allows {t} a {kind}, and it has none" for t in sorted(terms - set(used[kind]) - optional)]

    size, chain = max(
        (deepest(obj, names, lambda call: [(t,) for t in graph[call[0]]], (root,)) for root in roots(obj)),
        key=lambda found: found[0],
    )
    print(f"stack: {size} bytes: " + ", ".join(chain))
    if size > STACK_MAX:
        bad.append(f"a hit takes {size} bytes of stack, at most {STACK_MAX} are allowed")
    size, chain = deepest_write(obj)
    print(f"stack of a write: {size} bytes: " + ", ".join(chain))
    if size > WRITE_MAX:
        bad.append(f"a write to trigger takes {size} bytes of stack, at most {WRITE_MAX} are allowed")
    large = {symbol: obj.frame(symbol) for symbol in obj.functions if obj.frame(symbol) > FRAME_MAX}
    for symbol, name in obj.demangled(large).items():
        bad.append(f"{short(name)} takes {large[symbol]} bytes of stack, at most {FRAME_MAX} are allowed for one function")
    counts = ", ".join(f"{title.lower()} {sum(used[kind].values())}" for title, kind in SECTIONS.items())
    print(f"{len(graph)} functions; allowed and found: {counts}")
    found = weights(obj, graph, verbose)
    print(", ".join(f"{what} {n}" for what, n in found.items()))
    for what, most in obj.machine.limits.items():
        if found[what] > most:
            bad.append(f"{what}: {found[what]}, at most {most} are allowed")
    for line, times in collections.Counter(bad).items():
        print(line + (f" ({times} times)" if times > 1 else ""))
    sys.exit(1 if bad else 0)


main()
