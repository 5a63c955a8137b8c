"""Compare the results of two checkouts of seqloom bit by bit, on one thread.

    python tools/compare_checkouts.py OTHER [--steps 30] [--only zoo|runs]
    python tools/compare_checkouts.py --write results.json      then OTHER may be that file

Each checkout runs its own code. Compared are, for every decoder of tests/claims/zoo.py: the logits and the
gradients of a batch, and the tokens, scores, attention and traces of greedy search, beam search, sampling and
exhaustive search. Compared are also the weights of trained runs (the demo recipe, a Transformer and a language
model), and what the commands print for them. Exits with 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SENTENCES = [
    "Ich habe ihn gestern gesehen.",
    "Das gefällt mir.",
    "Wo ist der Bahnhof? Ich suche ihn.",
]
PAIR = (SENTENCES[0], "I saw him yesterday.")
COMMANDS = {
    "greedy": [
        "translate",
        "{run}",
        "--json",
        "--engine",
        "torch",
        "--set",
        "decoding.kind=greedy",
    ],
    "beam": ["translate", "{run}", "--json", "--engine", "torch", "--beam", "4", "--n-best", "3"],
    "sample": [
        "translate",
        "{run}",
        "--json",
        "--engine",
        "torch",
        "--set",
        "decoding.kind=sample",
    ],
    "engine": ["translate", "{run}", "--json", "--beam", "4"],
    "search": ["search", "{run}", SENTENCES[0], "--beam", "3", "--json"],
    "explain": ["explain", "{run}", SENTENCES[0], "--step", "2", "--full"],
    "explain json": ["explain", "{run}", SENTENCES[1], "--step", "1", "--json"],
    "inspect": ["inspect", "{run}", SENTENCES[0], "--json"],
    "gradients": ["gradients", "{run}", *PAIR, "--json"],
    "gradients at states": ["gradients", "{run}", *PAIR, "--json", "--at", "states"],
    "gradients at attention": ["gradients", "{run}", *PAIR, "--json", "--at", "attention"],
    "gradients at parameters": ["gradients", "{run}", *PAIR, "--json", "--at", "parameters"],
    "error propagation": ["error-propagation", "{run}", *PAIR, "--json"],
    "to French": ["translate", "{run}", "--json", "--to", "fr"],
    "evaluate": ["evaluate", "{run}", "--split", "dev", "--json"],
}
"""What the trained runs are asked. A command that one checkout rejects must be rejected by the other."""
INSIDE = ["greedy", "beam", "sample", "engine", "search", "explain", "explain json", "inspect"]
INSIDE += [name for name in COMMANDS if name.startswith(("gradients", "error"))]
SMALL = ["model.encoder.width=64", "model.decoder.width=64", "training.averaging={kind='none'}"]
RUNS: dict[str, tuple[str, list[str], list[str]]] = {
    "demo": ("demo", [], [*INSIDE, "evaluate"]),
    "plain": ("tatoeba-de-en-plain", SMALL[:2], INSIDE),
    "transformer": ("tatoeba-de-en-transformer", SMALL, [*INSIDE, "evaluate"]),
    "languages": ("tatoeba-languages", [], ["to French"]),
    "scenes": ("scenes", [], ["evaluate"]),
    "gestures": ("gesture-label", [], ["evaluate"]),
    "frames": ("frames-label", [], ["evaluate"]),
    "robot": ("robot", [], ["evaluate"]),
    "english": ("tatoeba-english", ["model.decoder.width=64"], ["evaluate"]),
}
"""Name of a run -> its recipe, changes to the recipe, and the commands for the run."""


def digest(value: Any) -> str:
    """SHA-256 of nested values. Tensors count with their type, shape and bytes, floats exactly."""
    import torch

    def plain(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            data = item.detach().cpu().contiguous().reshape(-1)
            raw = data.view(torch.uint8).numpy().tobytes() if data.numel() else b""
            return [str(item.dtype), list(item.shape), hashlib.sha256(raw).hexdigest()]
        if isinstance(item, dict):
            return {str(key): plain(entry) for key, entry in item.items()}
        if isinstance(item, list | tuple):
            return [plain(entry) for entry in item]
        return item.hex() if isinstance(item, float) else item

    text = json.dumps(plain(value), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measure_zoo() -> dict[str, str]:
    """Digests of every decoder of the zoo. Runs inside the checkout that is measured."""
    import torch
    from zoo import EVERY_DECODER

    from seqloom.decoding.beam import Beam
    from seqloom.decoding.exhaustive import Exhaustive
    from seqloom.decoding.greedy import Greedy
    from seqloom.decoding.sampling import Sampling
    from seqloom.decoding.search import SearchRequest
    from seqloom.decoding.tracer import Tracer

    torch.set_num_threads(1)
    searches = {
        "greedy": Greedy(),
        "beam": Beam(3),
        "penalised beam": Beam(4, length_penalty=0.6, stopping="bound"),
        "sampling": Sampling(samples=2, seed=7),
        "exhaustive": Exhaustive(400),
    }
    found: dict[str, str] = {}
    for specimen in EVERY_DECODER:
        model = specimen.build(torch.float32)
        source = specimen.source((5, 2, 4))
        model.requires_grad_(True)
        memory = model.encode(source, 3)
        tokens = torch.randint(4, 8, (3, 5), generator=torch.Generator().manual_seed(2))
        if not specimen.gives_labels:
            logits = model.decoder(tokens, memory).logits()
            logits.log_softmax(-1)[..., 4].sum().backward()
            gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
            found[f"{specimen.name} | logits"] = digest(logits)
            found[f"{specimen.name} | gradients"] = digest(gradients)
        model.requires_grad_(False)
        for name, search in searches.items():
            lengths = [3, 3, 3] if name == "exhaustive" else [6, 4, 5]
            with torch.inference_mode():
                memory = model.encode(source, 3)
                tracer = Tracer(5)
                request = SearchRequest(
                    lengths, n_best=2, keep_attention=lambda weights: weights, tracer=tracer
                )
                outputs = search(model.decoder, memory, request)
            results = [
                [(one.tokens, one.log_probabilities, one.score, one.attention) for one in each]
                for each in outputs
            ]
            found[f"{specimen.name} | {name}"] = digest(results)
            found[f"{specimen.name} | {name} trace"] = digest([str(each) for each in tracer.traces])
    return found


def measure_runs(checkout: Path, folder: Path, steps: int) -> dict[str, str]:
    """Digests of the weights of trained runs, and of what the commands print for them."""
    from safetensors.torch import load_file

    found: dict[str, str] = {}
    for name, (recipe, changes, commands) in RUNS.items():
        run = folder / name
        settings = [
            *(f"training.steps={steps}", f"training.evaluate_every={steps}"),
            *(f"training.checkpoint_every={steps}", "training.schedule.warmup=10", *changes),
        ]
        options = [part for setting in settings for part in ("--set", setting)]
        trained = seqloom(checkout, "train", recipe, "--run", str(run), *options)
        if trained.returncode:
            raise SystemExit(f"{checkout}: {name}: {trained.stderr[-2000:]}")
        for file in sorted(run.rglob("*.safetensors")):
            for tensor_name, tensor in load_file(file).items():
                found[f"{name} | {file.relative_to(run)} | {tensor_name}"] = digest(tensor)
        for title in commands:
            arguments = [part.replace("{run}", name) for part in COMMANDS[title]]
            answer = seqloom(checkout, *arguments, cwd=folder, text="\n".join(SENTENCES))
            found[f"{name} | {title}"] = digest([answer.returncode, answer.stdout])
            (folder / f"{name}-{title}.txt").write_text(answer.stdout + answer.stderr)
    return found


def seqloom(
    checkout: Path, *arguments: str, cwd: Path | None = None, text: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seqloom", *arguments],
        env=environment(checkout),
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def environment(checkout: Path) -> dict[str, str]:
    folders = [checkout / "src", checkout / "tests/claims", checkout / "tests", checkout]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "160",
    }


def measure(checkout: Path, folder: Path, options: argparse.Namespace) -> dict[str, str]:
    """Digests of all results of a checkout."""
    found: dict[str, str] = {}
    if options.only != "runs":
        command = [sys.executable, __file__, str(checkout), "--measure-zoo"]
        found |= json.loads(subprocess.check_output(command, env=environment(checkout)))
    if options.only != "zoo":
        folder.mkdir(parents=True, exist_ok=True)
        found |= measure_runs(checkout, folder, options.steps)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "other", type=Path, nargs="?", help="the other checkout, or a file of --write"
    )
    parser.add_argument("--steps", type=int, default=30, help="training steps. Default: 30")
    parser.add_argument("--only", choices=["zoo", "runs"], help="compare only one of the two")
    parser.add_argument("--keep", type=Path, help="folder for the runs and outputs")
    parser.add_argument("--write", type=Path, help="write the results of this checkout as JSON")
    parser.add_argument("--measure-zoo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure_zoo:
        print(json.dumps(measure_zoo()))
        return 0
    folder = options.keep or Path(tempfile.mkdtemp())
    first = measure(ROOT, folder / "this", options)
    if options.write:
        options.write.write_text(json.dumps(first, indent=1))
    if options.other is None:
        return 0
    if options.other.is_file():
        second = json.loads(options.other.read_text())
    else:
        second = measure(options.other.resolve(), folder / "other", options)
    different = [name for name in first if first[name] != second.get(name)]
    missing = [] if options.only else sorted(second.keys() - first.keys())
    for name in different:
        print(f"different: {name}")
    for name in missing:
        print(f"only in {options.other}: {name}")
    print(f"{len(first) - len(different)} of {len(first) + len(missing)} results are equal")
    return 1 if different or missing else 0


if __name__ == "__main__":
    sys.exit(main())
