# SPDX-License-Identifier: BSD-3-Clause
"""Two small guests in QEMU, joined by a wire: a kernel of the distribution as it comes, and a memory of files made on the fly of
this machine's own programs and the libraries that they need. Nothing of it has to be installed in a guest, and none has a disk."""
import lzma
import os
import pathlib
import platform
import re
import stat
import subprocess
import time

from ntb_sockets.programs import UNPACKED, find, libraries

from . import pair

EMULATOR, SHELL = "qemu-system-x86_64", "busybox"
PACKAGES = {EMULATOR: "qemu-system-x86", SHELL: "busybox-static"}
# Where tools/compare --install unpacks a kernel; or one is installed.
KERNELS = (UNPACKED.parents[1] / "kernel", pathlib.Path("/"))
MODULE_ENDS = (".ko", ".ko.xz")
RXE = "kernel/drivers/infiniband/sw/rxe/rdma_rxe"
# rdma_rxe asks for its checksum by name, so no module depends on that. Some may be built in.
MODULES = ("crc32_generic", "crc32_pclmul", "virtio_pci", "virtio_net", "rdma_rxe", "ib_uverbs")
MEMORY_MIB = 256
UP = "guest: up"
# From the start of QEMU until a guest has said so. Where the machine is itself a guest, /dev/kvm may open and still carry none.
UP_SECONDS = {"kvm": 15, "tcg": 120}
CPU_MODELS = {"kvm": "host", "tcg": "max"}
LDD_SECONDS = 10
WIRE = "wire"


class NotUp(pair.Failed):
    """A guest has not started."""


def kernel(roots=KERNELS):
    """The newest kernel with rdma_rxe and the folder of its modules, or None."""
    found = []
    for root in roots:
        for image in root.glob("boot/vmlinuz-*"):
            version = image.name.removeprefix("vmlinuz-")
            for modules in (root / "lib/modules" / version, root / "usr/lib/modules" / version):
                if os.access(image, os.R_OK) and any((modules / f"{RXE}{end}").exists() for end in MODULE_ENDS):
                    found.append(([int(number) for number in re.findall(r"\d+", version)], image, modules))
    return max(found)[1:] if found else None


def missing(find_program=find, roots=KERNELS):
    """Why there can be no guests here, or an empty text."""
    if platform.machine() != "x86_64":
        return "guests are of x86-64 only"
    packages = [package for program, package in PACKAGES.items() if find_program(program) is None]
    if kernel(roots) is None:
        packages.append("linux-image-amd64")
    # A kernel that is installed would be the next one to start, so it is better unpacked.
    return f"{' '.join(packages)}: not there; run: tools/compare --verbs --install" if packages else ""


# ---- kernel modules

def module_bytes(path):
    raw = path.read_bytes()
    return lzma.decompress(raw) if path.name.endswith(".xz") else raw


def modules_in_order(folder, wanted=MODULES):
    """(name, bytes) of the wanted modules and what they depend on, each after its own needs. What is not there is built in."""
    paths = {path.name.partition(".")[0].replace("-", "_"): path for path in folder.rglob("*.ko*") if path.name.endswith(MODULE_ENDS)}
    made = {}

    def add(name):
        if name in made or name not in paths:
            return
        raw = module_bytes(paths.pop(name))
        needs = re.search(rb"\0depends=([^\0]*)\0", raw)
        for need in filter(None, needs[1].decode(errors="replace").split(",")) if needs else ():
            add(need.replace("-", "_"))
        made[name] = raw
    for name in wanted:
        add(name)
    return list(made.items())


# ---- programs and libraries

def run_ldd(path):
    return subprocess.run(["ldd", str(path)], env={**os.environ, **libraries(), "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LDD_SECONDS, check=False).stdout


def libraries_of(paths, ldd=run_ldd):
    """{path in the guest: path here}. All of them in one folder, and the loader where programs name it."""
    made = {}
    for path in paths:
        text = ldd(path)
        if "not found" in text:
            raise pair.Failed(f"{path}: {next(line.strip() for line in text.splitlines() if 'not found' in line)}")
        for name, there, loader in re.findall(r"^\s*(?:(\S+) => (/\S+)|(/\S+)) \(", text, re.M):
            made[loader or f"/lib/{name}"] = pathlib.Path(loader or there)
    # The C library loads it by itself, to end a thread.
    threads = pathlib.Path(made.get("/lib/libc.so.6", "/none")).with_name("libgcc_s.so.1")
    if threads.exists():
        made["/lib/libgcc_s.so.1"] = threads
    return made


# ---- the archive

def archive(files):
    """{path: (mode, bytes)} as the kernel takes it: cpio, "newc", folders before what is in them."""
    folders = {str(folder) for path in files for folder in pathlib.PurePosixPath(path).parents} - {"/"}
    entries = [(folder, stat.S_IFDIR | 0o755, b"") for folder in sorted(folders | {"/dev", "/proc", "/sys", "/tmp"})]
    entries += [(path, stat.S_IFREG | mode, body) for path, (mode, body) in sorted(files.items())]
    return b"".join([*(entry(number, path.lstrip("/"), mode, body) for number, (path, mode, body) in enumerate(entries, 1)),
                     entry(0, "TRAILER!!!", 0, b"")])


def entry(number, name, mode, body):
    words = (number, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(name.encode()) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % word for word in words) + name.encode() + b"\0"
    return padded(head) + padded(body)


def padded(data):
    return data + b"\0" * (-len(data) % 4)


# ---- the guests

def accelerators():
    """What may carry guests here, the fastest first."""
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return ("tcg",)
    return ("kvm", "tcg")


def command(side, accelerator, image, folder):
    """One CPU, a console that is the standard output, and a wire, at the other end of which is the other guest."""
    return [find(EMULATOR), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35",
            "-accel", accelerator, "-cpu", CPU_MODELS[accelerator], "-smp", 1, "-m", MEMORY_MIB,
            "-kernel", image, "-initrd", folder / "initramfs", "-append", f"console=ttyS0 loglevel=1 panic=-1 side={side}",
            "-serial", "stdio", "-netdev", f"stream,id=wire,server={'on' if side else 'off'},addr.type=unix,addr.path={folder / WIRE}",
            "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:00:00:{side:02x},romfile="]


def start(processes, accelerator, image, files, before):
    """Both guests, up. @param before the words before those of each side @return the numbers of side 0 and side 1"""
    (processes.folder / "initramfs").write_bytes(archive(files))
    numbers = {}
    for side in (1, 0):
        # QEMU aborts where the kernel refuses what it asks of KVM.
        numbers[side] = processes.start([*before[side], "prlimit", "--core=0", *command(side, accelerator, image, processes.folder)])
        if side == 1:
            try:
                processes.await_file(WIRE, numbers[1], UP_SECONDS[accelerator])
            except pair.Failed as error:
                raise NotUp(str(error)) from error
    end = time.monotonic() + UP_SECONDS[accelerator]
    while not all(UP in processes.text("out", number) for number in numbers.values()):
        ended = [number for number in numbers.values() if not processes.running(number)]
        if ended or time.monotonic() > end:
            raise NotUp(ended and processes.why(ended[0]) or
                        f"a guest does not start within {UP_SECONDS[accelerator]} s ({accelerator.upper()})")
        pair.Signals.check()
        time.sleep(0.02)
    return numbers[0], numbers[1]
