# SPDX-License-Identifier: BSD-3-Clause
"""The command line of plx-doctor."""
import argparse
import json
import pathlib
import sys

from . import checks, eeprom, pci, regdump, twins

OK, WARNED, FAILED = 0, 1, 2
VS0_UPSTREAM = 0x360

ABOUT = """Looks at PLX PEX 87xx cards and at twins, and says what they are and what keeps them from use.
Every line is ok, warn (with the command that mends it) or unknown (with the reason).

  plx-doctor                      every card and every twin of this machine
  plx-doctor 0000:af:00.0         one card
  plx-doctor --registers          registers too: they must not belong to a running program
  plx-doctor regs 0000:af:00.0    the registers of a card as text, for the twin's state=<file>
  plx-doctor eeprom FILE          what a serial EEPROM image sets, and whether it makes a card fit
"""
EPILOG = "Exit status: 0 nothing to mend, 1 there are warnings, 2 nothing was found or the call is wrong."


def parser():
    made = argparse.ArgumentParser(
        prog="plx-doctor", description=ABOUT, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    version = (pathlib.Path(__file__).resolve().parents[2] / "VERSION").read_text().strip()
    made.add_argument("--version", action="version", version=f"plx-doctor (ntbmsg) {version}")
    made.add_argument("words", nargs="*", metavar="FUNCTION | regs FUNCTION | eeprom FILE")
    made.add_argument("--registers", action="store_true", help="map BAR0 and read registers of the chip (root)")
    made.add_argument("--json", action="store_true", help="findings as JSON")
    made.add_argument("--sysfs", default="/sys", metavar="DIR", help="another tree than /sys")
    made.add_argument("--mtrr", default="/proc/mtrr", metavar="FILE", help="another list of MTRRs than /proc/mtrr")
    made.add_argument("--run", default="/var/run/dpdk", metavar="DIR", help="where DPDK programs have their sockets")
    return made


def fail(text):
    print(f"plx-doctor: {text}", file=sys.stderr)
    return FAILED


def show(subjects, as_json):
    """@p subjects: (title, findings)"""
    if as_json:
        print(json.dumps([{"name": title, "findings": [vars(f) for f in found]} for title, found in subjects], indent=1))
    else:
        for title, found in subjects:
            print(title)
            for finding in found:
                print(finding.line())
    return WARNED if any(f.state == "warn" for _, found in subjects for f in found) else OK


def upstream_word(function):
    try:
        return regdump.Csr(function).read32(VS0_UPSTREAM)
    except regdump.NoRegisters as error:
        print(f"plx-doctor: {error}", file=sys.stderr)
        return None


def card(function, everything, options):
    word = upstream_word(function) if options.registers else None
    mtrr = pci.read_text(options.mtrr, 1 << 16) or ""
    name = pci.NT_IDS.get(function.ids[1], "renamed by its EEPROM")
    return f"card {function.name} ({name})", checks.examine(function, everything, word, mtrr)


def functions(options):
    try:
        return pci.functions(options.sysfs)
    except OSError:
        return []


def check(options, wanted):
    everything = functions(options)
    missing = sorted(set(wanted) - {f.name for f in everything})
    if missing:
        return fail(f"there is no PCI function {missing[0]}: expected a name as in lspci -D")
    chosen = [f for f in everything if (f.name in wanted if wanted else f.is_nt())]
    subjects = [card(f, everything, options) for f in chosen]
    if not wanted:
        for path in twins.sockets(options.run):
            subjects += twins.examine(path)
    if not subjects:
        return fail("no PLX NT function and no twin in sight (a card behind a link that is down does not show)")
    return show(subjects, options.json)


def regs(options, name):
    function = next((f for f in functions(options) if f.name == name), None)
    if function is None:
        return fail(f"there is no PCI function {name}: expected a name as in lspci -D")
    try:
        for line in regdump.dump(function, regdump.Csr(function)):
            print(line)
    except regdump.NoRegisters as error:
        return fail(str(error))
    return OK


def explain(options, path):
    try:
        with open(path, "rb") as file:
            image = eeprom.decode(file.read(eeprom.MOST_BYTES + 1))
    except OSError as error:
        return fail(f"{path}: {error.strerror}")
    except eeprom.BadImage as error:
        return fail(f"{path}: {error}")
    if not options.json:
        for record in image.records:
            print(f"{record.where:<12} {record.offset:03x} {record.value:08x} {record.name()}")
        print(f"crc as stored: {'missing' if image.crc is None else f'{image.crc:08x}'} (not checked)")
    return show([("a card with this image", eeprom.judge(image))], options.json)


def main(arguments):
    options = parser().parse_args(arguments)
    words = options.words
    if words and words[0] in ("regs", "eeprom"):
        if len(words) != 2:
            return fail(f"{words[0]} wants one {'function' if words[0] == 'regs' else 'file'}")
        return regs(options, words[1]) if words[0] == "regs" else explain(options, words[1])
    return check(options, words)
