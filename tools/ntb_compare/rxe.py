# SPDX-License-Identifier: BSD-3-Clause
"""Soft-RoCE, the kernel's RDMA in software over UDP, by perftest between two guests in QEMU: all of it is emulated in software,
which its rows say. They show what a program of verbs gets where there is nothing else to be had, not what a network gives."""
import pathlib
import re

from ntb_report import model
from ntb_sockets.programs import UNPACKED, find

from . import guests, pair, programs, testpmd, verbs

DEVICE, ADDRESSES = "rxe0", ("10.213.0.1", "10.213.0.2")
# A page as the largest packet of RDMA, with its headers: the next smaller one that a network may have is a quarter of it.
MTU = 4200
PROVIDER = "librxe-rdmav*.so"
RUN_SECONDS, STEP_SECONDS, TRIES = 300, 60, 20
# An emulated CPU takes milliseconds for a message, and the count of perftest is fixed before it starts.
LEAST, MOST, MOST_BYTES = 8, 300, 4 << 20
FIRST_PORT = 20000
STEP, END = "guest: step", "guest: end"

# Each step has a port, where its server starts again until it is asked: so a client that comes too early, or one that gives up
# as perftest does where the clock is not steady, tries again.
INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin LD_LIBRARY_PATH=/lib
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*; do insmod "$module"; done
ifconfig lo 127.0.0.1 up
ifconfig eth0 10.213.0.$((side + 1)) netmask 255.255.255.0 mtu {MTU} up
rdma link add {DEVICE} type rxe netdev eth0
echo "{guests.UP}"
step() {{ timeout {STEP_SECONDS} "$2" -d {DEVICE} -x 1 -F -s "$3" -n "$4" -p "$1" $5 </dev/null >/tmp/said"$1" 2>&1; }}
serve() {{ while :; do step "$@"; sleep 0.1; done; }}
while read -r port program size count; do
    if [ "$side" = 1 ]; then
        serve "$port" "$program" "$size" "$count" &
        continue
    fi
    echo "{STEP} $program $size"
    tries=0
    until step "$port" "$program" "$size" "$count" {ADDRESSES[1]} && grep -q "^ $size " /tmp/said"$port"; do
        tries=$((tries + 1))
        [ $tries -lt {TRIES} ] || break
        sleep 0.3
    done
    cat /tmp/said"$port"
done </steps
[ "$side" = 0 ] || wait
echo "{END}"
poweroff -f
"""


def provider():
    """The library of verbs for such a device, or None."""
    return next((path for folder in (UNPACKED, pathlib.Path("/usr"))
                 for path in sorted(folder.glob(f"lib/*-linux-gnu/libibverbs/{PROVIDER}"))), None)


def count_of(size):
    return max(LEAST, min(MOST, MOST_BYTES // size))


def steps_of(operation, sizes):
    """A line for each run: port, program, size, count."""
    runs = [(f"ib_{operation}_{what}", size) for size in sizes for what in ("lat", "bw")]
    return "".join(f"{FIRST_PORT + number} {program} {size} {count_of(size)}\n" for number, (program, size) in enumerate(runs))


def files_of(operation, sizes, modules, ldd=guests.run_ldd, find_program=find, library=None):
    """What is in a guest: {path: (mode, bytes)}."""
    library = library or provider()
    here = {f"/bin/{name}": find_program(name) for name in (guests.SHELL, "rdma", f"ib_{operation}_lat", f"ib_{operation}_bw")}
    here[f"/usr/lib/{library.parent.parent.name}/libibverbs/{library.name}"] = library
    here = {**guests.libraries_of(here.values(), ldd), **here}
    made = {path: (0o755, pathlib.Path(source).read_bytes()) for path, source in here.items()}
    made.update({f"/modules/{number:02}-{name}.ko": (0o644, raw) for number, (name, raw) in enumerate(modules)})
    made.update({"/etc/libibverbs.d/rxe.driver": (0o644, b"driver rxe\n"), "/init": (0o755, INIT.encode()),
                 "/steps": (0o644, steps_of(operation, sizes).encode())})
    return made


def parts_of(text):
    """{(program, size): what it said} of a client's console."""
    # The deviation, which is not asked for, is that of a clock that may jump.
    text = re.sub(r"-?\bnan\b", "0", text.replace("\r", ""))
    if END not in text:
        raise pair.Failed(f"the guest does not come to its end: {pair.last_line(text)}")
    return {(program, int(size)): said for program, size, said in
            re.findall(rf"^{STEP} (\S+) (\d+)\n(.*?)(?=^guest: )", text, re.M | re.S)}


class SoftRoce:
    """ib_OPERATION_lat and ib_OPERATION_bw, all sizes in one pair of guests, each guest on its host's CPU."""
    kind, read = "messages", False
    rounds = 3  # guests take seconds to start, and emulated ones as many for each run
    accelerator = None  # what has carried guests in this process, for all operations

    def __init__(self, operation):
        self.operation, self.name = operation, f"rxe-{operation}"

    @property
    def label(self):
        how = (SoftRoce.accelerator or "kvm or tcg").replace("kvm", "KVM").replace("tcg", "TCG")
        return f"Soft-RoCE, {self.operation}: software emulation (QEMU, {how})"

    def missing(self, settings):
        why = guests.missing()
        if why:
            return why
        lacks = next((name for name in (f"ib_{self.operation}_lat", "rdma") if find(name) is None), None)
        if lacks:
            return f"{lacks} is not there; run: tools/setup"
        if provider() is None:
            return "apt-get install ibverbs-providers"
        return "" if (settings.programs / "peer_limit").exists() else "peer_limit was not built"

    def sizes(self, wanted):
        return wanted

    def run(self, sizes, settings):
        place = testpmd.probe(settings)
        candidates = [SoftRoce.accelerator] if SoftRoce.accelerator else list(guests.accelerators())
        while True:
            try:
                text = self.take(candidates[0], sizes, settings)
                break
            except guests.NotUp:
                candidates.pop(0)
                if not candidates:
                    raise
        return self.lines(text, sizes, place)

    def take(self, accelerator, sizes, settings):
        """The client's console."""
        image, modules = guests.kernel()
        files = files_of(self.operation, sizes, guests.modules_in_order(modules))
        before = [[*verbs.first_of(settings), "taskset", "-c", cpu] for cpu in settings.cpus]
        with pair.group() as processes:
            client, server = guests.start(processes, accelerator, image, files, before)
            SoftRoce.accelerator = accelerator
            programs.await_fact(lambda: not processes.running(client), processes, server, RUN_SECONDS,
                                "the guests do not come to their end")
            return processes.text("out", client)

    def lines(self, text, sizes, place):
        parts = parts_of(text)
        made = []
        for size in sizes:
            said = [parts.get((f"ib_{self.operation}_{what}", size), "") for what in ("lat", "bw")]
            trips, messages = verbs.read_latency(said[0], size, self.operation == "read"), verbs.read_bandwidth(said[1], size)
            made.append({**verbs.line_of(size, trips, messages, place), "device": f"{model.EMULATED_ON}, {SoftRoce.accelerator.upper()}"})
        return made


KNOWN = tuple(SoftRoce(operation) for operation in ("send", "write", "read"))
