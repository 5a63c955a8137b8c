"""seqloom beside its peers: see bench/README.md."""

import argparse
import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import decoding, decoding_table, page, training, training_table
from bench.contenders import DECODING, ROOT, TRAINING, Contender
from bench.machine import about
from bench.prepare import MULTI30K, prepare
from bench.rounds import Plan
from bench.workload import KINDS, Kind, Workload

WORK = ROOT / "bench" / ".work"
DRAFTS = WORK / "results"


def tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def main() -> None:
    chosen = parse()
    if chosen.what == "page":
        page.write()
        return
    data = str(MULTI30K) if chosen.data == "multi30k" else chosen.data
    tatoeba = data == "tatoeba"
    folder = prepare(data, WORK / ("tatoeba" if tatoeba else "multi30k"))
    facts = {
        "about": about(Workload.load(folder / "transformer.json").seed),
        "data": "Tatoeba German→English (bundled)" if tatoeba else "Multi30k German→English",
        "rounds": chosen.rounds,
    }
    out = page.RESULTS if chosen.write else DRAFTS
    out.mkdir(parents=True, exist_ok=True)
    if chosen.what in ("training", "all"):
        models = [chosen.model] if chosen.model else list(KINDS)
        results = {model: train(folder, model, chosen) for model in models}
        save(out / "training-cpu.json", {**facts, "models": results})
    if chosen.what in ("decoding", "all"):
        save(out / "decoding-cpu.json", {**facts, "contenders": decode(folder, chosen)})
    if chosen.write:
        page.write()


def parse(arguments: Sequence[str] | None = None) -> Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", choices=["training", "decoding", "all", "page"])
    parser.add_argument("--model", choices=KINDS, help="for training; all of them")
    parser.add_argument(
        "--data", default="multi30k", help="multi30k, tatoeba, or a folder with Multi30k's files"
    )
    keys = sorted({one.key for one in (*TRAINING, *DECODING)})
    parser.add_argument("--peers", nargs="*", choices=keys, help="all of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a window")
    parser.add_argument("--together", type=int, default=3, help="peers whose models share memory")
    parser.add_argument("--write", action="store_true", help="the results and the page in docs")
    chosen = parser.parse_args(arguments)
    if chosen.write and (chosen.model or chosen.peers is not None):
        parser.error("--write replaces whole tables; leave --model and --peers out")
    return chosen


def plan(chosen: Namespace, share: int = 1) -> Plan:
    lock = os.environ.get("BENCH_LOCK")
    return Plan(chosen.rounds, chosen.seconds / share, tell, Path(lock) if lock else None)


def wanted(contenders: Sequence[Contender], chosen: Namespace, model: str) -> list[Contender]:
    return [
        one
        for one in contenders
        if model in one.kinds and (chosen.peers is None or one.key in chosen.peers)
    ]


def train(folder: Path, model: Kind, chosen: Namespace) -> list[dict[str, Any]]:
    """All contenders, a few at a time."""
    peers = wanted(TRAINING, chosen, model)
    groups = []
    for start in range(0, max(len(peers), 1), chosen.together):
        some = peers[start : start + chosen.together]
        path = folder / f"{model}.json"
        groups.append(training.compare(path, some, plan(chosen)))
    print(f"\n{model}\n{training_table.table(groups)}\n", flush=True)
    return groups


def decode(folder: Path, chosen: Namespace) -> dict[str, Any]:
    from bench.peers.seqloom.random_run import random_run

    path = folder / "transformer.json"
    random_run(Workload.load(path))
    peers = wanted(DECODING, chosen, "transformer")
    # Four settings share what a window of training has.
    found = decoding.compare(path, peers, plan(chosen, share=4))
    print(f"\ndecoding\n{decoding_table.table(found)}\n", flush=True)
    return found


def save(path: Path, results: dict[str, Any]) -> None:
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
