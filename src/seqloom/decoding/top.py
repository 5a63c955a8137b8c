"""The few best of many tokens."""

import torch
from torch import Tensor

CHUNK = 64


def top(allowed: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best of each row and where they stand, best first. (R, V) -> (R, C), (R, C)

    To find a few of thousands by sorting is slow. The best lie in those chunks whose own best are
    best, so that two small sorts and one pass over all are enough.
    """
    if count == 1:  # of equal tokens it takes the first, as greedy search does
        best, tokens = allowed.max(dim=1, keepdim=True)
        return best, tokens
    rows, vocabulary = allowed.shape
    chunks = vocabulary // CHUNK
    if chunks < 4 * count:
        found = allowed.topk(count, dim=1)
        return found.values, found.indices
    body, rest = allowed[:, : chunks * CHUNK], allowed[:, chunks * CHUNK :]
    in_chunks = body.unflatten(1, (chunks, CHUNK))
    chosen = in_chunks.amax(dim=2).topk(count, dim=1).indices  # (R, C)
    places = torch.arange(CHUNK, device=allowed.device)
    columns = (chosen.unsqueeze(2) * CHUNK + places).flatten(1)  # (R, C · CHUNK)
    values = allowed.gather(1, columns)
    if rest.shape[1]:
        last = torch.arange(chunks * CHUNK, vocabulary, device=allowed.device)
        columns = torch.cat([columns, last.expand(rows, -1)], dim=1)
        values = torch.cat([values, rest], dim=1)
    found = values.topk(count, dim=1)
    return found.values, columns.gather(1, found.indices)
