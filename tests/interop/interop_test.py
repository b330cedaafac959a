#!/usr/bin/env python3
"""wandb-standin proved with the official client: what the client sends is stored, and what is stored is what it meant."""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

from environment import client_environment, python_with_wandb
from standin import Standin

HERE = pathlib.Path(__file__).resolve().parent
# Digest of a.txt = "hello\n" and dir/b.bin = bytes 00..ff, in W&B's own tests too.
DIGEST = "e2c67e5f6fe46d434b500e7c2a821011"
PYTHON = None
PROGRAM = None


class OfficialClient(unittest.TestCase):
    def setUp(self):
        self._temp = tempfile.TemporaryDirectory(prefix="ranklog-interop-")
        self.addCleanup(self._temp.cleanup)
        self.folder = pathlib.Path(self._temp.name)

    def standin(self, script=None):
        return Standin(PROGRAM, self.folder / "state", script)

    def client(self, server, *command):
        """Runs the official client's Python; its last line of output is JSON."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [str(PYTHON), *command], cwd=home, env=client_environment(home, server), timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def official_run(self, server, *options):
        output = self.client(server, str(HERE / "official_run.py"), *options)
        return json.loads(output.splitlines()[-1])

    def check_rows(self, server, run_id, rows=5):
        lines = server.history_lines(run_id)
        self.assertEqual(len(lines), rows)
        self.assertIn('"odd":NaN', lines[1].replace(" ", ""))
        self.assertIn('"odd":Infinity', lines[2].replace(" ", ""))
        for step, line in enumerate(lines):
            row = json.loads(line)
            self.assertEqual(row["_step"], step)
            self.assertEqual(row["loss"], 1 / (step + 1))
            self.assertEqual(row["big"], 2**53 + 1)
            self.assertEqual(row["nested"], {"a": step})
            self.assertEqual(row["dist"]["_type"], "histogram")
            self.assertEqual(row["dist"]["values"], [1, step, 2])
            self.assertEqual(row["dist"]["bins"], [-1.0, 0.0, 0.5, 1.0])
            self.assertIn("_timestamp", row)

    def check_run(self, server, run_id, state="finished"):
        run = server.run(run_id)
        self.assertEqual(run["state"], state)
        self.assertEqual(
            [run["name"], run["group"], run["job_type"], run["tags"], run["notes"]],
            ["rank-1", "tiny", "train", ["a", "b"], "noted"],
        )
        self.assertEqual(run["anomalies"], [])
        self.assertEqual(run["last_step"], 4)
        self.assertEqual(run["summary"]["loss"], 1 / 5)
        self.assertEqual(run["summary"]["_step"], 4)
        self.assertIn("runtime", run["summary"]["_wandb"])
        config = server.config(run_id)
        self.assertEqual(config["learning_rate"]["value"], 0.1)
        self.assertEqual(config["layers"]["value"], [8, 16])
        self.assertEqual(config["nested"]["value"], {"a": 1})
        self.assertIn("t", config["_wandb"]["value"])
        self.assertLessEqual({"config.yaml", "wandb-metadata.json", "wandb-summary.json"}, {f["name"] for f in run["files"]})

    def check_artifact(self, server, digest):
        (artifact,) = server.project()["artifacts"]
        self.assertEqual(artifact["digest"], digest)
        self.assertEqual(artifact["digest"], DIGEST)
        self.assertEqual([artifact["version"], artifact["state"], artifact["type"]], ["v0", "COMMITTED", "model"])
        self.assertEqual(artifact["aliases"], ["best", "latest"])
        self.assertEqual(artifact["metadata"], {"step": 4})
        self.assertEqual({f["path"]: f["size"] for f in artifact["files"]}, {"a.txt": 6, "dir/b.bin": 256})

    def check_traffic(self, server):
        self.assertEqual(server.refused(), [], "the client asks for something that the stand-in does not know")
        self.assertEqual(server.files_with(server.key), [], "the key was stored")

    def test_online_run_is_stored_as_the_client_meant_it(self):
        with self.standin() as server:
            told = self.official_run(server, "--id", "online1")
            self.check_rows(server, "online1")
            self.check_run(server, "online1")
            self.check_artifact(server, told["artifact"]["digest"])
            self.assertEqual(told["artifact"]["version"], "v0")
            self.assertEqual(told["artifact"]["aliases"], ["best", "latest"])
            self.check_traffic(server)

    def test_a_failed_run_is_failed_and_the_same_artifact_is_no_new_version(self):
        with self.standin() as server:
            self.official_run(server, "--id", "first")
            told = self.official_run(server, "--id", "second", "--exit-code", "3")
            self.check_run(server, "second", state="failed")
            self.assertEqual(server.run("second")["exit_code"], 3)
            self.assertEqual(told["artifact"]["version"], "v0")
            self.check_artifact(server, told["artifact"]["digest"])

    def test_offline_run_is_stored_by_wandb_sync(self):
        with self.standin() as server:
            told = self.official_run(server, "--id", "offline1", "--mode", "offline")
            self.assertFalse((server.folder / "requests.jsonl").read_text(), "offline means no request")
            self.client(server, "-m", "wandb", "sync", told["folder"])
            self.check_rows(server, "offline1")
            self.check_run(server, "offline1")
            self.check_artifact(server, told["artifact"]["digest"])
            self.check_traffic(server)

    def test_what_is_stored_is_read_back_by_the_public_api(self):
        with self.standin() as server:
            self.official_run(server, "--id", "online1")
            found = self.client(server, str(HERE / "read_back.py"), "online1", str(self.folder))
            found = json.loads(found.splitlines()[-1])
            self.assertEqual([found["state"], found["name"]], ["finished", "rank-1"])
            self.assertEqual(found["config"]["layers"], [8, 16])
            self.assertEqual([row["_step"] for row in found["rows"]], [0, 1, 2, 3, 4])
            self.assertEqual([row["loss"] for row in found["rows"]], [1 / (step + 1) for step in range(5)])
            self.assertTrue(math.isnan(float(found["rows"][1]["odd"])))
            self.assertEqual([found["digest"], found["version"]], [DIGEST, "v0"])
            self.assertEqual(found["contents"], {"a.txt": b"hello\n".hex(), "dir/b.bin": bytes(range(256)).hex()})
            self.assertEqual(found["logged"], ["tiny-model:v0"])
            self.assertIn("config.yaml", found["files"])
            self.check_traffic(server)

    def test_scripted_faults_are_weather_to_the_client(self):
        rules = [
            {"operation": "UpsertBucket", "at": 1, "action": "status", "status": 429, "retry_after": 1},
            {"path": "*/file_stream", "at": 1, "action": "cut_after"},
            {"path": "*/file_stream", "at": 2, "action": "status", "status": 503, "retry_after": 1},
            {"path": "/upload/*", "method": "PUT", "at": 1, "action": "status", "status": 500},
            {"operation": "CommitArtifact", "at": 1, "action": "cut_after"},
            {"operation": "CreateArtifact", "at": 1, "action": "cut_before"},
        ]
        with self.standin({"rules": rules}) as server:
            told = self.official_run(server, "--id", "stormy")
            self.assertEqual({one["fault"] for one in server.requests() if "fault" in one},
                             {"status", "cut_after", "cut_before"})
            self.check_rows(server, "stormy")
            self.check_run(server, "stormy")
            self.check_artifact(server, told["artifact"]["digest"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--standin", required=True, help="the program wandb-standin")
    parser.add_argument("--venv", required=True, help="folder of the environment, made if need be")
    options, rest = parser.parse_known_args()
    global PYTHON, PROGRAM
    PYTHON = python_with_wandb(pathlib.Path(options.venv).resolve())
    PROGRAM = str(pathlib.Path(options.standin).resolve())
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
