"""What is included and asked for where, in the sources themselves.

usage: check_sources.py SOURCE foreign_headers|torch_differences_in_one_file

foreign_headers               the headers of LibTorch, libcurl and cpp-httplib are included only by the folders that are
                              built with them (the includes of a machine that has them all would not tell)
torch_differences_in_one_file a version of LibTorch is asked for only in trainer/src/c10d_compat.hpp
"""

import pathlib
import re
import sys

FOLDERS = "schema", "writer", "sync", "trainer", "tools", "tests"
SUFFIXES = ".c", ".cpp", ".h", ".hpp"
# What a header's name begins with, and where it may be included.
FOREIGN = {
    r"(?:torch|c10d?|ATen|caffe2|gloo)/": ("trainer/", "tests/trainer/"),
    r"curl/": ("sync/",),
    r"httplib\.h": ("tools/wandb-standin/", "tests/standin/"),
}
COMPAT = "trainer/src/c10d_compat.hpp"


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path.relative_to(root).as_posix(), path.read_text()


def matches(pattern, text):
    for match in re.finditer(pattern, text, re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 1, match[0].strip()


def foreign_headers(root):
    wrong, seen = [], set()
    for name, text in sources(root):
        for header, places in FOREIGN.items():
            pattern = rf'^[ \t]*#[^\n]*\b(?:include|has_include|__has_include)[ \t]*\(?[ \t]*[<"]{header}[^\n]*'
            for line, what in matches(pattern, text):
                seen.add(header)
                if not name.startswith(places):
                    wrong.append(f"{name}:{line}: {what}   belongs only in {' and '.join(places)}")
    wrong += [f"nobody includes {header}: does this check still look for the right thing?" for header in FOREIGN.keys() - seen]
    return wrong


def torch_differences_in_one_file(root):
    wrong, seen = [], False
    for name, text in sources(root):
        for line, what in matches(r"^.*\bTORCH_VERSION_(?:MAJOR|MINOR|PATCH)\b.*", text):
            seen = seen or name == COMPAT
            if name != COMPAT:
                wrong.append(f"{name}:{line}: {what}   belongs only in {COMPAT}")
    return wrong if seen else wrong + [f"{COMPAT} asks for no version: does this check still look for the right thing?"]


if __name__ == "__main__":
    checks = {check.__name__: check for check in (foreign_headers, torch_differences_in_one_file)}
    found = checks[sys.argv[2]](pathlib.Path(sys.argv[1]))
    sys.exit("\n".join(found) if found else 0)
