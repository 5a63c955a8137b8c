"""Cross-entropy with label smoothing: each place that computes it equals one formula.

The formula is spelled out in `formula`, token by token. `smoothed_cross_entropy_sum` defines it for the
code, and the other tests compare each faster form with that definition, values and gradients, on 200
random cases each. The tests of the Triton kernels need a GPU:

    CUDA_VISIBLE_DEVICES=0 pytest tests/nn/test_smoothed_loss.py -k gpu
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from seqloom.core.batch import Batch, Packing, Padded
from seqloom.core.signature import Signature, Tokens
from seqloom.data.batching.collate import collate
from seqloom.models.build import build_model
from seqloom.models.interface import CopyDecoderOutput, DecoderOutput
from seqloom.models.seq2seq import Model
from seqloom.nn import embedding
from seqloom.nn.copying import Copying
from seqloom.nn.embedding import LabelReadout, Readout
from seqloom.nn.fast import cross_entropy, fused_functions
from seqloom.nn.fast.dispatch import find_triton
from seqloom.nn.losses import cross_entropy_sum, smoothed_cross_entropy_sum
from seqloom.tasks.losses import r_drop_loss, symmetric_divergence
from seqloom.text.vocabulary import END, PAD
from support.tiny_runs import NO_DROPOUT, TRANSFORMER, tiny_config
from support.token_loss import token_loss

cases_200 = settings(max_examples=200, deadline=None)


@dataclass(frozen=True)
class Case:
    """A random case.

    excluded:  number of special tokens without a probability: 2 with `special_outputs = false`
    smoothing: ε
    chunk:     number of positions whose logits are computed at a time
    """

    seed: int
    vocabulary: int
    rows: int
    length: int
    excluded: int
    smoothing: float
    chunk: int
    weight: float

    def generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed)

    def targets(self) -> Tensor:
        """(B, T) possible tokens; about a quarter of the positions is padding."""
        generator = self.generator()
        shape = (self.rows, self.length)
        targets = torch.randint(max(2, self.excluded), self.vocabulary, shape, generator=generator)
        return targets.masked_fill(torch.rand(shape, generator=generator) < 0.25, PAD)

    def features(self) -> Tensor:
        """(2, B, T, 5) features of two forward passes."""
        shape = (2, self.rows, self.length, 5)
        return torch.randn(shape, generator=self.generator(), dtype=torch.float64)

    def readout(self) -> Readout:
        readout = Readout(5, self.vocabulary, excluded=self.excluded).double()
        for parameter in readout.parameters():
            nn.init.normal_(parameter, std=1.0, generator=self.generator())
        return readout


CASES = st.builds(
    Case,
    seed=st.integers(0, 10**6),
    vocabulary=st.integers(5, 40),
    rows=st.integers(1, 3),
    length=st.integers(1, 6),
    excluded=st.sampled_from([0, 2]),
    smoothing=st.sampled_from([0.0, 0.1, 0.3, 0.9]),
    chunk=st.integers(1, 8),
    weight=st.sampled_from([0.0, 1.0, 5.0]),
)


def formula(log_probabilities: Tensor, targets: Tensor, smoothing: float) -> float:
    """-Σ_t Σ_v q_t(v) log p_t(v), where q_t has 1 - ε at the target and ε evenly on possible tokens."""
    total = 0.0
    pairs = zip(log_probabilities.flatten(0, -2).tolist(), targets.flatten().tolist(), strict=True)
    for row, target in pairs:
        if target == PAD:
            continue
        possible = [token for token, value in enumerate(row) if value > -math.inf]
        assert target in possible
        for token in possible:
            share = smoothing / len(possible) + (1 - smoothing) * (token == target)
            total -= share * row[token]
    return total


def assert_same(
    actual: Tensor, expected: Tensor, leaves: Sequence[Tensor], tolerance: float = 1e-9
) -> None:
    """Both losses have the same value and the same gradients."""
    close = partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    close(actual, expected)
    pairs = zip(
        torch.autograd.grad(actual, leaves, allow_unused=True, retain_graph=True),
        torch.autograd.grad(expected, leaves, allow_unused=True),
        strict=True,
    )
    for gradient, expected_gradient in pairs:
        if gradient is None or expected_gradient is None:
            assert gradient is expected_gradient
        else:
            close(gradient, expected_gradient)


def definition(output: DecoderOutput, targets: Tensor, smoothing: float) -> Tensor:
    return smoothed_cross_entropy_sum(output.logits().log_softmax(-1), targets, smoothing, PAD)


@cases_200
@given(CASES)
def test_the_definition_equals_the_formula(case: Case) -> None:
    log_probabilities = case.readout()(case.features()[0]).log_softmax(-1)
    targets = case.targets()
    expected = formula(log_probabilities, targets, case.smoothing)
    actual = smoothed_cross_entropy_sum(log_probabilities, targets, case.smoothing, PAD)
    assert actual.item() == pytest.approx(expected)


@cases_200
@given(CASES)
def test_the_loss_of_torch_equals_the_definition(case: Case) -> None:
    logits = case.readout()(case.features()[0])[..., case.excluded :].flatten(0, 1).detach()
    logits.requires_grad_()
    targets = case.targets().flatten() - case.excluded
    padding = PAD - case.excluded
    assert_same(
        cross_entropy_sum(logits, targets, case.smoothing, padding),
        smoothed_cross_entropy_sum(logits.log_softmax(-1), targets, case.smoothing, padding),
        [logits],
    )


@pytest.mark.parametrize("in_chunks", [True, False], ids=["chunks", "all logits"])
@cases_200
@given(case=CASES)
def test_the_loss_of_a_readout_equals_the_definition(case: Case, in_chunks: bool) -> None:
    readout, features = case.readout(), case.features()[0].requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_entropy, "CHUNK", case.chunk)
        patch.setattr(embedding, "on_cpu_without_autocast", lambda features: in_chunks)
        loss = readout.loss(features, case.targets(), case.smoothing, PAD)
    expected = definition(DecoderOutput(features, readout), case.targets(), case.smoothing)
    assert_same(loss, expected, [features, *readout.parameters()])


@cases_200
@given(CASES)
def test_the_loss_of_labels_equals_the_formula(case: Case) -> None:
    """The possible tokens differ between positions: END after the last label, otherwise labels."""
    readout = LabelReadout(5, case.vocabulary, None, END, impossible=(PAD, 1)).double()
    targets = case.targets()
    ends = (targets == END).unsqueeze(-1).double()
    features = torch.cat([case.features()[0], ends], dim=-1)
    loss = readout.loss(features, targets, case.smoothing, PAD)
    expected = formula(readout(features).log_softmax(-1), targets, case.smoothing)
    assert loss.item() == pytest.approx(expected)


def copying_output(case: Case, features: Tensor) -> CopyDecoderOutput:
    """The output of a decoder with a copy mechanism, which excludes no tokens."""
    generator = case.generator()
    copying = Copying(5, 4, 3).double()
    for parameter in copying.parameters():
        nn.init.normal_(parameter, std=1.0, generator=generator)
    states = torch.randn(case.rows, 7, 4, generator=generator, dtype=torch.float64)
    tokens = torch.randint(case.vocabulary, (case.rows, 7), generator=generator)
    mask = torch.rand(case.rows, 1, 7, generator=generator) < 0.7
    mask[:, :, 0] = True
    source = copying.prepare(states, tokens, mask)
    return CopyDecoderOutput(features, replace(case, excluded=0).readout(), copying, source)


@cases_200
@given(CASES)
def test_the_loss_with_a_copy_mechanism_equals_the_definition(case: Case) -> None:
    features = case.features()[0].requires_grad_()
    output = copying_output(case, features)
    leaves = [features, *output.readout.parameters(), *output.copying.parameters()]
    loss = output.loss(case.targets(), case.smoothing, PAD)
    assert_same(loss, definition(output, case.targets(), case.smoothing), leaves)


class TwoPasses(Model):
    """Stands for a model with dropout: two forward passes return two given outputs."""

    def __init__(self, outputs: Sequence[DecoderOutput]) -> None:
        nn.Module.__init__(self)
        self.outputs = list(outputs)

    def forward(self, batch: Batch) -> DecoderOutput:
        return self.outputs.pop(0)


def batch_of(targets: Tensor) -> Batch:
    padded = Padded(targets, torch.full((len(targets),), targets.shape[1], device=targets.device))
    return Batch(padded, padded, padded)


def r_drop(outputs: Sequence[DecoderOutput], case: Case, targets: Tensor) -> Tensor:
    return r_drop_loss(TwoPasses(outputs), batch_of(targets), case.smoothing, case.weight)


def divergence(first: Tensor, second: Tensor, targets: Tensor) -> float:
    """Σ KL(p‖q) + KL(q‖p) over the possible tokens of all real positions."""
    total = 0.0
    rows = (each.flatten(0, -2).tolist() for each in (first, second))
    for log_p, log_q, target in zip(*rows, targets.flatten().tolist(), strict=True):
        if target != PAD:
            for p, q in zip(log_p, log_q, strict=True):
                if p > -math.inf:
                    total += (math.exp(p) - math.exp(q)) * (p - q)
    return total


@pytest.mark.parametrize("copies", [False, True], ids=["generating", "copying"])
@cases_200
@given(case=CASES)
def test_the_loss_with_r_drop_equals_the_formula(case: Case, copies: bool) -> None:
    readout, targets = case.readout(), case.targets()
    outputs = [
        copying_output(case, features) if copies else DecoderOutput(features, readout)
        for features in case.features()
    ]
    first, second = (output.logits().log_softmax(-1) for output in outputs)
    likelihood = sum(formula(each, targets, case.smoothing) for each in (first, second)) / 2
    expected = likelihood + case.weight / 4 * divergence(first, second, targets)
    assert r_drop(outputs, case, targets).item() == pytest.approx(expected)


def test_smoothing_never_lowers_the_loss_of_r_drop_below_that_of_a_confident_model() -> None:
    """The share of impossible tokens is not lost: it is spread over the possible ones."""
    logits = torch.full((1, 30, 10), -5.0).index_fill(2, torch.arange(2), -math.inf)
    targets = torch.full((1, 30), 4)
    logits[:, :, 4] = 5.0
    losses = []
    for smoothing in (0.0, 0.3):
        log_probabilities = logits.log_softmax(-1)
        losses.append(float(smoothed_cross_entropy_sum(log_probabilities, targets, smoothing)))
    assert losses[1] > losses[0] + 1


def small_transformer(excluded: bool) -> Model:
    torch.manual_seed(0)
    settings = (*TRANSFORMER, f"model.decoder.special_outputs={str(not excluded).lower()}")
    signature = Signature(Tokens(12), Tokens(12), shared=False)
    return build_model(tiny_config(*settings).model, signature).double().eval()


TRANSFORMERS = {excluded: small_transformer(excluded > 0) for excluded in (0, 2)}


def random_pairs(case: Case, count: int) -> list[tuple[Tensor, Tensor]]:
    """Token ids of sources and targets, END not included."""
    generator = case.generator()
    lengths = torch.randint(1, 5, (count, 2), generator=generator).tolist()
    return [
        (
            torch.randint(4, 12, (source,), generator=generator, dtype=torch.int32),
            torch.randint(4, 12, (target,), generator=generator, dtype=torch.int32),
        )
        for source, target in lengths
    ]


def collated(pairs: Sequence[tuple[Tensor, Tensor]]) -> Batch:
    return collate([source.numpy() for source, _ in pairs], [target.numpy() for _, target in pairs])


def packed(pairs: Sequence[tuple[Tensor, Tensor]]) -> Batch:
    """All pairs in one row, followed by padding."""
    alone = [collated([pair]) for pair in pairs]

    def join(values: list[Tensor], padding: int = 0) -> Tensor:
        return torch.cat([*values, torch.full((1, 3), padding)], dim=1)

    def pad(sequences: list[Padded]) -> Padded:
        total = sum(int(each.lengths) for each in sequences)
        return Padded(join([each.values for each in sequences], PAD), torch.tensor([total]))

    sources = [batch.source for batch in alone if isinstance(batch.source, Padded)]
    sides = [[each.values for each in side] for side in (sources, [one.targets for one in alone])]
    pair_numbers = [
        join([torch.full_like(each, number) for number, each in enumerate(side, 1)])
        for side in sides
    ]
    positions = [join([torch.arange(each.shape[1])[None] for each in side]) for side in sides]
    return Batch(
        pad(sources),
        pad([each.inputs for each in alone]),
        pad([each.targets for each in alone]),
        packing=Packing(*pair_numbers, *positions),
    )


@cases_200
@given(CASES)
def test_packed_rows_and_parts_of_a_batch_have_the_loss_of_the_formula(case: Case) -> None:
    """Ranks, accumulated batches and halved batches each compute a part of the sum."""
    model = TRANSFORMERS[case.excluded]
    pairs = random_pairs(case, 3)
    whole = collated(pairs)
    targets = whole.targets.values.masked_fill(~whole.targets.mask, PAD)
    with torch.no_grad():
        expected = formula(model(whole).logits().log_softmax(-1), targets, case.smoothing)
        for batches in ([whole], [packed(pairs)], whole.halves()):
            losses = [float(token_loss(model, batch, case.smoothing)) for batch in batches]
            assert sum(losses) == pytest.approx(expected)
        # Without dropout, both passes of R-Drop are equal.
        loss = r_drop_loss(model, packed(pairs), case.smoothing, case.weight)
        assert float(loss) == pytest.approx(expected)


def test_hand_written_gradients_of_a_recurrent_decoder_change_no_loss() -> None:
    signature = Signature(Tokens(12), Tokens(12), shared=False)
    model = build_model(tiny_config(*NO_DROPOUT).model, signature)
    batch = collated(random_pairs(Case(0, 12, 1, 1, 0, 0.3, 1, 0.0), 4))
    targets = batch.targets.values.masked_fill(~batch.targets.mask, PAD)
    loss = token_loss(model.train(), batch, 0.3)  # with gradients: the hand-written functions run
    assert loss.requires_grad
    with torch.no_grad():
        expected = formula(model(batch).logits().log_softmax(-1), targets, 0.3)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


needs_gpu = pytest.mark.skipif(
    not (torch.cuda.is_available() and find_triton()), reason="needs a GPU and Triton"
)


def on_gpu(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cuda", torch.float32).requires_grad_()


@needs_gpu
@cases_200
@given(CASES)
def test_the_fused_loss_on_a_gpu_equals_the_definition(case: Case) -> None:
    features = on_gpu(case.features()[0].flatten(0, 1))
    weight, bias = (on_gpu(parameter) for parameter in case.readout().output.parameters())
    targets = case.targets().flatten().cuda()
    excluded = torch.arange(case.vocabulary, device="cuda") < case.excluded
    logits = (features @ weight.T + bias).masked_fill(excluded, -math.inf)
    assert_same(
        fused_functions.linear_cross_entropy(
            features, weight, bias, targets, case.smoothing, PAD, case.excluded
        ),
        smoothed_cross_entropy_sum(logits.log_softmax(-1), targets, case.smoothing, PAD),
        [features, weight, bias],
        tolerance=1e-3,
    )


@needs_gpu
@cases_200
@given(CASES)
def test_the_fused_loss_with_r_drop_on_a_gpu_equals_the_definition(case: Case) -> None:
    excluded = torch.arange(case.vocabulary, device="cuda") < case.excluded
    leaves = [on_gpu(replace(case, excluded=0).readout()(each)) for each in case.features()]
    one, other = (leaf.masked_fill(excluded, -math.inf) for leaf in leaves)
    targets = case.targets().cuda()
    first, second = one.log_softmax(-1), other.log_softmax(-1)
    likelihood = smoothed_cross_entropy_sum(first, targets, case.smoothing, PAD)
    likelihood = likelihood + smoothed_cross_entropy_sum(second, targets, case.smoothing, PAD)
    assert_same(
        fused_functions.r_drop(one, other, targets, case.smoothing, case.weight, PAD),
        likelihood / 2 + case.weight / 4 * symmetric_divergence(first, second, targets),
        leaves,
        tolerance=1e-3,
    )
