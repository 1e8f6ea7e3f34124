"""``python -m tests.recorded [NAME ...]``: write the records anew, all or those named."""

from __future__ import annotations

import sys

from tests.numba_cache import use_folder

use_folder()

from tests.recorded import record, runs  # noqa: E402  the folder comes before Numba

for name in sys.argv[1:] or runs.RECORDS:
    record.write(name, {group: run() for group, run in runs.RECORDS[name].items()})
    print(f"wrote {record.path_of(name)}")
