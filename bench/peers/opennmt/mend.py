"""OpenNMT-py 3.5.1 with today's packages: what stands in the way, taken out.

It imports every one of its transforms at the start. `terminology` needs spaCy and `clean` needs
fastText, large packages that nothing here uses: the two transforms are removed.
"""

from importlib.util import find_spec
from pathlib import Path

spec = find_spec("onmt")
assert spec is not None
assert spec.origin is not None
for unused in ("terminology", "clean"):
    (Path(spec.origin).parent / "transforms" / f"{unused}.py").unlink(missing_ok=True)
