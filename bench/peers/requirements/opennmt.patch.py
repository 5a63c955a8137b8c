"""Make OpenNMT-py 3.5.1 run with current packages.

It imports all of its transforms at start. `terminology` needs spaCy and `clean` needs fastText,
large packages that the benchmark does not use. This script removes the two transforms.
"""

from importlib.util import find_spec
from pathlib import Path

spec = find_spec("onmt")
assert spec is not None
assert spec.origin is not None
for unused in ("terminology", "clean"):
    (Path(spec.origin).parent / "transforms" / f"{unused}.py").unlink(missing_ok=True)
