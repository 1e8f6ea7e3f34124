"""``python -m gpumatch`` is ``gpumatch``."""

import sys

from gpumatch.cli import main

sys.exit(main())
