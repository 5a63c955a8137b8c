"""seqloom: its training loop, its engines, and CTranslate2 alone on the files of seqloom's engine.

    python -m bench.peers.seqloom_worker WORKLOAD train|torch|compiled|ctranslate2-PRECISION

torch is imported after seqloom, as on the command line: importing seqloom sets an environment variable
that torch reads when it is loaded (`seqloom.core.allocator`).
"""

import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import seqloom
from bench.comparison.decoding_worker import TOKENS, serve
from bench.comparison.prepare import data_section
from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import END, Workload
from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.batch import Batch, Padded

END_BIAS = -1e4


def config_for(workload: Workload, data: dict[str, Any]) -> RunConfig:
    """A recipe that trains without evaluations and checkpoints."""
    tables = tomllib.loads(workload.fill("seqloom.toml"))
    model = tomllib.loads(workload.fill(f"seqloom.{workload.family}.toml"))
    return RunConfig.model_validate({**tables, "data": data, "model": model})


def prepared_config(workload: Workload) -> RunConfig:
    return config_for(workload, data_section((workload.folder / "data.txt").read_text()))


def run_training(workload: Workload) -> None:
    """`seqloom.train`, with a hook in its batch stream."""
    from seqloom.data.batching.stream import BatchStream
    from seqloom.training.event_log import Event

    window = TimeWindow()
    original_next = BatchStream.__next__

    def next_batch(stream: BatchStream) -> Batch:
        """The loop requests a batch when the previous step is finished."""
        window.finish_step()
        batch = original_next(stream)
        window.add_batch(count_tokens(batch))
        return batch

    BatchStream.__next__ = next_batch  # type: ignore[method-assign,assignment]

    def report(event: Event) -> None:
        import torch

        if event.kind == "start":
            window.ready(
                version=seqloom.__version__,
                torch=torch.__version__,
                threads=torch.get_num_threads(),
                parameters=event.data["parameters"],
                loop="seqloom.train",
                batching="token budget, similar lengths together",
                dropout="embedded target and the readout's input"
                if workload.is_recurrent
                else "embedded input, sublayers' outputs",
            )

    with tempfile.TemporaryDirectory() as folder:
        seqloom.train(prepared_config(workload), Path(folder) / "run", report=report)


def count_tokens(batch: Batch) -> TokenCounts:
    source, targets = batch.source, batch.targets
    assert isinstance(source, Padded)
    return TokenCounts(
        int(source.lengths.sum()),
        source.values.numel(),
        int(targets.lengths.sum()),
        targets.values.numel(),
    )


def random_run(workload: Workload) -> Path:
    """A run folder with random weights beside the prepared corpus, created on the first call.

    The bias of END is so low that every output has the maximum length, because not every engine can
    forbid END.
    """
    import torch

    from seqloom.models.build import build_model
    from seqloom.runs.bundle import create_run
    from seqloom.runs.integrity import WEIGHTS, weights_store
    from seqloom.runs.weights import weights_of, write_tensors
    from seqloom.tasks.build import learn_task

    folder = workload.folder / "run"
    if folder.exists():
        return folder
    config = prepared_config(workload)
    torch.manual_seed(workload.seed)
    task = learn_task(config)
    model = build_model(config.model, task.signature)
    size = (workload.vocabulary,)
    # Only the bias of the output layer has one entry per piece.
    (bias,) = (each for each in model.decoder.parameters() if each.shape == size)
    with torch.no_grad():
        bias[END] = END_BIAS
    create_run(folder, config, task, {"corpus": "none"})

    def write_weights(checkpoint: Path) -> None:
        write_tensors(checkpoint / WEIGHTS, weights_of(model))

    weights_store(folder).add(1, write_weights, keep=1)
    return folder


def run_engine(workload: Workload, engine: str) -> None:
    """`Run.translate` with the engine torch or compiled: text in, text out."""
    from seqloom.inference.options import TEXT_ONLY

    run = seqloom.load(random_run(workload), [f"engine.kind={engine}"])
    tokenizer = run.task.target_tokenizer  # both sides share one vocabulary
    texts: dict[tuple[int, ...], str] = {}

    def decode(sources: list[list[int]], beam: int) -> Any:
        inputs = []
        for source in map(tuple, sources):
            if source not in texts:
                texts[source] = tokenizer.decode(source)
            inputs.append(texts[source])
        return run.translate(
            inputs, decoding=forced_length(beam), attention=False, split=False, pass_through=False
        )

    start = time.perf_counter()
    for beam in (5, 1):  # compile before the measurement
        run.choose_engine(TEXT_ONLY, decoding=forced_length(beam))
    serve(decode, workload, seqloom.__version__, seconds_to_prepare=time.perf_counter() - start)


def forced_length(beam: int) -> DecodingConfig:
    """Search for outputs of exactly TOKENS tokens: see `random_run`."""
    if beam == 1:
        return GreedyConfig(max_length=TOKENS)
    return BeamConfig(width=beam, max_length=TOKENS)


def run_ctranslate2(workload: Workload, precision: Any) -> None:
    """Tokens in, tokens out. Tokens are named by id."""
    import ctranslate2
    import torch

    from seqloom.inference.engine.convert import convert

    folder = workload.folder / f"ctranslate2-{precision}"
    if not folder.exists():
        folder.mkdir()
        convert(seqloom.load(random_run(workload)).model, folder, precision)
    translator = ctranslate2.Translator(
        str(folder), device="cpu", compute_type=precision, intra_threads=torch.get_num_threads()
    )

    def decode(sources: list[list[int]], beam: int) -> Any:
        tokens = [[str(token) for token in (*source, END)] for source in sources]
        return translator.translate_batch(tokens, beam_size=beam, max_decoding_length=TOKENS)

    serve(decode, workload, ctranslate2.__version__, torch="")


if __name__ == "__main__":
    given, what = Workload.load(Path(sys.argv[1])), sys.argv[2]
    if what == "train":
        run_training(given)
    elif what.startswith("ctranslate2-"):
        run_ctranslate2(given, what.removeprefix("ctranslate2-"))
    else:
        run_engine(given, what)
