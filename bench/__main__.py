"""Studies and measurements of seqloom: see bench/README.md.

python -m bench                      list all studies and programs
python -m bench NAME [options]       measure; results go to bench/results, or to --out FOLDER
python -m bench NAME --out bench/store
                                     measure for docs: also updates its pages
python -m bench tables [NAME …]      write the generated parts of the pages from bench/store
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench import runner, store
from bench.machine import describe_environment
from bench.programs import PROGRAMS, Program
from bench.study import Study, load_study, study_names


def main(arguments: Sequence[str] | None = None) -> None:
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name == "tables":
        write_tables(rest)
    elif name in study_names():
        run_study(load_study(name), rest)
    elif name in PROGRAMS:
        run_program(name, PROGRAMS[name], rest)
    elif name in ("-h", "--help"):
        print(f"{__doc__}\n{list_all()}")
    else:
        sys.exit(f"there is no study or program {name}; python -m bench lists all")


def list_all() -> str:
    lines = [f"  {name:18}{load_study(name).facts['help']}" for name in study_names()]
    programs = [f"  {name:18}{program.help}" for name, program in PROGRAMS.items()]
    return "\n".join(["studies:", *lines, "\nprograms:", *programs])


def build_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m bench {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out",
        type=lambda text: Path(text).resolve(),
        default=store.RESULTS,
        help="folder of the results (default: bench/results). Existing results of a study are kept",
    )
    return parser


def run_study(study: Study, arguments: Sequence[str]) -> None:
    parser = build_parser(study.name, study.facts["help"])
    runner.add_options(parser, study)
    options = parser.parse_args(arguments)
    runner.run(study, options)
    if options.out == store.STORE and not options.one:
        write_tables([study.name])


def run_program(name: str, program: Program, arguments: Sequence[str]) -> None:
    module = import_module(program.module)
    parser = build_parser(name, module.__doc__)
    module.add_options(parser)
    options = parser.parse_args(arguments)
    options.command = shlex.join(["python", "-m", "bench", name, *arguments])
    options.earlier = store.read(name, options.out)
    for results in module.measure(options):
        about = {**describe_environment(), "command": options.command}
        store.write(name, {**results, "about": about}, options.out)
    print(module.table(store.read(name, options.out)))
    if options.out == store.STORE:
        write_tables([name])
        if hasattr(module, "draw"):
            module.draw()


def write_tables(names: Sequence[str]) -> None:
    from bench.studies.recipes import write_headers
    from bench.tables import write_pages

    for path in write_pages(names):
        print(f"updated {path.relative_to(store.ROOT)}")
    if not names or {"recipes", "seeds"} & set(names):
        write_headers(load_study("recipes"), store.read("recipes"))


if __name__ == "__main__":
    main()
