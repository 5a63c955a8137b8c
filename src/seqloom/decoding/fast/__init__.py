"""Faster versions of greedy and beam search, tested equal to the plain ones.

select.py         chooses the version for a device
static_search.py  greedy and beam search on tensors of fixed shape
captured.py       captures the steps of static_search.py as CUDA graphs and replays them
compiled.py       compiles these steps with torch.compile, for one source on a CPU
top_k.py          finds the k largest values of each row, for large vocabularies
"""
