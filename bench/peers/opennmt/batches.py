"""What a batch of OpenNMT-py, or of its successor Eole, holds."""

from typing import Any

from bench.window import Counts


def counts(batch: dict[str, Any], padding: int) -> Counts:
    """Its sources have no END; its targets begin after START."""
    source, targets = _ids(batch["src"]), _ids(batch["tgt"])[:, 1:]
    real = int((targets != padding).sum())
    return Counts(int(batch["srclen"].sum()), source.numel(), real, targets.numel())


def _ids(tensor: Any) -> Any:
    """(B, T) or, with features, (B, T, 1 + features)."""
    return tensor[:, :, 0] if tensor.dim() == 3 else tensor
