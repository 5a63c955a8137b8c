"""Token counts of a batch of OpenNMT-py or its successor Eole."""

from typing import Any

from bench.comparison.time_window import TokenCounts


def count_tokens(batch: dict[str, Any], padding: int) -> TokenCounts:
    """Its sources have no END. Its targets start with START, which is not counted."""
    source, targets = _ids(batch["src"]), _ids(batch["tgt"])[:, 1:]
    real = int((targets != padding).sum())
    return TokenCounts(int(batch["srclen"].sum()), source.numel(), real, targets.numel())


def _ids(tensor: Any) -> Any:
    """(B, T) or, with features, (B, T, 1 + features)."""
    return tensor[:, :, 0] if tensor.dim() == 3 else tensor
