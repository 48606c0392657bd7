# SPDX-License-Identifier: GPL-2.0
"""Evaluates the figures of selftests/bench/rows -t and selftests/bench/random --tabs for scripts/bench.

usage: bench.py check    RESULTS BASELINE COMBINATION
       bench.py baseline RESULTS COMBINATION             prints the new baseline
       bench.py document RESULTS MAP DIRECTORY BASELINE  writes benchmarks.rst and its plots, if nothing is missing
       bench.py beside   RESULTS DIRECTORY BASELINE NAME OTHER
                                                         writes benchmarks-NAME.rst, with the figures of the baseline OTHER

RESULTS is what selftests/bench/rows -t printed, with lines '# WORD: TEXT' about the machine, and the lines of
selftests/bench/random --tabs that begin with "random"; MAP what scripts/bench-map printed.
"""

import collections
import html
import math
import os
import re
import sys

# How far a figure may exceed the baseline: a part of it, or one instruction if that is more.
GROWTH = 0.03
LEAST = 1.0
# The rows of stack traces, and how many instructions they may cost besides the unwinding, which is the core's.
STACKS = ("stacktrace", "stack-var")
STACK_MORE = 250
# The entries of the table whose fill is measured.
FILL_SIZE = 2048
# The line of the results that names the seeds of random triggers.
SEEDS = "Seeds of random triggers"

Figure = collections.namedtuple("Figure", "unit median least most limit text")
Random = collections.namedtuple("Random", "seed part texts median ninetieth worst limits text")


def results(path):
    """Returns the figures {(name, side): Figure} in their order, and the lines about the machine."""
    figures, about = {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                says = line[2:].rstrip("\n").split(": ", 1)
                # Each guest says something of itself.
                about += [says] * (says not in about)
            elif line.count("\t") == 7:
                name, side, unit, median, least, most, limit, text = line.rstrip("\n").split("\t")
                # A limit that is a part of C is known where C was measured, too.
                before = figures.get((name, side))
                limit = float(limit) if limit != "-" else before.limit if before else None
                figures[name, side] = Figure(unit, float(median), float(least), float(most), limit, text)
    unwinding = figures.get(("stack_trace_save", "core"))
    for name in STACKS:
        stack = figures.get((name, "ours"))
        if stack and unwinding:
            figures[name, "ours"] = stack._replace(limit=unwinding.median + STACK_MORE)
    return figures, about


def randoms(path):
    """Returns the distributions of random triggers in their order."""
    with open(path, encoding="utf-8") as lines:
        fields = [line.rstrip("\n").split("\t") for line in lines if line.startswith("random\t")]
    return [Random(*of[1:]) for of in fields]


# --- the check against the baseline ---


def baseline(path, combination):
    """Prints a line for each figure of ours: its name, its median, and its limit."""
    figures, _ = results(path)
    print("# SPDX-License-Identifier: GPL-2.0")
    print("# What triggers of ours cost, and at most may; 'scripts/bench --baseline' writes this.")
    print("#", combination)
    for (name, side), figure in figures.items():
        if side == "ours":
            limit = "-" if figure.limit is None else f"{figure.limit:.0f}"
            print(f"{name}\t{figure.median:.1f}\t{limit}")


def read_baseline(path):
    """Returns {name: (median, limit)}, and the compilers, kernel and QEMU of it."""
    figures, said = {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                said.append(line[2:].strip())
            else:
                name, median, limit = line.split()
                figures[name] = float(median), None if limit == "-" else float(limit)
    return figures, said[-1]


def check(path, against, combination):
    """Prints KTAP, a test for each figure of the baseline.

    A figure fails that has grown, or is above its limit when that of the baseline is not. With other compilers,
    another kernel or QEMU figures differ, so they are only printed.
    """
    figures, _ = results(path)
    wanted, of = read_baseline(against)
    known = of == combination
    if not known:
        print(f"# The baseline is of: {of}\n# This is:            {combination}\n# so nothing fails.")
    fails = "not ok" if known else "ok"
    measured = [name for name, side in figures if side == "ours"]
    names = list(wanted) + [name for name in measured if name not in wanted]
    print(f"1..{len(names)}")
    for number, name in enumerate(names, 1):
        if name not in wanted or name not in measured:
            print(f"{fails} {number} {name} is not {'measured' if name in wanted else 'in the baseline'}")
            continue
        before, limit = wanted[name]
        now, grain = figures[name, "ours"].median, max(GROWTH * before, LEAST)
        good = now <= before + grain and (limit is None or now <= limit or before > limit)
        print(f"{name}: {now:.1f}, baseline {before:.1f}, at most {'-' if limit is None else f'{limit:.0f}'}")
        print(f"{'ok' if good else fails} {number} {name}")
        if now < before - grain:
            print(f"# {name} is better than the baseline: 'scripts/bench --baseline' takes it over")


# --- the document ---


def table(head, rows):
    """A list table: texts of triggers would need columns too wide for a drawn one."""
    out = [".. list-table::", "   :header-rows: 1", ""]
    for row in [head] + rows:
        for number, cell in enumerate(row):
            out.append(f"   {'*' if number == 0 else ' '} - {cell}")
    return out + [""]


def number(value):
    if value is None:
        return ""
    if abs(value) >= 100000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 20 else f"{value:.1f}"


def spread(figure):
    """The median, and the minimum and maximum if they differ as shown."""
    if figure is None:
        return ""
    low, mid, high = number(figure.least), number(figure.median), number(figure.most)
    return mid if low == high else f"{mid} ({low} ... {high})"


def literal(text):
    """The triggers, and the notes in brackets after them."""
    text, *notes = re.split(r" \((?=[a-z0-9])", text)
    return " ; ".join(f"``{part}``" for part in text.split(" ; ")) + "".join(f", {note.rstrip(')')}" for note in notes)


def pairs(figures):
    """[(name, C's, ours)] in the order of the measurement."""
    names = dict.fromkeys(name for name, side in figures if side in ("c", "ours"))
    return [(name, figures.get((name, "c")), figures.get((name, "ours"))) for name in names]


def row(name, c, ours, elsewhere):
    part = f"{100 * ours.median / c.median:.0f} %" if c and ours and c.median else ""
    limit = number(ours.limit) if ours and ours.limit is not None else ""
    return [spread(c), spread(ours), limit, part] + [number(elsewhere.get(name))] * bool(elsewhere)


def alone(figures, event):
    """The cost of an event alone, with a paused trigger."""
    return next(f.median for (name, side), f in figures.items() if side == "base" and name.startswith(f"alone {event} "))


# Rows of a table that is filled, and full.
FILLING = re.compile(r"(fill|spread)-\d+$")
FULL = re.compile(r"full(-[a-z]+)?(@\d+)?$")
# Rows of which each hit has a new key.
NEW = re.compile(r"new(-[a-z0-9-]+)?$")
# Rows of words that C does not have.
BEYOND = re.compile(r"(join|(?:filter|reject)-(?:tgid|cgroup)|overhead|grow|others|own|expire|start-found|log2-parts|stat|read-json|read-epoch)(-[a-z0-9-]+)?$")
# The first rows of the tables after the first.
FIRST = ("small-key", "spread")


def hit_tables(figures, elsewhere):
    """The tables of the hits: the named, other shapes, other contexts, and those in which CPUs share sums."""
    tables, shared = [[] for _ in range(len(FIRST) + 1)], []
    place = 0
    for name, c, ours in pairs(figures):
        if (c or ours).unit != "hit" or FILLING.match(name) or FULL.match(name) or NEW.match(name):
            continue
        text = re.sub(r"\b(TRACE|TEXT|TWO)(_ON)?\b", lambda m: "on" if m[2] else "off", (c or ours).text)
        cells = [literal(text)] + row(name, c, ours, elsewhere)
        if "@" in name:
            shared.append(cells)
            continue
        if name in FIRST:
            place = FIRST.index(name) + 1
        tables[place].append(cells)
    return *tables, shared


def maps(path):
    """The table of bench-map: its comments, and rows by column."""
    comments, rows, head = [], [], None
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                comments.append(line[1:].strip())
            elif head is None:
                head = line.split()
            else:
                rows.append(dict(zip(head, line.rstrip("\n").split("\t"))))
    return comments, rows


# Colours that people with colour blindness can distinguish.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
# The size of the drawing, and its margins around the plot.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 70, 215, 20, 50


def steps(most):
    """Round numbers from nothing to the first that is not below most."""
    step = 10 ** math.floor(math.log10(most))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if most / s <= 6)
    return [step * n for n in range(math.ceil(most / step) + 1)]


def powers(most):
    """1, 2, 5, 10, ... to the first that is not below most."""
    up = [1]
    while up[-1] < most:
        up.append(next(s * 10 ** (len(up) // 3) for s in (1, 2, 5) if s * 10 ** (len(up) // 3) > up[-1]))
    return up


def plot(path, x_says, y_says, ticks, lines, styles=None):
    """Draws lines, {title: [(x, y)]}, over the ticks of the x axis, as an SVG.

    styles are a colour and dashes for each title. With them, y is logarithmic.
    """
    most = max(y for points in lines.values() for _, y in points)
    up = powers(most) if styles else steps(most)
    low, high = ticks[0], ticks[-1]

    def at(x, y):
        part = math.log(max(y, up[0]) / up[0]) / math.log(up[-1] / up[0]) if styles else y / up[-1]
        return (LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP))

    def text(x, y, says, anchor="middle", more=""):
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{more}>{html.escape(says)}</text>'

    out = ["<!-- SPDX-License-Identifier: GPL-2.0 -->",
           f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for value in up:
        (x, y), (end, _) = at(low, value), at(high, value)
        out += [f'<path d="M{x:.1f} {y:.1f}H{end:.1f}" stroke="#ddd"/>', text(x - 6, y + 4, f"{value:g}", "end")]
    for value in ticks:
        x, y = at(value, 0)
        out += [f'<path d="M{x:.1f} {y:.1f}v5" stroke="black"/>', text(x, y + 18, f"{value:g}")]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_says),
            text(18, middle, y_says, more=f' transform="rotate(-90 18 {middle:.0f})"')]
    for place, (title, points) in enumerate(lines.items()):
        colour, dashes = styles[title] if styles else (COLOURS[place % len(COLOURS)], "")
        more = f'stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dashes}"' if dashes else "")
        places = [at(x, y) for x, y in sorted(points)]
        out.append(f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in places)}" fill="none" {more}/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        x, y = WIDTH - RIGHT + 16, TOP + 12 + 18 * place
        out += [f'<path d="M{x} {y - 4}h18" {more}/>', text(x + 24, y, title, "start")]
    with open(path, "w", encoding="utf-8") as svg:
        svg.write("\n".join(out + ["</svg>"]) + "\n")


def plot_fill(figures, path):
    lines = {title + also: [(100 * int(name.split("-")[1]) / FILL_SIZE, figure.median) for (name, of), figure in figures.items()
                            if of == side and re.match(kind + r"-\d+$", name)]
             for title, side in (("C", "c"), ("rust_hist", "ours")) for kind, also in (("fill", ""), ("spread", ", anywhere"))}
    plot(path, f"entries in use of {FILL_SIZE}, %", "instructions that keys=key adds", range(0, 101, 20), lines)


def plot_cpus(rows, path):
    lines, styles = collections.defaultdict(list), {}
    rows = [row for row in rows if row["map"] != "floor"]
    colours = dict(zip(dict.fromkeys(row["map"] for row in rows), COLOURS))
    dashes = dict(zip(dict.fromkeys(row["keys"] for row in rows), ("", "6 3", "2 3", "9 3 2 3")))
    for row in rows:
        keys, _, place = row["keys"].partition(", ")
        title = f"{row['map']}, {keys} key{'s' * (keys != '1')} {place}".rstrip()
        lines[title].append((int(row["threads"]), float(row["ratio"])))
        styles[title] = colours[row["map"]], dashes[row["keys"]]
    threads = sorted({x for points in lines.values() for x, _ in points})
    plot(path, "threads, each on a CPU of its own", "the map alone: cost of a key, times the floor", threads, lines, styles)


HEAD = """.. SPDX-License-Identifier: GPL-2.0
.. Written by 'make bench'.

=====================
rust_hist: benchmarks
=====================

``make bench`` measures all of this in one go, C's hist triggers and ours side by side in the same kernel, and
writes this file. How it measures is in :doc:`testing`; why ours costs what it does, in :doc:`design`. The figures of arm64
are in :doc:`benchmarks-arm64`; those of a kernel with a distribution's mitigations, which costs C and ours more, in
:doc:`benchmarks-mitigations`.
"""

HEAD_BESIDE = """.. SPDX-License-Identifier: GPL-2.0
.. Written by '{command}'.

{line}
{title}
{line}

{says}
"""

# Of each document beside benchmarks.rst: the command that writes it, the end of its title, the head of the column with the figures
# of selftests/bench/baseline, and its first paragraph.
BESIDE = {
    "arm64": ("make bench ARCH=arm64", "of arm64", "on x86-64", """\
What ``make bench ARCH=arm64`` measures, in the guest of that architecture, beside what ours costs on x86-64, by
``selftests/bench/baseline``; :doc:`benchmarks` has all of x86-64. Instructions of arm64, but atomic ones, either
access memory or compute, so what ours does takes more of them than on x86-64."""),
    "mitigations": ("scripts/bench --mitigations", "with mitigations", "without", """\
What ``scripts/bench --mitigations`` measures in a kernel with the mitigations of Debian's configuration, beside what
ours costs in the kernel without them, by ``selftests/bench/baseline``; :doc:`benchmarks` has all of that kernel. Each
return is a jump to a return thunk, and each indirect branch goes through a retpoline, as on a CPU that needs both. This
takes one instruction more for a return and four for an indirect call; what these cost in time no count shows."""),
}


def missing(figures, about, drawn, against):
    """The figures that a document needs and that were not measured: those with a baseline, and those without limit."""
    names = [name for name in read_baseline(against)[0] if not name.startswith("stack_trace_save")]
    wanted = [(name, side) for name in names + ["create"] for side in ("c", "ours")]
    wanted = [(name, side) for name, side in wanted if side == "ours" or not BEYOND.match(name)]
    wanted += [(name, "bpf") for name in ("bpf-count", "bpf-sum", "bpf-join")] + [("stack_trace_save", "core")]
    wanted += [("burst", "ours")]
    wanted += [("runq", side) for side in ("c", "ours", "bpf")]
    out = [f"{name} ({side})" for name, side in wanted if (name, side) not in figures]
    out += ["new"] * (not any(NEW.match(name) for name, _ in figures))
    seeds = about.get(SEEDS, "").split()
    out += [f"random triggers of seed {seed}" for seed in seeds if (seed, "all") not in {(of.seed, of.part) for of in drawn}]
    return out + ["random triggers"] * (not seeds)


def refuse(lacks):
    if lacks:
        sys.exit(f"bench.py: not measured, so nothing is written: {', '.join(lacks)}")


def write(where, name, out):
    with open(os.path.join(where, name), "w", encoding="utf-8") as doc:
        doc.write("\n".join(line.rstrip(" ") for line in out).rstrip("\n") + "\n")


def document(path, map_path, where, against):
    figures, about = results(path)
    comments, rows = maps(map_path)
    drawn = randoms(path)
    lacks = missing(figures, dict(about), drawn, against)
    for kind in ("fill", "spread"):
        lacks += [kind] * (sum(name.startswith(kind + "-") and bool(FILLING.match(name)) for name, _ in figures) < 4)
    refuse(lacks + ["the map alone"] * (not rows))
    out = [HEAD] + guest(figures, about, drawn, {}, [])
    out += ["Fill", "====", "", "The same trigger on a table of 2048 entries, against how many of them are taken.", "",
            ".. image:: bench-fill.svg", ""]
    write(where, "benchmarks.rst", out + native(comments, rows))
    plot_fill(figures, os.path.join(where, "bench-fill.svg"))
    plot_cpus(rows, os.path.join(where, "bench-cpus.svg"))


def beside(path, where, against, name, other):
    figures, about = results(path)
    drawn = randoms(path)
    refuse(missing(figures, dict(about), drawn, against))
    command, of, column, says = BESIDE[name]
    title = f"rust_hist: benchmarks {of}"
    elsewhere = {row: median for row, (median, _) in read_baseline(other)[0].items()}
    write(where, f"benchmarks-{name}.rst",
          [HEAD_BESIDE.format(command=command, title=title, line="=" * len(title), says=says)]
          + guest(figures, about, drawn, elsewhere, [column]))


def guest(figures, about, drawn, elsewhere, columns):
    """What is measured in a guest, beside the medians of the same rows elsewhere, which are in these columns."""
    counts = dict(about).get("Counts", "instructions")
    head = ["C", "rust_hist", "at most", "rust_hist / C"] + columns
    named, shapes, ways, shared = hit_tables(figures, elsewhere)
    out = ["Machine and versions", "====================", ""]
    out += [f":{word}: {text}" for word, text in about] + [""]
    out += ["A hit", "=====", "",
            f"What a trigger adds to a hit of an event with two numbers and a string of 16 bytes, in {counts}. The event",
            f"alone, with a trigger that is paused, takes {number(alone(figures, 'hit'))}.", ""]
    out += table(["trigger"] + head, named)
    out += ["``on`` and ``off`` are synthetic events that are on and off."]
    unwinding = figures.get(("stack_trace_save", "core"))
    if unwinding:
        out += [f"Of ``keys=common_stacktrace``, ``stack_trace_save()`` takes {number(unwinding.median)} in ours."]
    out += [""]
    out += [f"Other shapes, on an event with a field of each kind, which alone takes {number(alone(figures, 'sample'))}:", ""]
    out += table(["trigger"] + head, shapes)
    out += ["Where a hit goes another way. *Anywhere* are keys other than the numbers from 0:", ""]
    out += table(["trigger"] + head, ways)
    out += ["Where the kernel is ready for many CPUs, which share the sums of a trigger that has values:", ""]
    out += table(["trigger"] + head, shared)
    out += new_keys(figures, counts, head, elsewhere)
    out += random_triggers(drawn)
    out += bpf(figures, counts)
    return out + others(figures, counts, head, elsewhere)


def new_keys(figures, counts, head, elsewhere):
    rows = [[literal(f.text.replace(" (new keys)", ""))] + row(name, c, ours, elsewhere)
            for name, c, ours in pairs(figures) for f in [c or ours] if NEW.match(name)]
    return ["New keys", "========", "", f"What a trigger adds to a hit whose key is in no table yet, in {counts}.", ""] + table(
        ["trigger"] + head, rows)


def random_triggers(drawn):
    """The distributions, the worst of all seeds first, and of each the parts."""
    limits = next(of.limits for of in drawn if of.part == "all").split()
    rows = [[of.seed, of.part, of.texts] + [f"{float(value):.0f} %" for value in (of.median, of.ninetieth, of.worst)]
            + [literal(of.text)] for of in drawn]
    worst = [max(float(value) for value in values)
             for values in zip(*((of.median, of.ninetieth, of.worst) for of in drawn if of.part == "all"))]
    return ["Random triggers", "===============", "",
            "What random triggers of :doc:`grammar` add to an event whose key is known, as a part of what C adds. The worst of",
            f"all seeds are a median of {worst[0]:.0f} %, a 90th percentile of {worst[1]:.0f} % and {worst[2]:.0f} %; they may",
            f"be {limits[0]} %, {limits[1]} % and {limits[2]} %.", ""] + table(
                ["seed", "part", "texts", "median", "90th percentile", "worst", "the worst"], rows)


def bpf(figures, counts):
    rows = []
    event = alone(figures, "hit")
    for name, c, ours in (("bpf-count", "key", "key"), ("bpf-sum", "key-val", "key-val"), ("bpf-join", "three-triggers", "join")):
        whole = figures.get((name, "bpf"))
        both = [figures.get((c, "c")), figures.get((ours, "ours"))]
        if whole and all(both):
            rows.append([literal(whole.text), spread(whole), literal(both[1].text)] + [number(event + f.median) for f in both])
    if not rows:
        return []
    return ["BPF", "===", "",
            f"The whole of a hit, the event included, in {counts}: a program of bpftrace with the JIT on the same",
            "tracepoint, and the triggers that do the same. What C has instead of ``join()`` is a synthetic event and a third",
            "trigger.", ""] + table(
                ["bpftrace", "", "trigger", "C", "rust_hist"], rows) + load(figures, counts)


def load(figures, counts):
    """What a question adds to a load, beside a program of bpftrace that answers it."""
    sides = (("bpf", "bpftrace"), ("c", "``rhist --backend c runq``"), ("ours", "``rhist --backend module runq``"))
    rows = [[title, spread(figures["runq", side])] for side, title in sides if ("runq", side) in figures]
    if not rows:
        return []
    return ["How long tasks wait for a CPU, asked by :doc:`rhist` and by bpftrace's ``runqlat`` (without the tasks that are",
            f"preempted, which ``rhist runq`` does not count either), in {counts} that a wake-up and its switch take more:", ""
            ] + table(["asked by", "a wake-up"], rows)


def others(figures, counts, head, elsewhere):
    units = {"total": counts, "row": f"{counts} a row", "bytes": "bytes of memory", "hit": counts,
             "lost": "hits in a hundred"}
    says = {"hit": "a hit that is dropped, ", "lost": "lost in a burst of 20,000 new keys, "}
    rows = [[says.get(f.unit, "") + f.text, units[f.unit]] + row(name, c, ours, elsewhere)
            for name, c, ours in pairs(figures) for f in [c or ours]
            if f.unit in units and (f.unit != "hit" or FULL.match(name))]
    return ["Creation, reading, memory, growth, full tables", "==============================================", ""] + table(
        ["what", "in"] + head, rows)


def native(comments, rows):
    out = ["The map alone", "=============", "",
           "Insert or find, and count a hit, in a program on this machine: C's ``tracing_map.c`` and ours, in nanoseconds of a",
           "thread's time for a key, medians of eleven rounds, and as a multiple of the floor: an array of each thread's own in",
           "the same loop. ``shared`` is ours where CPUs share a shard, as on machines with many of them; ``anywhere`` are",
           "keys that are not the numbers from 0.", ""]
    out += [f"* {comment.replace('1 keys', '1 key')}" for comment in comments] + [""]
    out += table(["threads", "keys", "map", "ns", "times the floor", "at most"],
                 [[r["threads"], r["keys"], r["map"], f"{r['ns']} ({r['ns_min']} ... {r['ns_max']})",
                   f"{r['ratio']} ({r['ratio_min']} ... {r['ratio_max']})", r["at_most"].replace("-", "")] for r in rows])
    return out + ["The cost of a key in the map, not of a trigger's hit, which is more:", "", ".. image:: bench-cpus.svg", ""]


if __name__ == "__main__":
    {"check": check, "baseline": baseline, "document": document, "beside": beside}[sys.argv[1]](*sys.argv[2:])
