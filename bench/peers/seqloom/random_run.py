"""A run folder of the workload's model whose weights are random: decoding takes as long.

END is made so improbable that outputs are as long as they may be: not every engine can forbid it.
"""

from pathlib import Path

import torch

from bench.peers.seqloom.recipe import config_for
from bench.prepare import data_section
from bench.workload import END, Workload
from seqloom.models.build import build_model
from seqloom.runs.folder.bundle import create_run
from seqloom.runs.folder.integrity import WEIGHTS, weights_store
from seqloom.runs.folder.weights import weights_of, write_tensors
from seqloom.tasks.build import learn_task

NEVER = -1e4


def random_run(workload: Workload) -> Path:
    """Made once, beside the prepared corpus."""
    folder = workload.folder / "run"
    if folder.exists():
        return folder
    config = config_for(workload, data_section((workload.folder / "data.txt").read_text()))
    torch.manual_seed(workload.seed)
    task = learn_task(config)
    model = build_model(config.model, task.signature)
    biases = [one for one in model.decoder.parameters() if one.shape == (workload.vocabulary,)]
    assert len(biases) == 1, "one bias, that of the output layer, has an entry for each piece"
    with torch.no_grad():
        biases[0][END] = NEVER
    create_run(folder, config, task, {"corpus": "none"})

    def fill(place: Path) -> None:
        write_tensors(place / WEIGHTS, weights_of(model))

    weights_store(folder).add(1, fill, keep=1)
    return folder
