"""tools/quickstart itself, as its user runs it, over programs that are built already.

usage: quickstart_test.py QUICKSTART BIN_FOLDER

It runs twice in one folder, in an environment that has the settings of every launcher, of W&B and of a proxy that nobody
answers at; then each command that it recommends at its end is run.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

QUICKSTART = pathlib.Path(sys.argv[1])
BIN = pathlib.Path(sys.argv[2])
# Where nothing listens: whatever goes through it fails.
DEAD = "http://127.0.0.1:9"
HOSTILE = {"http_proxy": DEAD, "HTTP_PROXY": DEAD, "all_proxy": DEAD, "ALL_PROXY": DEAD, "no_proxy": "", "NO_PROXY": "",
           "SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "17", "OMPI_COMM_WORLD_RANK": "5",
           "OMPI_COMM_WORLD_SIZE": "6", "PMI_RANK": "1", "PMI_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "4", "NNODES": "7",
           "NODE_RANK": "6", "RANK": "3", "WORLD_SIZE": "9", "MASTER_PORT": "1", "RANKLOG_DIR": "/nowhere",
           "RANKLOG_PROJECT": "elsewhere", "WANDB_DIR": "/nowhere", "WANDB_MODE": "disabled", "WANDB_BASE_URL": DEAD}
STEPS = 2 * 22  # of two epochs


def environment():
    return {**os.environ, **HOSTILE, "OMP_NUM_THREADS": "1"}


def quickstart(folder, *flags, bin=BIN):
    return subprocess.run([str(QUICKSTART), "--bin", str(bin), *flags], cwd=folder, env=environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)


def await_true(condition, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def programs_in(folder):
    """Pids of whatever runs with its working directory in the folder."""
    found = []
    for link in pathlib.Path("/proc").glob("[0-9]*/cwd"):
        try:
            if pathlib.Path(os.readlink(link)).is_relative_to(folder):
                found.append(int(link.parent.name))
        except OSError:
            pass  # it has ended, or is not ours
    return found


class Quickstart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="ranklog-quickstart-")
        cls.folder = pathlib.Path(cls.temporary.name).resolve()
        cls.runs = [quickstart(cls.folder, "--epochs", "2") for _ in range(2)]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        for run in self.runs:
            self.assertEqual(run.returncode, 0, run.stdout)
        self.output = self.runs[1].stdout

    def outputs_of(self, command):
        """What was printed after each such command, up to the next one or to the next heading."""
        parts = re.split(r"^(?:\$ |== )(.*)\n", self.output, flags=re.MULTILINE)
        found = [parts[i + 1] for i in range(1, len(parts), 2) if parts[i].startswith(command)]
        self.assertTrue(found, f"no {command} in:\n{self.output}")
        return found

    def test_it_can_be_run_again_and_cleans_up_only_after_itself(self):
        self.assertNotIn("Removing", self.runs[0].stdout)
        self.assertIn("Removing the result of the previous run", self.runs[1].stdout)
        with tempfile.TemporaryDirectory() as folder:
            foreign = pathlib.Path(folder, "ranklog-quickstart")
            foreign.mkdir()
            (foreign / "precious").write_text("")
            run = quickstart(folder)
            self.assertEqual(run.returncode, 2)
            self.assertIn("was not made by it", run.stdout)
            self.assertTrue((foreign / "precious").exists())

    def test_a_folder_without_the_programs_is_refused(self):
        run = quickstart(self.folder, bin=self.folder)
        self.assertEqual(run.returncode, 2)
        self.assertIn("there is no program ranklog in", run.stdout)

    def test_no_program_outlives_it(self):
        self.assertEqual(programs_in(self.folder), [])

    def test_ls_shows_one_experiment_of_four_ranks_on_two_nodes(self):
        overview, ranks = self.outputs_of("ranklog ls")
        self.assertRegex(overview, r"distributed-wandb +\w+ +digits-demo +1 +4/4 +finished")
        rows = re.findall(r"^ +0 +(\d) +(\d) +(\d) +\S+ +finished .*rank-0000(\d)\.db$", ranks, re.MULTILINE)
        self.assertEqual(rows, [(str(r), str(r % 2), str(r // 2), str(r)) for r in range(4)])
        self.assertEqual(len(re.findall(r"^   ranklog/.*checkpoints/step-\d+/model\.pt$", ranks, re.MULTILINE)), 2)

    def test_the_query_compares_the_ranks(self):
        self.assertIn("rank  node  steps  mean_loss  step_ms  wait_ms", self.output)
        table = self.output.split("rank  node  steps  mean_loss")[1].splitlines()[1:5]
        rows = [line.split() for line in table]
        self.assertEqual([row[:3] for row in rows], [[str(r), str(r // 2), str(STEPS)] for r in range(4)])
        for row in rows:
            for number in row[3:]:
                self.assertGreater(float(number), 0)

    def test_the_plot_has_a_curve_a_rank(self):
        chart, = self.outputs_of("ranklog plot loss")
        for rank in range(4):
            self.assertIn(f"rank {rank}", chart)
        self.assertRegex(chart, rf"{4 * STEPS} points, steps 0 to {STEPS - 1}, values ")
        self.assertNotIn("not drawn", chart)

    def test_three_rehearsals_and_three_uploads_give_1_2_and_4_runs(self):
        for strategy, count in (("main", "1 run"), ("node", "2 runs"), ("all", "4 runs")):
            plan, = self.outputs_of(f"wandb-sync ranklog --strategy {strategy} --dry-run")
            self.assertIn(f"Total: {count}, ", plan)
            upload, *again = [out for out in self.outputs_of(f"wandb-sync ranklog --strategy {strategy}") if out != plan]
            self.assertRegex(upload, rf"(?m)^{count} uploaded$")
            self.assertEqual(len(again), 1 if strategy == "all" else 0)
            for second in again:
                self.assertRegex(second, r"(?m)^0 runs uploaded, skipped 4 up to date")
        held, = self.outputs_of("wandb-standin show")
        self.assertIn("rehearsal/distributed-wandb · 7 runs · 2 artifact versions", held)
        self.assertNotIn("what a careful server would wonder about", held)

    def test_what_it_recommends_next_works(self):
        block = re.search(r"== 6\. Try next \(in (.*)\)\n((?:.+\n)+)", self.output)
        where, commands = block[1], block[2].splitlines()
        self.assertTrue(commands[0].startswith("export PATH="))
        self.assertEqual(len(commands), 6, commands)
        port_file = self.folder / "port"
        standin = subprocess.Popen([str(BIN / "wandb-standin"), "--dir", str(self.folder / "standin"), "--port", "0",
                                    "--port-file", str(port_file)], stdout=subprocess.DEVNULL)
        try:
            await_true(lambda: port_file.exists() and port_file.read_text().strip(), "wandb-standin listens")
            variables = {"PATH": os.environ["PATH"], "WANDB_API_KEY": "local-" + "0123456789abcdef" * 3,
                         "WANDB_BASE_URL": f"http://127.0.0.1:{port_file.read_text().strip()}", "OMP_NUM_THREADS": "1"}
            for command in commands[1:]:
                if command.startswith("sqlite3") and not shutil.which("sqlite3"):
                    continue  # tools/install-packages brings it
                run = subprocess.run(["bash", "-c", f"{commands[0]}\n{command}"], cwd=where, env=variables, text=True,
                                     capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
                self.assertEqual((run.returncode, bool(run.stdout)), (0, True), f"{command}\n{run.stdout}\n{run.stderr}")
        finally:
            standin.terminate()
            standin.wait(60)


class Stopped(unittest.TestCase):
    def test_training_ends_with_the_script(self):
        with tempfile.TemporaryDirectory(prefix="ranklog-stopped-") as name:
            folder = pathlib.Path(name).resolve()
            with open(folder / "output", "w") as output:
                script = subprocess.Popen([str(QUICKSTART), "--bin", str(BIN), "--epochs", "100000"], cwd=folder,
                                          env=environment(), stdout=output, stderr=subprocess.STDOUT)
            try:
                await_true(lambda: len(list(folder.rglob("rank-*.db"))) == 4, "four ranks log")
                script.send_signal(signal.SIGTERM)
                self.assertEqual(script.wait(120), 143, (folder / "output").read_text())
                self.assertEqual(programs_in(folder), [])
            finally:
                script.kill()
                script.wait()
                for pid in programs_in(folder):
                    os.kill(pid, signal.SIGKILL)


class PackagesForTheRecommendations(unittest.TestCase):
    def test_programs_of_others_come_with_the_packages_to_build(self):
        script = (QUICKSTART.parent / "install-packages").read_text()
        build = re.search(r"^build=\(([^)]*)\)", script, re.MULTILINE)[1].split()
        recommended = QUICKSTART.read_text().split("<<NEXT\n")[1].split("\nNEXT\n")[0].splitlines()
        others = {line.split()[0] for line in recommended} - {"export", *(path.name for path in BIN.iterdir())}
        self.assertEqual(others, {"sqlite3"})
        self.assertLessEqual(others, set(build))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
