"""The compared systems, their programs and their Python environments."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "bench" / "peers" / "requirements"
ENVIRONMENTS = ROOT / "bench" / ".envs"


@dataclass(frozen=True)
class System:
    """One row of a table: a program that implements the protocol of `time_window.py`.

    key:         name on the command line and in the result files
    name:        name in the tables
    module:      Python module to start
    environment: name of its files in bench/peers/requirements. None: the environment of seqloom
    models:      kinds of models that the system supports
    arguments:   further command-line arguments of the module
    """

    key: str
    name: str
    module: str
    environment: str | None = None
    models: tuple[str, ...] = ("transformer",)
    arguments: tuple[str, ...] = ()

    @property
    def python(self) -> Path:
        """The Python interpreter of its environment."""
        if self.environment is None:
            return Path(sys.executable)
        return ENVIRONMENTS / self.environment / "bin" / "python"


ALL_MODELS = ("transformer", "recurrent", "recurrent-feeding")
HUGGINGFACE, WORKER = "bench.peers.huggingface", "bench.peers.seqloom_worker"
SEQLOOM = System("seqloom", "seqloom", WORKER, None, ALL_MODELS, ("train",))
CEILING = System("ceiling", "matrix products alone", "bench.comparison.ceiling", None, ALL_MODELS)
TRAINING_PEERS = [
    System(
        f"huggingface-{loop}",
        f"Hugging Face Marian, {name}",
        HUGGINGFACE,
        "huggingface",
        arguments=(loop,),
    )
    for loop, name in (("loop", "plain loop"), ("trainer", "Seq2SeqTrainer"))
] + [
    System("opennmt", "OpenNMT-py", "bench.peers.opennmt", "opennmt", ALL_MODELS),
    System("joey", "Joey NMT", "bench.peers.joey", "joey", ALL_MODELS),
    System("eole", "Eole", "bench.peers.eole", "eole"),
    System("sockeye", "Sockeye", "bench.peers.sockeye", "sockeye"),
]
SEQLOOM_DECODING = System("seqloom", "seqloom, torch compiled", WORKER, arguments=("compiled",))
DECODING_PEERS = [
    System("seqloom-torch", "seqloom, torch", WORKER, arguments=("torch",)),
    *(
        System(
            f"ctranslate2-{precision}",
            f"CTranslate2 {label} alone",
            WORKER,
            "ctranslate2",
            arguments=(f"ctranslate2-{precision}",),
        )
        for precision, label in (("int8", "int8"), ("float32", "fp32"))
    ),
    System(
        "huggingface",
        "Hugging Face Marian, generate",
        HUGGINGFACE,
        "huggingface",
        arguments=("generate",),
    ),
    System("onnx", "ONNX Runtime, generate", HUGGINGFACE, "onnx", arguments=("onnx",)),
    System("joey", "Joey NMT", "bench.peers.joey", "joey", arguments=("decode",)),
]
