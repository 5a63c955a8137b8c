"""The compared systems, their programs and their Python environments."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS_FOLDER = ROOT / "bench" / "peers"
ENVIRONMENTS = ROOT / "bench" / ".envs"


@dataclass(frozen=True)
class System:
    """One row of a table: a program that implements the protocol of `time_window.py`.

    key:         name on the command line and in the result files
    name:        name in the tables
    module:      Python module to start
    environment: folder under bench/peers with its requirements. None: the environment of seqloom
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
SEQLOOM = System("seqloom", "seqloom", "bench.peers.seqloom.train", None, ALL_MODELS)
CEILING = System("ceiling", "matrix products alone", "bench.comparison.ceiling", None, ALL_MODELS)
TRAINING_PEERS = [
    System(
        "huggingface-loop",
        "Hugging Face Marian, plain loop",
        "bench.peers.huggingface.train_loop",
        "huggingface",
    ),
    System(
        "huggingface-trainer",
        "Hugging Face Marian, Seq2SeqTrainer",
        "bench.peers.huggingface.train_trainer",
        "huggingface",
    ),
    System("opennmt", "OpenNMT-py", "bench.peers.opennmt.train", "opennmt", ALL_MODELS),
    System("joey", "Joey NMT", "bench.peers.joey.train", "joey", ALL_MODELS),
    System("eole", "Eole", "bench.peers.eole.train", "eole"),
    System("sockeye", "Sockeye", "bench.peers.sockeye.train", "sockeye"),
]
SEQLOOM_DECODING = System(
    "seqloom", "seqloom, torch compiled", "bench.peers.seqloom.decode", arguments=("compiled",)
)
DECODING_PEERS = [
    System("seqloom-torch", "seqloom, torch", "bench.peers.seqloom.decode", arguments=("torch",)),
    *(
        System(
            f"ctranslate2-{precision}",
            f"CTranslate2 {label} alone",
            "bench.peers.ctranslate2.decode",
            "ctranslate2",
            arguments=(precision,),
        )
        for precision, label in (("int8", "int8"), ("float32", "fp32"))
    ),
    System(
        "huggingface",
        "Hugging Face Marian, generate",
        "bench.peers.huggingface.decode",
        "huggingface",
    ),
    System("onnx", "ONNX Runtime, generate", "bench.peers.onnx.decode", "onnx"),
    System("joey", "Joey NMT", "bench.peers.joey.decode", "joey"),
]
