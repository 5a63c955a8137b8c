"""Faster versions of parts of `seqloom.nn`. Each computes the same function as its plain version.

    module                plain version                              used for
    linear                torch.nn.Linear                            CPU
    gru                   torch.nn.GRU                               CPU, training
    repeated_attention    attention, one query position at a time    CPU, training
    cross_entropy         losses.cross_entropy_sum of a Linear       CPU
    dropout               torch.nn.functional.dropout                CPU
    kernels               attention, one query position at a time    GPU, inference (Triton)
    static_cache          cache.KeyValueCache                        captured and compiled steps
    multihead             MultiHeadAttention without preparation     inference, and training on a CPU

`dispatch` holds the conditions under which most fast versions replace the plain ones.
"""
