"""tools/test on a project of a few tests: what is skipped says why, and ctest has the last word.

usage: test_script_test.py TEST_SCRIPT SKIPPING_PROGRAM      a GoogleTest program that skips
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv[1])
SKIPPING = pathlib.Path(sys.argv[2]).resolve()

PRESETS = """{"version": 6, "configurePresets": [{"name": "ci", "generator": "Ninja", "binaryDir": "${sourceDir}/build/ci"}],
"buildPresets": [{"name": "ci", "configurePreset": "ci"}],
"testPresets": [{"name": "ci", "configurePreset": "ci", "output": {"outputOnFailure": true}}]}"""
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(sky LANGUAGES NONE)
enable_testing()
foreach(name Sky.HasAMoon Sky.HasStars Sky.IsUp Night.IsDark)
  add_test(NAME ${{name}} COMMAND "{SKIPPING}" --gtest_filter=${{name}})
  set_tests_properties(${{name}} PROPERTIES SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]") # as gtest_discover_tests() does
endforeach()
function(shell_test name script)
  add_test(NAME ${{name}} COMMAND sh -c "${{script}}")
  set_tests_properties(${{name}} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
shell_test(Shell.skips "echo looking; echo 'skipped: no telescope'; exit 77")
shell_test(Shell.is_silent "exit 77")
shell_test(Shell.passes "echo 'skipped: said by a test that passes'")
shell_test(Shell.fails "echo what went wrong; exit 1")
"""


class TestScript(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="ranklog-test-script-")
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "tools").mkdir()
        shutil.copy(SCRIPT, cls.folder / "tools/test")
        packages = cls.folder / "tools/install-packages"
        packages.write_text("#!/bin/sh\necho install-packages \"$@\"\n")
        packages.chmod(0o755)
        (cls.folder / "CMakePresets.json").write_text(PRESETS)
        (cls.folder / "CMakeLists.txt").write_text(PROJECT)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_script(self, *arguments):
        done = subprocess.run([str(self.folder / "tools/test"), *arguments], cwd="/", text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=120)
        return done.returncode, done.stdout

    def test_each_skip_says_why_before_the_summary(self):
        _, output = self.run_script()
        shown, summary = re.fullmatch(r"(.*?\n)(\d+% tests passed.*)", output, re.DOTALL).groups()
        self.assertEqual(sorted(line for line in shown.splitlines() if line.startswith("skipped: ")), [
            "skipped: Night.IsDark: it is day",
            "skipped: Shell.is_silent: it gave no reason",
            "skipped: Shell.skips: no telescope",
            "skipped: Sky.HasAMoon: it is new moon and overcast",
            "skipped: Sky.HasStars: it gave no reason",
        ])
        self.assertNotIn("skipped: ", summary)
        self.assertEqual(summary.count("(Skipped)"), 5)
        self.assertIn("Shell.fails (Failed)", summary)

    def test_the_rest_of_ctests_output_is_there_once(self):
        _, output = self.run_script()
        self.assertTrue(output.startswith("install-packages --tests\n"), output)
        for line in ("Start 1: Sky.HasAMoon", "what went wrong", "tests passed", "Total Test time", "8 - Shell.fails (Failed)"):
            self.assertEqual(output.count(line), 1, f"{line}\n{output}")

    def test_the_status_is_ctests(self):
        self.assertEqual(self.run_script()[0], 8)
        status, output = self.run_script("ci", "-R", "passes|Night")
        self.assertEqual(status, 0, output)
        self.assertIn("skipped: Night.IsDark: it is day\n", output)
        self.assertTrue(output.rstrip().endswith("4 - Night.IsDark (Skipped)"), output)

    def test_listing_the_tests_tells_no_reasons_of_an_earlier_run(self):
        self.run_script()
        status, output = self.run_script("ci", "-N")
        self.assertEqual(status, 0, output)
        self.assertNotIn("skipped: ", output)
        self.assertIn("Total Tests: 8", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
