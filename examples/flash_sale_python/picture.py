"""The picture: who held the lock when, one row per worker, one bar per hold."""

import math
from html import escape

from report import Report
from sale import Outcome, Turn

WIDTH, LEFT, RIGHT = 1200, 90, 30
PLOT = WIDTH - LEFT - RIGHT
# Turns shown in the closer look.
CLOSE = 60
# More bars are joined, so that a sale of any size makes a picture that a browser likes.
MAX_BARS = 10_000

HOLDS, WAITS, DIED, LOST, INK = "#2563eb", "#cbd5e1", "#dc2626", "#f59e0b", "#1e293b"
COLOURS = {Outcome.CRASHED: DIED, Outcome.LOST: LOST, Outcome.REFUSED: LOST}


def draw(report: Report, turns: list[Turn]) -> str:
    """Draws turns that are sorted by time."""
    held = [turn for turn in turns if turn.outcome is not Outcome.SOLD_OUT]
    begin = max(0, len(held) - CLOSE) // 2
    closer = held[begin : begin + CLOSE]
    whole = Panel("The whole sale", report.workers, 92, held)
    close = Panel("A closer look at its middle", report.workers, whole.bottom, closer)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {close.bottom:.0f}"'
        f' width="{WIDTH}" height="{close.bottom:.0f}" font-family="sans-serif" font-size="12"'
        f' fill="{INK}">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        text(LEFT, 28, report.title, 'font-size="18" font-weight="bold"'),
        text(LEFT, 48, report.summary(), 'font-size="13"'),
        *legend(report.locked),
        *whole.frame(),
        *whole.joined_bars(held),
        *whole.accidents(turns),
        *close.frame(),
        *close.single_bars(closer),
        "</svg>\n",
    ]
    return "\n".join(parts)


def legend(locked: bool) -> list[str]:
    entries = [(HOLDS, "reads the stock, then writes it (without the lock)")]
    if locked:
        entries = [
            (HOLDS, "holds the lock"),
            (WAITS, "waits for it (closer look)"),
            (DIED, "was killed"),
            (LOST, "lost its lease"),
        ]
    parts = []
    for number, (colour, meaning) in enumerate(entries):
        x = LEFT + 190 * number
        parts += [bar(x, 59, 12, 12, colour), text(x + 18, 69, meaning)]
    return parts


class Panel:
    """A part of the picture: a title, a row per worker, an axis in milliseconds."""

    def __init__(self, title: str, workers: int, top: float, turns: list[Turn]) -> None:
        self.title, self.workers, self.top = title, workers, top
        self.row = min(max(400 / workers, 4), 24)
        self.height = self.row * 0.8
        self.rows_top = top + 22
        self.rows_bottom = self.rows_top + self.row * workers
        self.bottom = self.rows_bottom + 56
        self.start = min((turn.start for turn in turns), default=0.0)
        self.end = max(max((turn.end for turn in turns), default=0.0), self.start + 0.001)

    def x(self, time: float) -> float:
        share = (time - self.start) / (self.end - self.start)
        return LEFT + PLOT * min(max(share, 0), 1)

    def y(self, worker: int) -> float:
        return self.rows_top + self.row * (worker + 0.1)

    def frame(self) -> list[str]:
        parts = [text(LEFT, self.top + 12, self.title, 'font-weight="bold"')]
        for worker in range(0, self.workers, math.ceil(12 / self.row)):
            y = self.y(worker) + self.height / 2 + 4
            parts.append(text(LEFT - 8, y, f"worker {worker}", 'text-anchor="end"'))
        step = tick_step(self.end - self.start)
        for number in range(math.ceil(self.start / step), math.floor(self.end / step) + 1):
            x = self.x(number * step)
            parts.append(line(x, self.rows_top, x, self.rows_bottom, "#e2e8f0"))
            label = f"{number * step:g} ms"
            parts.append(text(x, self.rows_bottom + 16, label, 'text-anchor="middle"'))
        parts.append(line(LEFT, self.rows_bottom, LEFT + PLOT, self.rows_bottom, INK))
        return parts

    def joined_bars(self, turns: list[Turn]) -> list[str]:
        """One path per worker; where there are too many bars, neighbours become one."""
        rows: list[list[tuple[float, float]]] = [[] for _ in range(self.workers)]
        for turn in turns:
            if turn.outcome is Outcome.SOLD:
                rows[turn.worker].append((self.x(turn.start), self.x(turn.end)))
        gap = 0.02
        while sum(map(len, rows)) > MAX_BARS:
            rows = [join(row, gap) for row in rows]
            gap *= 2
        parts = []
        for worker, row in enumerate(rows):
            y, height = self.y(worker), self.height
            path = ""
            for start, end in row:
                width = max(end - start, 0.6)
                path += f"M{start:.2f} {y:.1f}h{width:.2f}v{height:.1f}h-{width:.2f}z"
            parts.append(f'<path fill="{HOLDS}" d="{path}"/>')
        return parts

    def accidents(self, turns: list[Turn]) -> list[str]:
        """Leases that were lost, and the killed worker until somebody else got the lock."""
        parts = []
        for number, turn in enumerate(turns):
            if turn.outcome not in COLOURS:
                continue
            end, note = turn.end, ""
            if turn.outcome is Outcome.CRASHED:
                end = turns[number + 1].start if number + 1 < len(turns) else turn.end
                note = f"killed holding token {turn.token}"
            x, y = self.x(turn.start), self.y(turn.worker)
            mark = bar(x, y, max(self.x(end) - x, 1), self.height, COLOURS[turn.outcome])
            parts.append(f'<g opacity="0.6">{mark}</g>')
            parts.append(text(x + 6, y + self.height / 2 + 4, note))
        return parts

    def single_bars(self, turns: list[Turn]) -> list[str]:
        """One rectangle per hold, with the wait before it and its figures to point at."""
        waits, holds = [], []
        for turn in turns:
            asked, start, end = self.x(turn.asked), self.x(turn.start), self.x(turn.end)
            y, height = self.y(turn.worker), self.height
            waits.append(bar(asked, y + height * 0.35, start - asked, height * 0.3, WAITS))
            figures = (
                f"worker {turn.worker}, token {turn.token}: waited {turn.waited:.2f} ms,"
                f" held {turn.end - turn.start:.2f} ms"
            )
            colour = COLOURS.get(turn.outcome, HOLDS)
            holds.append(bar(start, y, max(end - start, 0.5), height, colour, figures))
        return waits + holds


def join(row: list[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    """Joins bars that are nearer to each other than `gap`."""
    joined: list[tuple[float, float]] = []
    for start, end in row:
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def tick_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, for about ten ticks."""
    power = 10.0 ** math.floor(math.log10(span / 10))
    return next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 12)


def text(x: float, y: float, content: str, style: str = "") -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" {style}>{escape(content)}</text>'


def bar(x: float, y: float, width: float, height: float, colour: str, note: str = "") -> str:
    title = f"<title>{escape(note)}</title>" if note else ""
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" height="{height:.2f}"'
        f' fill="{colour}">{title}</rect>'
    )


def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<path stroke="{colour}" d="M{x1:.2f} {y1:.2f}L{x2:.2f} {y2:.2f}"/>'
