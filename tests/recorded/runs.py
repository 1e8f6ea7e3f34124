"""What is recorded: the name of each record, with its groups."""

from __future__ import annotations

from tests.recorded import assignment, crowds, generators, large, matching, transport
from tests.recorded.record import Group

RECORDS: dict[str, dict[str, Group]] = {
    "matching": matching.GROUPS,
    "assignment": assignment.GROUPS,
    "crowds": crowds.GROUPS,
    "large": large.GROUPS,
    "generators": generators.GROUPS,
    "transport": transport.GROUPS,
}
