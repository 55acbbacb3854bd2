# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as a result file (doc/results.md), written after every round."""
import datetime
import os
import pathlib
import platform
import subprocess

LEAST_RUNNING = 0.97
NO_CHECKS = {"lost": 0, "corrupt": 0, "out_of_order": 0}
NO_COUNTERS = {"tx_full": 0, "rx_nombuf": 0, "captured": 0, "served": 0}


def first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""


def file_value(path, key):
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")


def machine(cpus):
    return {
        "cpu": file_value("/proc/cpuinfo", "model name"),
        "kernel": f"{platform.system()} {platform.release()}",
        "cpus": os.cpu_count() or 1,
        "load_1min": round(os.getloadavg()[0], 2),
        "huge_pages_total": int(file_value("/proc/meminfo", "HugePages_Total") or 0),
        "huge_pages_free": int(file_value("/proc/meminfo", "HugePages_Free") or 0),
        "cores": {"client": cpus[0], "server": cpus[1], "same_machine": True},
    }


def header(command, commit, cpus, options):
    now = datetime.datetime.now(datetime.timezone.utc)
    dpdk = first_line(["pkg-config", "--modversion", "libdpdk"])
    return {
        "format": "ntbmsg-result", "version": 5, "complete": False, "interrupted": False, "error": "",
        "started": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "seconds": 0,
        "program": {"name": "compare", "command": command, "commit": commit,
                    "compiler": first_line(["c++", "--version"]), "dpdk": f"DPDK {dpdk}" if dpdk else ""},
        "machine": machine(cpus), "devices": [], "options": options, "points": [], "skipped": [],
    }


def disturbance(line):
    """What keeps a line from counting, or an empty text."""
    if not line["stayed"]:
        return "the CPUs were moved meanwhile"
    if line["ran"] < LEAST_RUNNING:
        return f"other programs had the CPU for {1 - line['ran']:.0%} of the time"
    return ""


def point(peer, line, repeat, mode, count, latency):
    seconds = count["seconds"]
    size = line["bytes"]
    rate = count["count"] / seconds if seconds > 0 else 0
    trouble = disturbance(line)
    return {
        "mode": mode, "operation": peer.name, "device": line.get("device", ""), "size": size, "mix": "fixed",
        "burst": 1 if mode == "latency" else max(1, min(32, 65536 // size)), "in_flight": 1 if mode == "latency" else 0,
        "queues": 1, "offered_rate": 0, "copy": "cpu", "copy_mode": "cpu", "build": "mbuf",
        "completion": "received", "region": "direct" if peer.kind == "put" else "none", "lcores": 1, "server_lcores": 1,
        "pattern": "every line read" if peer.read else "not read", "verified": False,
        "clock": "on" if latency else "off", "repeat": repeat, "complete": not trouble, "error": trouble,
        "rate_met": True, "cpu_share": max(0, min(1, line["ran"])), "disturbed": trouble, "seconds": seconds, "messages": count["count"], "bytes": count["count"] * size,
        "messages_per_second": rate, "bytes_per_second": rate * size,
        "flows": [{"name": "echo" if mode == "latency" else "out", "queue": 0, "cpu": -1, "messages": count["count"],
                   "bytes": count["count"] * size, "seconds": seconds}],
        "round_trip_ns": latency, "round_trip_from_intended_ns": None,
        "placement": {"class": line["class"], "before_ns": line["probe_ns"][0], "after_ns": line["probe_ns"][1]},
        "checks": NO_CHECKS, "counters": NO_COUNTERS,
    }


def points(peer, line, repeat):
    """Of one size: round trips without and with a clock, and one way."""
    made = []
    if line["round_trips"]["count"]:
        made.append(point(peer, line, repeat, "latency", line["round_trips"], None))
    timed = line["latency"]
    if timed:
        count = {"count": timed["count"], "seconds": timed["count"] * timed["mean"] / 1e9}
        made.append(point(peer, line, repeat, "latency", count, timed))
    if line["messages"]["count"]:
        made.append(point(peer, line, repeat, "rate", line["messages"], None))
    return made
