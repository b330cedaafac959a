#!/usr/bin/env python3
"""Where the official client cannot be had, its tests are skipped, and say what was missing and why."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = "http://127.0.0.1:9"


class Skip(unittest.TestCase):
    def test_without_pypi_the_reason_names_the_client_and_what_broke(self):
        with tempfile.TemporaryDirectory(prefix="ranklog-skip-") as name:
            # No index, proxy or folder of wheels of this machine's.
            variables = {key: value for key, value in os.environ.items()
                         if not key.upper().startswith("PIP_") and not key.lower().endswith("_proxy")}
            variables.update(PIP_INDEX_URL=NOBODY, PIP_CONFIG_FILE=os.devnull)
            done = subprocess.run(
                [sys.executable, str(HERE / "interop_test.py"), "--standin", "/nowhere", "--venv", str(pathlib.Path(name, "venv")),
                 "OfficialClient.test_online_run_is_stored_as_the_client_meant_it"],
                env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.assertEqual(done.returncode, 77, done.stdout)
        reason, = [line for line in done.stdout.splitlines() if line.startswith("skipped: ")]
        if "python3-venv" in reason:
            return  # skipped before pip is asked, and that is named
        self.assertIn("wandb==0.31.0 cannot be had from PyPI", reason)
        self.assertIn("Connection refused", reason)

    def test_python_without_venv_names_the_package(self):
        with tempfile.TemporaryDirectory(prefix="ranklog-skip-") as name:
            python = pathlib.Path(name, "python3")
            python.write_text("#!/bin/sh\necho 'The virtual environment was not created.'\necho 'No ensurepip.'\nexit 1\n")
            python.chmod(0o755)
            done = subprocess.run(
                [sys.executable, "-c", "import sys, environment\nsys.executable = sys.argv[1]\n"
                 "environment.python_with_wandb(sys.argv[2])", str(python), str(pathlib.Path(name, "venv"))],
                cwd=HERE, env={**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (77, "skipped: python3 -m venv does not work here (Debian: install "
                                                          "python3-venv): The virtual environment was not created. No ensurepip.\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
