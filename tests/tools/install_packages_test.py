"""tools/install-packages in front of a machine that is made up: its PATH holds nothing but stand-ins that note their calls.

usage: install_packages_test.py INSTALL_PACKAGES
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv[1])
BASH = shutil.which("bash")
APT = "apt-get -q -y"


def listed(name):
    return re.search(rf"^{name}=\(([^)]*)\)", SCRIPT.read_text(), re.MULTILINE)[1].split()


BUILD = listed("build")
TESTS = BUILD + listed("tests")


class InstallPackages(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="ranklog-packages-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        (self.bin / "env").symlink_to(shutil.which("env"))
        self.calls_file = self.folder / "calls"
        self.calls_file.touch()

    def program(self, name, body):
        path = self.bin / name
        path.write_text(f"#!{BASH}\n{body}\n")
        path.chmod(0o755)

    def machine(self, installed, uid=0, sudo=True, half_removed=()):
        """One that has these packages; apt-get notes its call and who asked for it, and does nothing."""
        (self.folder / "installed").write_text("".join(f"{name} installed\n" for name in installed) +
                                               "".join(f"{name} config-files\n" for name in half_removed))
        # dpkg-query -W -f FORMAT PACKAGE
        self.program("dpkg-query", f"""
          [ "$1 $2 $3" = '-W -f ${{db:Status-Status}}' ] || {{ echo "dpkg-query $*" >> '{self.calls_file}'; exit 2; }}
          while read -r name status; do
            if [ "$name" = "$4" ]; then printf %s "$status"; exit 0; fi
          done < '{self.folder}/installed'
          echo "dpkg-query: no packages found matching $4" >&2
          exit 1""")
        self.program("apt-get", f"""echo "${{BY:-}}[$DEBIAN_FRONTEND] apt-get $*" >> '{self.calls_file}'""")
        self.program("id", f'[ "$*" = -u ] && echo {uid}')
        if sudo:
            self.program("sudo", 'BY="sudo " exec "$@"')

    def run_script(self, *flags):
        done = subprocess.run([BASH, str(SCRIPT), *flags], env={"PATH": str(self.bin)}, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def calls(self):
        return self.calls_file.read_text().splitlines()

    def test_where_all_is_there_nothing_is_called_and_nothing_said(self):
        self.machine(TESTS, uid=1000)
        self.assertEqual(self.run_script("--tests"), (0, "", ""))
        self.assertEqual(self.calls(), [])

    def test_what_only_tests_need_is_not_asked_for_without_them(self):
        self.machine(BUILD)
        self.assertEqual(self.run_script(), (0, "", ""))
        self.assertEqual(self.calls(), [])
        status, output, _ = self.run_script("--tests")
        self.assertEqual((status, output), (0, f"Installing Debian packages: {' '.join(TESTS[len(BUILD):])}\n"))

    def test_root_installs_what_is_missing_and_no_more(self):
        missing = ["libsqlite3-dev", "libgtest-dev"]
        self.machine([name for name in TESTS if name not in missing])
        self.assertEqual(self.run_script("--tests"), (0, f"Installing Debian packages: {' '.join(missing)}\n", ""))
        self.assertEqual(self.calls(), [f"[noninteractive] {APT} update",
                                        f"[noninteractive] {APT} install --no-install-recommends {' '.join(missing)}"])

    def test_a_removed_package_whose_settings_remain_is_missing(self):
        self.machine([name for name in BUILD if name != "cmake"], half_removed=["cmake"])
        self.assertEqual(self.run_script()[:2], (0, "Installing Debian packages: cmake\n"))

    def test_a_user_installs_through_sudo(self):
        self.machine([name for name in BUILD if name != "cmake"], uid=1000)
        self.assertEqual(self.run_script()[:2], (0, "Installing Debian packages: cmake\n"))
        self.assertEqual(self.calls(), [f"sudo [noninteractive] {APT} update",
                                        f"sudo [noninteractive] {APT} install --no-install-recommends cmake"])

    def test_root_needs_no_sudo(self):
        self.machine([name for name in BUILD if name != "cmake"], sudo=False)
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual(len(self.calls()), 2)

    def test_a_user_without_sudo_is_told_the_command(self):
        missing = ["ninja-build", "sqlite3"]
        self.machine([name for name in BUILD if name not in missing], uid=1000, sudo=False)
        status, output, errors = self.run_script()
        self.assertEqual((status, output), (1, ""))
        self.assertIn("only root may install them: ninja-build sqlite3\n", errors)
        self.assertIn("Run as root: apt-get install --no-install-recommends ninja-build sqlite3\n", errors)
        self.assertEqual(self.calls(), [])

    def test_a_failure_of_apt_get_is_the_scripts_failure(self):
        self.machine([name for name in BUILD if name != "cmake"])
        for what in ("update", "install"):
            self.program("apt-get", f'[[ " $* " != *" {what} "* ]] || exit 100')
            self.assertEqual(self.run_script()[0], 100, what)

    def test_another_distribution_is_told_the_list_and_may_go_on(self):
        for lacks in ("apt-get", "dpkg-query"):
            self.machine([])
            (self.bin / lacks).unlink()
            status, output, errors = self.run_script("--tests")
            self.assertEqual((status, output), (0, ""), lacks)
            self.assertIn("install it your way: " + " ".join(TESTS) + "\n", errors)
            self.assertEqual(self.calls(), [])

    def test_an_unknown_flag_is_refused_before_anything_is_done(self):
        self.machine([])
        status, output, errors = self.run_script("--test")
        self.assertEqual((status, output, errors), (2, "", "usage: tools/install-packages [--tests]\n"))
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
