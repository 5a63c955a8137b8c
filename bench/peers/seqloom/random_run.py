"""A run folder with the workload's model and random weights, to measure decoding.

The bias of END is so low that every output has the maximum length, because not every engine can
forbid END.
"""

from pathlib import Path

import torch

from bench.comparison.prepare import data_section
from bench.comparison.workload import END, Workload
from bench.peers.seqloom.recipe import config_for
from seqloom.models.build import build_model
from seqloom.runs.bundle import create_run
from seqloom.runs.integrity import WEIGHTS, weights_store
from seqloom.runs.weights import weights_of, write_tensors
from seqloom.tasks.build import learn_task

END_BIAS = -1e4


def random_run(workload: Workload) -> Path:
    """The run folder beside the prepared corpus, created on the first call."""
    folder = workload.folder / "run"
    if folder.exists():
        return folder
    config = config_for(workload, data_section((workload.folder / "data.txt").read_text()))
    torch.manual_seed(workload.seed)
    task = learn_task(config)
    model = build_model(config.model, task.signature)
    biases = [
        parameter
        for parameter in model.decoder.parameters()
        if parameter.shape == (workload.vocabulary,)
    ]
    assert len(biases) == 1, "only the bias of the output layer has one entry per piece"
    with torch.no_grad():
        biases[0][END] = END_BIAS
    create_run(folder, config, task, {"corpus": "none"})

    def write_weights(checkpoint: Path) -> None:
        write_tensors(checkpoint / WEIGHTS, weights_of(model))

    weights_store(folder).add(1, write_weights, keep=1)
    return folder
