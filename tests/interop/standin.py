"""wandb-standin as a child process, and what it holds."""

import json
import pathlib
import subprocess


class Standin:
    """A server on any free port, for the length of a `with` block."""

    key = "0123456789abcdef" * 2 + "01234567"

    def __init__(self, program, folder, script=None):
        self._program = program
        self.folder = pathlib.Path(folder)
        self._script = script

    def __enter__(self):
        command = [self._program, "--dir", str(self.folder), "--api-key", self.key]
        if self._script is not None:
            path = self.folder.parent / "script.json"
            path.write_text(json.dumps(self._script))
            command += ["--script", str(path)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        assert line.startswith("listening on http://"), f"wandb-standin said {line!r}"
        self.url = line.split()[-1]
        return self

    def __exit__(self, *_):
        self._process.terminate()
        assert self._process.wait(timeout=60) == 0, "wandb-standin did not stop cleanly"
        self._process.stdout.close()

    def state(self):
        shown = subprocess.run(
            [self._program, "show", "--json", "--dir", str(self.folder)], check=True, stdout=subprocess.PIPE, text=True
        )
        return json.loads(shown.stdout)

    def project(self):
        """The only project that it should hold."""
        (project,) = self.state()["projects"]
        return project

    def run(self, run_id):
        (run,) = [one for one in self.project()["runs"] if one["id"] == run_id]
        return run

    def history_lines(self, run_id):
        """As they came, one text a row."""
        (path,) = self.folder.glob(f"*/*/runs/{run_id}/history.jsonl")
        return path.read_text().splitlines()

    def config(self, run_id):
        (path,) = self.folder.glob(f"*/*/runs/{run_id}/config.json")
        return json.loads(path.read_text())

    def requests(self):
        return [json.loads(line) for line in (self.folder / "requests.jsonl").read_text().splitlines()]

    def refused(self):
        return [one for one in self.requests() if "error" in one]

    def files_with(self, text):
        """Files below the state folder that contain `text`."""
        return [p for p in self.folder.rglob("*") if p.is_file() and text.encode() in p.read_bytes()]
