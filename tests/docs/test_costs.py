"""The bill of docs/costs.md adds up, and has as many alarms as there are runbooks."""

import re
from pathlib import Path

PAGE = Path("docs/costs.md").read_text()
DOLLARS = re.compile(r"\| \*{0,2}\$([\d.]+)\*{0,2} \|$")
ALARM = 0.10  # dollars a month
OF_NODES = 730 * (180 * 0.096 + 120 * 0.035)


def bills():
    """Rows of each table that ends with a sum, the sum included."""
    for table in re.findall(r"(?m)(?:^\|.*\n)+", PAGE):
        rows = [(row, float(match[1])) for row in table.splitlines() if (match := DOLLARS.search(row))]
        ends = [number for number, (row, _) in enumerate(rows) if "**in all**" in row]
        if ends:
            yield rows[: ends[0] + 1]


def test_the_rows_of_a_bill_are_its_sum():
    sums = [(round(sum(dollars for _, dollars in rows[:-1]), 2), rows[-1][1]) for rows in bills()]
    assert len(sums) == 2
    assert [added for added, _ in sums] == [written for _, written in sums]


def test_every_alarm_is_paid():
    runbooks = re.findall(r"(?m)^### ", Path("docs/runbooks.md").read_text())  # one for each alarm
    named = re.findall(r"\| (\d+) alarms \| \$([\d.]+) \|", PAGE)
    assert len(named) == 2
    assert {(int(count), float(dollars)) for count, dollars in named} == {
        (len(runbooks), round(len(runbooks) * ALARM, 2))
    }


def test_what_nodes_cost_beside_it():
    written = float(re.search(r"about \$([\d,]+) a month", PAGE)[1].replace(",", ""))
    assert abs(written - OF_NODES) < 100
