# SPDX-License-Identifier: BSD-3-Clause
"""Line plots and histograms as SVG. Colours are classes of the page's style sheet, so that they follow the
reader's colour scheme; every mark carries its figure as a title, which browsers show when pointed at."""
import dataclasses
import html
import math

WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 10, 44
LEAST_TICK_GAP = 34


@dataclasses.dataclass
class Series:
    label: str
    points: list  # (x, y, text), or (x, y, low, high, text)
    style: str = ""  # classes of the style sheet
    marker: str = "circle"
    hollow: frozenset = frozenset()  # where marks are hollow: x


class Scale:
    """From values to pixels, along one axis."""

    def __init__(self, low, high, start, end, logarithmic):
        self.logarithmic = logarithmic
        if logarithmic:
            low = max(low, high * 1e-9, 1e-9)
        if low >= high:
            low, high = (low / 2, low * 2) if logarithmic else (low - 1, low + 1)
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value):
        if self.logarithmic:
            part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + min(max(part, 0), 1) * (self.end - self.start)

    def ticks(self):
        """Round values, few enough to be read."""
        if not self.logarithmic:
            return self.linear_ticks()
        decades = math.log10(self.high / self.low)
        steps = (1, 1.5, 2, 3, 5, 7) if decades < 0.8 else (1, 2, 5) if decades < 2.5 else (1,)
        first = math.floor(math.log10(self.low))
        values = [step * 10.0 ** k for k in range(first, first + int(decades) + 3) for step in steps]
        return [value for value in values if self.low <= value <= self.high * 1.0001] or self.linear_ticks()

    def linear_ticks(self):
        rough = (self.high - self.low) / 5
        power = 10 ** math.floor(math.log10(rough))
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
        value = math.ceil(self.low / step) * step
        found = []
        while value <= self.high * 1.0001:
            found.append(value)
            value += step
        return found


def padded(values, logarithmic, from_zero=False):
    low, high = min(values), max(values)
    if logarithmic:
        return low / 1.25, high * 1.35
    return (0 if from_zero else low), high * 1.06


def text(x, y, words, style, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{html.escape(words)}</text>'


def x_axis(scale, ticks, label, form):
    parts, last = [], -1e9
    for value in ticks:
        x = scale(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        if x - last >= LEAST_TICK_GAP:
            parts.append(text(x, HEIGHT - BOTTOM + 16, form(value), "tick"))
            last = x
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, label, "label"))
    return parts


def y_axis(scale, form):
    parts = []
    for value in scale.ticks():
        y = scale(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(text(LEFT - 6, y + 4, form(value), "tick", "end"))
    return parts


def mark(kind, x, y, title, style):
    inner = f"<title>{html.escape(title)}</title>"
    if kind == "square":
        return f'<rect class="mark {style}" x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6">{inner}</rect>'
    if kind == "triangle":
        return (f'<polygon class="mark {style}" points="{x:.1f},{y - 4:.1f} {x - 4:.1f},{y + 3:.1f} '
                f'{x + 4:.1f},{y + 3:.1f}">{inner}</polygon>')
    return f'<circle class="mark {style}" cx="{x:.1f}" cy="{y:.1f}" r="3.2">{inner}</circle>'


def line(series, x_of, y_of):
    points = sorted(series.points)
    path = " ".join(f"{x_of(p[0]):.1f},{y_of(p[1]):.1f}" for p in points)
    parts = [f'<polyline class="line {series.style}" points="{path}"/>']
    for point in points:
        x, y = x_of(point[0]), y_of(point[1])
        if len(point) == 5 and point[3] > point[2]:
            parts.append(f'<line class="spread {series.style}" x1="{x:.1f}" x2="{x:.1f}" '
                         f'y1="{y_of(point[2]):.1f}" y2="{y_of(point[3]):.1f}"/>')
        parts.append(mark(series.marker, x, y, f"{series.label}: {point[-1]}",
                          series.style + (" hollow" if point[0] in series.hollow else "")))
    return parts


def frame(name, parts, height=HEIGHT):
    return (f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(name, quote=True)}">'
            + "".join(parts) + "</svg>")


def line_plot(name, all_series, x_label, x_form, y_form, x_ticks=None, x_log=True, y_log=True):
    """@param x_ticks  the values to be named; round ones otherwise"""
    points = [point for series in all_series for point in series.points]
    lows = [point[2] if len(point) == 5 else point[1] for point in points]
    highs = [point[3] if len(point) == 5 else point[1] for point in points]
    x_of = Scale(*padded([point[0] for point in points], x_log), LEFT, WIDTH - RIGHT, x_log)
    y_of = Scale(*padded(lows + highs, y_log, True), HEIGHT - BOTTOM, TOP, y_log)
    parts = x_axis(x_of, x_ticks or x_of.ticks(), x_label, x_form) + y_axis(y_of, y_form)
    # What stands first is drawn last, on top.
    for series in reversed(all_series):
        parts += line(series, x_of, y_of)
    return frame(name, parts)


def bar_plot(name, bars, form):
    """@param bars  [(label, value, low, high, style)]: from zero to the right, one below the other"""
    height, left = 30, 130
    x_of = Scale(0, max(high for _, _, _, high, _ in bars) * 1.3, left, WIDTH - RIGHT, False)
    parts = []
    for number, (label, value, low, high, style) in enumerate(bars):
        y = TOP + number * height
        middle = y + height / 2 - 3
        parts.append(text(left - 8, middle + 4, label, "label", "end"))
        parts.append(f'<rect class="way {style}" x="{left}" y="{y:.1f}" width="{max(x_of(value) - left, 0.6):.1f}" '
                     f'height="{height - 6}"><title>{html.escape(f"{label}: {form(value)}")}</title></rect>')
        if high > low:
            parts.append(f'<line class="limit spread" x1="{x_of(low):.1f}" x2="{x_of(high):.1f}" '
                         f'y1="{middle:.1f}" y2="{middle:.1f}"/>')
        parts.append(text(x_of(max(value, high)) + 6, middle + 4, form(value), "tick", "start"))
    return frame(name, parts, TOP + len(bars) * height + TOP)


def histogram_plot(name, buckets, marks, x_form):
    """@param buckets  [(from, to, count)]   @param marks  [(name, value)]: upright lines"""
    total = sum(count for _, _, count in buckets)
    # Buckets differ in width: what is drawn is their part of all, per width on the logarithmic axis.
    bars = [(low, high, count / total / math.log(high / max(low, high / 2))) for low, high, count in buckets]
    x_of = Scale(*padded([max(b[0], b[1] / 2) for b in bars] + [b[1] for b in bars] + [v for _, v in marks], True),
                 LEFT, WIDTH - RIGHT, True)
    y_of = Scale(0, max(bar[2] for bar in bars) * 1.12, HEIGHT - BOTTOM, TOP + 14, False)
    parts = x_axis(x_of, x_of.ticks(), "round trip", x_form)
    for (low, high, height), (_, _, count) in zip(bars, buckets):
        x0, x1, y = x_of(max(low, high / 2)), x_of(high), y_of(height)
        title = f"{x_form(low)} to {x_form(high)}: {count} of {total}"
        parts.append(f'<rect class="bar" x="{x0:.1f}" y="{y:.1f}" width="{max(x1 - x0, 0.6):.2f}" '
                     f'height="{HEIGHT - BOTTOM - y:.1f}"><title>{html.escape(title)}</title></rect>')
    return frame(name, parts + upright(marks, x_of, x_form))


def upright(marks, x_of, form):
    parts, last = [], -1e9
    for name, value in sorted(marks, key=lambda m: m[1]):
        x = x_of(value)
        parts.append(f'<line class="upright" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP + 14}" y2="{HEIGHT - BOTTOM}">'
                     f'<title>{html.escape(f"{name}: {form(value)}")}</title></line>')
        if x - last > 44:
            anchor = "end" if x > WIDTH - 60 else "middle"
            parts.append(text(x, TOP + 8, name, "tick", anchor))
            last = x
    return parts
