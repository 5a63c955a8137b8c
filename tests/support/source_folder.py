"""The folder of the package under test, so that processes that tests start use the same one.

`tools/mutants.py` runs the tests with a changed copy of the package.
"""

from pathlib import Path

import seqloom

SOURCE = Path(seqloom.__file__).parents[1]
