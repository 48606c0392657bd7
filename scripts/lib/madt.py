# SPDX-License-Identifier: GPL-2.0
"""Writes an ACPI table with possible CPUs that are never online, for scripts/vm --possible.

usage: madt.py CPUS >TABLE

The table "APIC" of ACPI 6.5, 5.2.12, version 1, for QEMU's machine q35.
"""

import struct
import sys


def table(cpus):
    """The table, whose bytes add up to nothing."""
    entries = [struct.pack("<BBBBI", 0, 8, cpu, cpu, 1) for cpu in range(cpus)]
    entries.append(struct.pack("<BBBBII", 1, 12, 0, 0, 0xFEC00000, 0))
    # The timer's interrupt is at pin 2; those of PCI are by level.
    entries += [struct.pack("<BBBBIH", 2, 10, 0, irq, pin, flags)
                for irq, pin, flags in [(0, 2, 0)] + [(irq, irq, 0xD) for irq in (5, 9, 10, 11)]]
    entries.append(struct.pack("<BBBHB", 4, 6, 0xFF, 0, 1))
    body = struct.pack("<II", 0xFEE00000, 1) + b"".join(entries)

    def whole(check):
        head = struct.pack("<4sIBB6s8sI4sI", b"APIC", 36 + len(body), 1, check, b"BOCHS ", b"BXPC    ", 1, b"BXPC", 1)
        return head + body

    return whole(-sum(whole(0)) & 0xFF)


if __name__ == "__main__":
    sys.stdout.buffer.write(table(int(sys.argv[1])))
