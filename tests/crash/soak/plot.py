"""Plots the samples of long runs: plot.py SAMPLES.csv… > soak.svg"""

import csv
import pathlib
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 420, 150, 64, 44, 64
# Of a line; of more samples, every second, third, … is drawn.
MAX_POINTS = 240
COLORS = ["#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b8860b", "#555555", "#008b8b", "#d16ba5"]
QUEUES = ["notifications", "attempts", "events", "idempotency_keys"]
SMALL = ["webhooks", "event_counters", "event_sequencers"]
MIB = 1024 * 1024

# The title of a panel, the end of its columns' names, their unit, and the tables it is limited to.
PANELS = [
    ("resident memory, MiB", " rss KiB", 1024, None),
    ("open descriptors", " descriptors", 1, None),
    ("rows of tables with a retention", " rows", 1, QUEUES),
    ("table with its indexes, MiB", " bytes", MIB, QUEUES + ["database", "write-ahead log"]),
    ("dead tuples", " dead tuples", 1, QUEUES),
    ("small tables with their indexes, MiB", " bytes", MIB, SMALL),
]


def read(path):
    """The columns of a file by name; the names of the faults are text."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: values if name == "faults" else [float(value) for value in values]
        for name, values in columns.items()
    }


def series_of(columns, ending, unit, tables):
    """The names and values of the columns that belong to a panel."""
    for name, values in columns.items():
        subject = name.removesuffix(ending)
        if subject != name and (tables is None or subject in tables):
            yield subject, [value / unit for value in values]


def figure(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def text(x, y, content, attributes=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" {attributes}>{content}</text>'


def panel(x, y, columns, title, series):
    """A panel with its axes, a line for each series, a grey line for each fault, and a legend."""
    seconds = columns["seconds"]
    top = max(max(values) for _, values in series) * 1.1 or 1
    scale_x, scale_y = WIDTH / seconds[-1], HEIGHT / top
    svg = [text(x, y - 8, title, 'font-weight="bold"')]
    for second, fault in zip(seconds, columns["faults"]):
        if fault:
            at = x + second * scale_x
            svg.append(f'<path d="M{at:.1f} {y}v{HEIGHT}" stroke="#ddd"><title>{fault}</title></path>')
    svg.append(f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>')
    for share in (0, 0.5, 1):
        at = y + HEIGHT - share * HEIGHT
        svg.append(text(x - 4, at + 4, figure(share * top), 'text-anchor="end"'))
    for part in range(5):
        minutes = seconds[-1] / 60 * part / 4
        at = x + part * WIDTH / 4
        svg.append(text(at, y + HEIGHT + 13, f"{minutes:.3g} min", 'text-anchor="middle"'))
    at = x
    step = max(1, len(seconds) // MAX_POINTS)
    for number, (name, values) in enumerate(series):
        color = COLORS[number % len(COLORS)]
        points = (
            f"{x + second * scale_x:.1f},{y + HEIGHT - value * scale_y:.1f}"
            for second, value in zip(seconds[::step], values[::step])
        )
        svg.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}"/>')
        svg.append(text(at, y + HEIGHT + 28, name, f'fill="{color}"'))
        at += 6 * len(name) + 10
    return svg


def plot(paths):
    svg = []
    bottom = 0
    for number, path in enumerate(paths):
        columns = read(path)
        x = LEFT + number * (WIDTH + LEFT + 16)
        svg.append(text(x, 18, pathlib.Path(path).stem, 'font-weight="bold" font-size="14"'))
        y = TOP
        for title, ending, unit, tables in PANELS:
            series = list(series_of(columns, ending, unit, tables))
            if series:
                svg += panel(x, y, columns, title, series)
                y += HEIGHT + GAP
        bottom = max(bottom, y)
    width = LEFT + len(paths) * (WIDTH + LEFT + 16)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom}" '
        'font-family="sans-serif" font-size="11">'
    )
    background = f'<rect width="{width}" height="{bottom}" fill="white"/>'
    return "\n".join([head, background, *svg, "</svg>"])


if __name__ == "__main__":
    print(plot(sys.argv[1:]))
