"""Who takes part, in what, and from which environment."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "bench" / "peers"
ENVIRONMENTS = ROOT / "bench" / ".envs"


@dataclass(frozen=True)
class Contender:
    """One row of a table: a program that speaks the protocol of `window.py`."""

    key: str
    name: str
    module: str
    environment: str | None = None
    """The folder under bench/peers that says what it needs; None: where seqloom runs."""
    kinds: tuple[str, ...] = ("transformer",)
    """The workloads it has a model for."""
    arguments: tuple[str, ...] = ()

    @property
    def python(self) -> Path:
        if self.environment is None:
            return Path(sys.executable)
        return ENVIRONMENTS / self.environment / "bin" / "python"


EVERY_MODEL = ("transformer", "recurrent", "recurrent-feeding")
SEQLOOM = Contender("seqloom", "seqloom", "bench.peers.seqloom.train", None, EVERY_MODEL)
CEILING = Contender("ceiling", "matrix products alone", "bench.ceiling", None, EVERY_MODEL)
TRAINING = [
    Contender(
        "huggingface-loop",
        "Hugging Face Marian, plain loop",
        "bench.peers.huggingface.train_loop",
        "huggingface",
    ),
    Contender(
        "huggingface-trainer",
        "Hugging Face Marian, Seq2SeqTrainer",
        "bench.peers.huggingface.train_trainer",
        "huggingface",
    ),
    Contender("opennmt", "OpenNMT-py", "bench.peers.opennmt.train", "opennmt", EVERY_MODEL),
    Contender("joey", "Joey NMT", "bench.peers.joey.train", "joey", EVERY_MODEL),
    Contender("eole", "Eole", "bench.peers.eole.train", "eole"),
    Contender("sockeye", "Sockeye", "bench.peers.sockeye.train", "sockeye"),
]
SEQLOOM_DECODING = Contender(
    "seqloom", "seqloom, torch compiled", "bench.peers.seqloom.decode", arguments=("compiled",)
)
DECODING = [
    Contender(
        "seqloom-torch", "seqloom, torch", "bench.peers.seqloom.decode", arguments=("torch",)
    ),
    *(
        Contender(
            f"ctranslate2-{precision}",
            f"CTranslate2 {label} alone",
            "bench.peers.ctranslate2.decode",
            "ctranslate2",
            arguments=(precision,),
        )
        for precision, label in (("int8", "int8"), ("float32", "fp32"))
    ),
    Contender(
        "huggingface",
        "Hugging Face Marian, generate",
        "bench.peers.huggingface.decode",
        "huggingface",
    ),
    Contender("onnx", "ONNX Runtime, generate", "bench.peers.onnx.decode", "onnx"),
    Contender("joey", "Joey NMT", "bench.peers.joey.decode", "joey"),
]
