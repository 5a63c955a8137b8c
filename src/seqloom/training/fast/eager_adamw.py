"""AdamW without torch's compiler."""

import inspect

import torch


class EagerAdamW(torch.optim.AdamW):
    """AdamW that does not import torch's compiler. Updates and state are those of torch's AdamW.

    torch wraps `add_param_group`, `zero_grad` and `step`, so that `torch.compile` does not compile
    them. The wrappers import torch._dynamo, which takes longer than building a small model. seqloom
    does not need the wrappers, because it never calls an optimiser inside a compiled function.
    """

    add_param_group = inspect.unwrap(torch.optim.AdamW.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.AdamW.zero_grad)
    # The wrapper of `step` also switches gradients off.
    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))
