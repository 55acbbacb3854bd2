# SPDX-License-Identifier: BSD-3-Clause
"""Results as our programs write them (doc/results.md), made up: for tests of what reads them."""

import math

QUEUE = ("queue", "received", "none")
# (operation, completion, region) of one-sided operations
ONE_SIDED = (("write", "done", "direct"), ("read", "done", "served"), ("fetch-add", "done", "served"))


def latency(median, count=50000):
    """Times around a median, in nanoseconds: a log-normal distribution in buckets of an eighth of its width."""
    width, buckets = median / 64, []
    for step in range(-16, 33):
        part = math.exp(-(step / 8) ** 2 * (1 if step < 0 else 0.25))
        low = median + step * width
        buckets.append([low, low + width, max(1, int(part * count / 20))])
    counted = sum(bucket[2] for bucket in buckets)

    def quantile(part):
        left = part * counted
        for low, _, number in buckets:
            left -= number
            if left <= 0:
                return low
        return buckets[-1][1]

    return {"count": counted, "min": buckets[0][0], "mean": median * 1.01, "max": buckets[-1][1],
            **{name: quantile(part) for name, part in
               (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("p99_99", 0.9999))},
            "histogram": buckets}


def point(mode, operation=QUEUE, size=64, repeat=0):
    name, completion, region = operation
    one_way = mode == "rate"
    messages = (16000000 if one_way else 1000000) * 64 // max(size, 64)
    return {
        "mode": mode, "operation": name, "device": "raw_plx_ntb0", "size": size, "mix": "fixed",
        "burst": 32 if one_way else 1, "in_flight": 0 if one_way else 1, "queues": 1,
        "offered_rate": 1000000 if mode == "load" else 0, "copy": "cpu", "copy_mode": "auto", "build": "mbuf",
        "completion": completion, "region": region, "lcores": 1, "server_lcores": 1, "pattern": "counter",
        "verified": False, "clock": "on", "repeat": repeat, "complete": True, "error": "",
        "rate_met": True, "cpu_share": 0.999, "disturbed": "", "seconds": 0.5,
        "messages": messages, "bytes": messages * size, "messages_per_second": messages * 2,
        "bytes_per_second": messages * size * 2,
        "flows": [{"name": "out" if one_way else "echo", "queue": 0, "cpu": 1, "messages": messages,
                   "bytes": messages * size, "seconds": 0.5}],
        "round_trip_ns": None if one_way else latency(350 + size / 8),
        "round_trip_from_intended_ns": latency(360 + size / 8) if mode == "load" else None,
        "placement": {"class": "other", "before_ns": 247, "after_ns": 245},
        "checks": {"lost": 0, "corrupt": 0, "out_of_order": 0},
        "counters": {"tx_full": 0, "rx_nombuf": 0, "captured": 0, "served": 0},
    }


def result(points, skipped=()):
    return {
        "format": "ntbmsg-result", "version": 5, "complete": True, "interrupted": False, "error": "",
        "started": "2026-11-21T12:50:00Z", "seconds": 6.1,
        "program": {"name": "ntbmsg-pktgen", "commit": "cbaf2232bc29+", "compiler": "12.2.0",
                    "dpdk": "DPDK 22.11.11",
                    "command": "ntbmsg-pktgen -l 1 --in-memory --no-pci --vdev=raw_plx_ntb0,cable=/tmp/cable -- "
                               "--size 64,1024"},
        "machine": {"cpu": "Some Processor", "kernel": "Linux 6.1", "cpus": 2, "load_1min": 0.4,
                    "huge_pages_total": 192, "huge_pages_free": 166,
                    "cores": {"client": 1, "server": 0, "same_machine": True}},
        "devices": [{"name": "raw_plx_ntb0", "platform": "twin", "burst_functions": "plain/avx512",
                     "pcie_generation": 3, "lanes": 8, "ring_lines": 4096, "inline_max": 256,
                     "max_message": 4160256, "peer_max_message": 4160256, "dma_min": 0}],
        "options": {"mode": "latency,rate,load", "size": "64,1024", "seconds": "0.5"},
        "points": list(points), "skipped": list(skipped),
    }


def of_queues():
    """Round trips, rates and load over two sizes, twice."""
    return result([point(mode, size=size, repeat=repeat) for repeat in range(2) for size in (64, 1024)
                   for mode in ("latency", "rate", "load")],
                  [{"what": "size 16777216", "why": "the peer takes 4160256 bytes"}])


def of_operations():
    """All operations, once."""
    return result(point(mode, operation) for mode in ("latency", "load", "rate") for operation in (QUEUE, *ONE_SIDED))
