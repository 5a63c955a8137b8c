"""Faster versions of parts of `seqloom.nn`. Each computes the same function as its plain version.

    module                plain version                              used for
    linear                torch.nn.Linear                            CPU
    gru                   torch.nn.GRU                               CPU, training
    repeated_gru          torch.gru_cell                             CPU, training
    repeated_attention    attention, one query position at a time    CPU, training
    cross_entropy         Linear, then losses.cross_entropy_sum      CPU
    dropout               torch.nn.functional.dropout                CPU
    kernels               attention, one query position at a time,
                          and torch.nn.LayerNorm                     GPU, inference (Triton)
    fused_transformer     the layers in models/transformer.py        GPU, training (Triton)
    fused_functions       parts of fused_transformer                 GPU, training (Triton)
    static_cache          key_value_cache.KeyValueCache              CUDA graphs, torch.compile

`multihead` has no plain version. It prepares weights, masks, keys and values once, so that single
steps of attention run faster. `dispatch` contains conditions under which fast versions are used.
"""
