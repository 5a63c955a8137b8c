"""Install the peers, each into an environment of its own under bench/.envs.

    python -m bench.install [NAME …]

torch comes first, pinned by constraints.txt. Then, from bench/peers/NAME:

    without-dependencies.txt   packages whose own pins would bring another torch (--no-deps)
    requirements.txt           everything else, pinned
    mend.py                    changes without which it does not run with today's packages
"""

import subprocess
import sys

from bench.contenders import ENVIRONMENTS, PEERS, ROOT


def install(name: str) -> None:
    """Make the environment anew; pip fails loudly."""
    folder, place = PEERS / name, ENVIRONMENTS / name
    python = place / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
    subprocess.run([*pip, "torch", "numpy"], check=True)
    if (listed := folder / "without-dependencies.txt").exists():
        subprocess.run([*pip, "--no-deps", "-r", str(listed)], check=True)
    subprocess.run([*pip, "-r", str(folder / "requirements.txt")], check=True)
    if (mend := folder / "mend.py").exists():
        subprocess.run([str(python), str(mend)], check=True)


def main() -> None:
    every = sorted(path.parent.name for path in PEERS.glob("*/requirements.txt"))
    failed = []
    for name in sys.argv[1:] or every:
        print(f"{name} …", flush=True)
        try:
            install(name)
        except subprocess.CalledProcessError as error:
            failed.append(f"{name}: {error}")
    if failed:
        sys.exit("could not be installed; the tables will say so:\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
