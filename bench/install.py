"""Install the peers, each into its own environment under bench/.envs.

    python -m bench.install [NAME …]

torch is installed first, in the version of constraints.txt. Then, from bench/peers/requirements:

    NAME.without-dependencies.txt   packages installed with --no-deps, because they require another torch
    NAME.txt                        all other packages, pinned
    NAME.patch.py                   changes that the peer needs to run with current packages
"""

import subprocess
import sys

from bench.comparison.systems import ENVIRONMENTS, REQUIREMENTS, ROOT


def install(name: str) -> None:
    """Create the environment of a peer, replacing an existing one.

    Raises CalledProcessError if pip fails.
    """
    environment = ENVIRONMENTS / name
    python = environment / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
    subprocess.run([*pip, "torch", "numpy"], check=True)
    if (requirements := REQUIREMENTS / f"{name}.without-dependencies.txt").exists():
        subprocess.run([*pip, "--no-deps", "-r", str(requirements)], check=True)
    subprocess.run([*pip, "-r", str(REQUIREMENTS / f"{name}.txt")], check=True)
    if (patch := REQUIREMENTS / f"{name}.patch.py").exists():
        subprocess.run([str(python), str(patch)], check=True)


def main() -> None:
    all_peers = sorted(path.stem for path in REQUIREMENTS.glob("*.txt") if "." not in path.stem)
    failed = []
    for name in sys.argv[1:] or all_peers:
        print(f"{name} …", flush=True)
        try:
            install(name)
        except subprocess.CalledProcessError as error:
            failed.append(f"{name}: {error}")
    if failed:
        sys.exit(
            "These peers could not be installed and appear in the tables as not measured:\n"
            + "\n".join(failed)
        )


if __name__ == "__main__":
    main()
