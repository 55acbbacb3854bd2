# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as a reader wants them."""

PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))
TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))


def digits(value):
    """Three of them, without an exponent."""
    if value == 0:
        return "0"
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text else text


def scaled(value, steps, unit=""):
    for step, prefix in steps:
        if abs(value) >= step * 0.9995 or step == steps[-1][0]:
            return f"{digits(value / step)} {prefix}{unit}".strip()
    return ""


def nanoseconds(value):
    return scaled(value, TIMES)


def per_second(value):
    return scaled(value, PREFIXES, "msg/s")


def bytes_per_second(value):
    return scaled(value, PREFIXES, "B/s")


def size(value):
    for step, prefix in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if value >= step and value % step == 0:
            return f"{value // step} {prefix}B"
    return f"{value} B"


def short_size(value):
    return size(value).replace(" ", "").removesuffix("B") or "0"


def part(value):
    return f"{value * 100:.1f} %"
