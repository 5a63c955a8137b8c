"""Faster versions of greedy and beam search.

They find the same hypotheses as the plain versions. Tests check this.

select.py         chooses the version for a device
static_search.py  greedy and beam search on tensors of fixed shape
captured.py       captures the steps of static_search.py as CUDA graphs and replays them
compiled.py       compiles these steps with torch.compile, for one source on a CPU
kernels.py        softmax and best tokens of each row, for a GPU (Triton)
top_k.py          finds the k largest values of each row, for large vocabularies
"""
