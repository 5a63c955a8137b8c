"""Faster versions of greedy and beam search, tested equal to the plain ones.

select.py         chooses the version for a device
static_search.py  greedy and beam search on tensors of fixed shape
captured.py       their steps as CUDA graphs, captured once and replayed
compiled.py       their steps compiled with torch.compile, for one source on a CPU
top_k.py          the k largest values of long rows
"""
