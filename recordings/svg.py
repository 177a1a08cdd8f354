"""Animated SVG of a recording: frames below one another on a film that moves past a window, a step for each frame.

One file without scripts, fonts or anything from outside. A row that several frames have is drawn once. Where motion is
unwanted (prefers-reduced-motion) the frame that tells most stands still."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from recordings.scenes import Frame
from recordings.terminal import Row

LETTER, LINE, SIZE = 8.4, 19, 14  # width of a column, height of a row, font size
PAD, BAR = 18, 34  # around the text, and above it
TYPED, LEAST, MOST, LAST = 0.12, 0.6, 1.6, 5.0  # seconds of playback: a typed frame, others, the last one
FASTER = 9.0  # seconds of virtual time in one of playback
DOTS = ("#e0626d", "#e5b95c", "#6cc07c")  # of a window
FULL, EMPTY = "█", "░"
_PARTS = re.compile(r"█+|░+|\S+(?: \S+)*")
_CLASSES = {"1": "b", "31": "r", "32": "g", "33": "y", "36": "c"}
STYLE = """\
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:%(size)spx;fill:#d6deeb;white-space:pre}
.b{font-weight:700;fill:#fff}.r{fill:#ff7b8a}.g{fill:#8fe0a0}.y{fill:#f4cf6d}.c{fill:#7fd4f5}
.t{font-size:13px;fill:#8b98ad;text-anchor:middle}
.full{fill:#5fb3f9}.empty{fill:#2c3a55}
#film{animation:film %(seconds).2fs step-end infinite}
@keyframes film{%(steps)s}
@media (prefers-reduced-motion:reduce){#film{animation:none;transform:translateY(-%(still)spx)}}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Columns of the terminal, and what the SVG says of itself. `still`: number of the frame that tells most."""

    columns: int
    title: str
    description: str
    still: int


def svg(frames: Sequence[Frame], picture: Picture) -> str:
    """Return the document. Raises ValueError without frames."""
    if not frames:
        raise ValueError("found no frames, expected at least one")
    height = max(len(frame.rows) for frame in frames) * LINE + 8
    names = _names(frames)
    starts = list(_starts(frames))
    total = starts[-1] + LAST
    steps = "".join(f"{100 * at / total:.3f}%{{transform:translateY(-{n * height}px)}}" for n, at in enumerate(starts))
    style = STYLE % {"size": SIZE, "seconds": total, "steps": steps, "still": picture.still * height}
    width = round(picture.columns * LETTER) + 2 * PAD
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + BAR + PAD}" role="img" '
        'aria-labelledby="title description">',
        f'<title id="title">{escape(picture.title)}</title>',
        f'<desc id="description">{escape(picture.description)}</desc>',
        f"<style>{style}</style>",
        f'<rect width="{width}" height="{height + BAR + PAD}" rx="10" fill="#10182a"/>',
        *(f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="{fill}"/>' for n, fill in enumerate(DOTS)),
        f'<text class="t" x="{width / 2:g}" y="21">{escape(picture.title)}</text>',
        "<defs>",
        *(f'<g id="{name}">{"".join(_drawn(row))}</g>' for row, name in names.items()),
        "</defs>",
        f'<svg x="{PAD}" y="{BAR}" width="{width - 2 * PAD}" height="{height}"><g id="film">',
    ]
    for number, frame in enumerate(frames):
        used = "".join(f'<use href="#{names[row]}" y="{place * LINE}"/>' for place, row in enumerate(frame.rows) if row)
        lines.append(f'<g transform="translate(0 {number * height})">{used}</g>')
    return "\n".join([*lines, "</g></svg>", "</svg>", ""])


def seconds(frames: Sequence[Frame]) -> float:
    """Return how long the recording plays."""
    return list(_starts(frames))[-1] + LAST


def _starts(frames: Sequence[Frame]) -> Iterator[float]:
    """Yield when each frame is shown, in seconds of playback: faster than it was, no frame shorter than it takes to
    read what changed.
    """
    at = 0.0
    for frame, after in zip(frames, [*frames[1:], frames[-1]], strict=True):
        yield at
        at += TYPED if frame.typed else min(max((after.at - frame.at) / FASTER, LEAST), MOST)


def _names(frames: Sequence[Frame]) -> dict[Row, str]:
    rows = dict.fromkeys(row for frame in frames for row in frame.rows if row)
    return {row: f"r{number}" for number, row in enumerate(rows)}


def _drawn(row: Row) -> Iterator[str]:
    """Yield the words of a row, each at its column whatever the font's width, and bars as rectangles."""
    column = 0
    texts: list[str] = []
    for run in row:
        of = f' class="{_CLASSES[run.style]}"' if run.style else ""
        for part in _PARTS.finditer(run.text):
            x = (column + part.start()) * LETTER
            if part[0][0] in FULL + EMPTY:
                kind = "full" if part[0][0] == FULL else "empty"
                yield f'<rect class="{kind}" x="{x:.4g}" y="3" width="{len(part[0]) * LETTER:.4g}" height="13"/>'
            else:
                texts.append(f'<tspan x="{x:.4g}"{of}>{escape(part[0], quote=False)}</tspan>')
        column += len(run.text)
    if texts:
        yield f'<text y="14">{"".join(texts)}</text>'
