"""A throw-away virtual environment with the official client, made once per build folder.

Where it cannot be made, the test that asked for it is skipped with the reason (ctest's status 77).
"""

import fcntl
import os
import pathlib
import re
import subprocess
import sys

WANDB = "wandb==0.31.0"  # the protocol page was checked against this release; change both together
SKIPPED = 77


def skip(reason):
    print(f"skipped: {' '.join(reason.split())}", flush=True)  # tools/test looks for this line
    sys.exit(SKIPPED)


def _run(command, timeout):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    return done.returncode, done.stdout


def _why(output):
    """pip ends with what it could not find; that it reached nobody stands further up."""
    last = (output.strip().splitlines()[-1:] or ["pip said nothing"])[0][:300]
    broken = re.findall(r"connection broken by '(.*)': /", output)
    return last + (" (" + re.sub("<[^>]*>: ", "", broken[-1])[:300] + ")" if broken else "")


def _create(folder):
    status, output = _run([sys.executable, "-m", "venv", "--clear", str(folder)], timeout=300)
    if status != 0:
        skip(f"python3 -m venv does not work here (Debian: install python3-venv): {output.strip()[-300:]}")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    try:
        status, output = _run(pip + ["--timeout", "20", "--retries", "1", WANDB], timeout=900)
    except subprocess.TimeoutExpired:
        skip(f"pip install {WANDB} did not end within 15 minutes")
    if status != 0:
        skip(f"{WANDB} cannot be had from PyPI: {_why(output)}")


def python_with_wandb(folder):
    """The interpreter of the environment in `folder`, which is made if need be."""
    folder = pathlib.Path(folder)
    complete = folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / (folder.name + ".lock"), "w") as lock:  # tests may run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists() or complete.read_text() != WANDB:
            _create(folder)
            complete.write_text(WANDB)
    return folder / "bin" / "python"


def client_environment(home, server):
    """Variables for the official client: this server, nobody's settings, no reports to anywhere."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "WANDB_BASE_URL": server.url,
        "WANDB_API_KEY": server.key,
        "WANDB_ERROR_REPORTING": "false",
        "WANDB_SILENT": "true",
    }
