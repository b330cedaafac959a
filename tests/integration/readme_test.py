"""The README kept true: the commands that it shows are run as they stand there, and its exit statuses are the programs' own.

usage: readme_test.py README BIN_FOLDER QUICK_LOG      the program that the README shows, compiled
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

README = pathlib.Path(sys.argv[1]).read_text()
BIN = pathlib.Path(sys.argv[2]).resolve()
QUICK_LOG = pathlib.Path(sys.argv[3]).resolve()
KEY = "local-" + "0123456789abcdef" * 3


def block_of(language, heading):
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.search(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[1]


class InAFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="ranklog-readme-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        self.variables = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.folder), "NO_PROXY": "127.0.0.1",
                          "RANKLOG_SYSTEM_METRICS": "off"}
        # A build with a sanitizer brings its own settings.
        self.variables.update({name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")})

    def run_here(self, command):
        return subprocess.run(command, cwd=self.folder, env=self.variables, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)

    def serve(self):
        port = self.folder / "port"
        port.unlink(missing_ok=True)
        server = subprocess.Popen([str(BIN / "wandb-standin"), "--dir", str(self.folder / "server"), "--port-file", str(port)],
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (server.kill(), server.wait()))
        deadline = time.monotonic() + 60
        while not (port.exists() and port.read_text().strip()):
            self.assertLess(time.monotonic(), deadline, "wandb-standin does not listen")
            time.sleep(0.05)
        self.variables["WANDB_BASE_URL"] = f"http://127.0.0.1:{port.read_text().strip()}"
        return server


class LogInAMinute(InAFolder):
    def test_the_commands_do_what_their_comments_say(self):
        commands = block_of("sh", "Log in a minute").splitlines()
        self.assertEqual([command.split()[0] for command in commands],
                         ["ranklog", "ranklog", "ranklog", "wandb-sync", "WANDB_API_KEY=..."])
        logged = self.run_here([str(QUICK_LOG)])
        self.assertEqual(logged.returncode, 0, logged.stdout)
        self.serve()
        outputs = []
        for command in commands + commands[-1:]:
            # The key is the one thing that a reader fills in.
            done = self.run_here(["bash", "-c", command.replace("WANDB_API_KEY=...", f"WANDB_API_KEY={KEY}")])
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}")
            outputs.append(done.stdout)
        listed, queried, plotted, planned, uploaded, again = outputs
        self.assertRegex(listed, r"distributed-wandb +\S+ +my-experiment +1 +1/1 +finished +100\b")
        self.assertRegex(queried, r"(?m)^ *0 +0\.0518737751763962\d*$")  # the mean of 1/1 ... 1/100
        self.assertIn("100 points, steps 0 to 99", plotted)
        self.assertIn("Total: 1 run, 100 rows, 100 steps", planned)
        self.assertRegex(uploaded, r"(?m)^1 run uploaded$")
        self.assertRegex(again, r"(?m)^0 runs uploaded, skipped 1 up to date")


def statuses_in_table():
    table = README.split("| exit status | meaning |\n")[1].split("\n\n")[0]
    rows = {}
    for line in table.splitlines()[1:]:
        numbers, meaning = re.fullmatch(r"\| ([\d, ]+) \| (.*) \|", line).groups()
        rows.update({int(number): meaning for number in numbers.split(",")})
    return rows


def statuses_in_help(program):
    """{status: meaning} of the last section of --help."""
    text = subprocess.run([str(BIN / program), "--help"], text=True, capture_output=True, timeout=60).stdout
    section = re.split(r"(?m)^Exit status:?", text)[1].split("Of several,")[0]
    parts = re.split(r"(?:^|;|\n|\()\s*(\d+):?(?=\s)", re.sub(r"128 \+ n .*", "", section))
    return {int(parts[i]): " ".join(parts[i + 1].split()) for i in range(1, len(parts), 2)}


# A word that the meaning has wherever it is told.
WORDS = {1: "fail|could not|not found", 2: "wrong|usage", 4: "key|credentials|refused", 5: "damaged",
         75: "again|passing|preempted", 130: "Ctrl-C|interrupted", 143: "SIGTERM"}


class ExitStatuses(InAFolder):
    def test_the_table_and_the_help_texts_tell_the_same(self):
        table = statuses_in_table()
        self.assertLessEqual({0, 1, 2, 4, 5, 75, 130, 143}, set(table))
        told = {program: statuses_in_help(program) for program in ("ranklog", "wandb-sync", "wandb-standin", "ranklog-train")
                if (BIN / program).exists()}
        self.assertEqual(sorted(told["ranklog"]), [0, 1, 2, 5])
        self.assertEqual(sorted(told["wandb-sync"]), [0, 1, 2, 4, 5, 75, 130, 143])
        self.assertEqual(sorted(told["wandb-standin"]), [0, 1, 2, 5])
        for program, statuses in {"README": table, **told}.items():
            self.assertLessEqual(set(statuses), set(table), program)
            for status, meaning in statuses.items():
                self.assertRegex(meaning, f"(?i){WORDS.get(status, '.')}", f"{program}: {status}")

    def test_a_server_that_is_stopped_has_done_what_it_was_asked(self):
        self.assertIn("`wandb-standin`: also stopped by Ctrl-C or SIGTERM", statuses_in_table()[0])
        for number in (signal.SIGINT, signal.SIGTERM):
            server = self.serve()
            server.send_signal(number)
            self.assertEqual(server.wait(60), 0)

    def test_a_folder_without_logs_is_1_for_ranklog_and_2_for_wandb_sync(self):
        self.assertIn("`wandb-sync`: also no logs where they were looked for (`ranklog`: 1)", statuses_in_table()[2])
        (self.folder / "empty").mkdir()
        for paths in (["empty"], ["nowhere"], []):
            for command, status in ((["ranklog", "ls"], 1), (["wandb-sync", "plan"], 2)):
                done = self.run_here([str(BIN / command[0]), *command[1:], *paths])
                self.assertEqual(done.returncode, status, f"{command} {paths}: {done.stdout}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
