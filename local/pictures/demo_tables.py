"""Picture of the tables at the end of `make demo`, from the results of a run (its `build/demo/results.json`)."""

import json
from pathlib import Path

from local.demo import view
from local.demo.judge import Finding
from recordings.scenes import Frame
from recordings.svg import Picture, svg
from recordings.terminal import Terminal

RESULTS = Path(__file__).with_name("demo-results.json")
COLUMNS = 120  # of the terminal that is drawn
DESCRIPTION = "Six nodes and messages of the demo, what happened to each, and ten promises that were kept."


def lines(columns: int = COLUMNS, *, coloured: bool = False) -> list[str]:
    """Return what the demo prints at its end on a terminal of this width."""
    told = json.loads(RESULTS.read_text(encoding="utf-8"))
    results = [view.Result(**result) for result in told["results"]]
    return view.lines(view.report(results, [Finding(**one) for one in told["findings"]]), columns, coloured=coloured)


def drawn() -> str:
    """Return the picture as SVG, in the style of the recordings."""
    shown = lines(coloured=True)
    terminal = Terminal(columns=COLUMNS, height=len(shown))
    terminal.write("\n".join(shown))
    frame = Frame(at=0.0, rows=terminal.rows())
    return svg([frame], Picture(columns=COLUMNS, title="make demo", description=DESCRIPTION, still=0))
