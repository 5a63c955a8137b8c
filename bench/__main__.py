"""seqloom beside its peers: `python -m bench training`; see bench/README.md."""

import argparse
import sys
import time

from bench.contenders import ROOT, TRAINING
from bench.prepare import MULTI30K, prepare
from bench.training import compare
from bench.training_table import table
from bench.workload import KINDS

WORK = ROOT / "bench" / ".work"


def tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", choices=["training"])
    parser.add_argument("--model", choices=KINDS, default="transformer")
    parser.add_argument(
        "--data", default="multi30k", help="multi30k, tatoeba, or a folder with Multi30k's files"
    )
    parser.add_argument("--peers", nargs="*", help=f"of {[one.key for one in TRAINING]}; all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0, help="of a window")
    chosen = parser.parse_args()
    data = str(MULTI30K) if chosen.data == "multi30k" else chosen.data
    folder = prepare(data, WORK / ("tatoeba" if data == "tatoeba" else "multi30k"))
    peers = [
        one
        for one in TRAINING
        if (chosen.peers is None or one.key in chosen.peers) and chosen.model in one.kinds
    ]
    path = folder / f"{chosen.model}.json"
    print(table(compare(path, peers, chosen.rounds, chosen.seconds, tell)))


if __name__ == "__main__":
    main()
