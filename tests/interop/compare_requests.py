#!/usr/bin/env python3
"""Compares, for one tiny run, what the official client and wandb-sync ask of the server: fields, not bytes.

Every difference must be in the list of accepted ones, and every entry of the list must still be a difference.
"""

import argparse
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from environment import client_environment, python_with_wandb
from standin import Standin

HERE = pathlib.Path(__file__).resolve().parent
JSON_TEXT_VARIABLES = {"config", "metadata", "summaryMetrics"}


def type_name(value):
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "text"), (list, "list")):
        if isinstance(value, kind):
            return name
    return "object"


def paths(value, prefix, depth=6):
    """"a.b: integer" for everything inside; null counts as absent, as the protocol has it."""
    if isinstance(value, dict) and value and depth > 0:
        for key, inner in value.items():
            yield from paths(inner, f"{prefix}.{key}" if prefix else key, depth - 1)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from paths(inner, f"{prefix}[]", depth)
    elif value is not None:
        yield f"{prefix}: {type_name(value)}"


def graphql_facts(request):
    name = request["operation"]
    yield f"operation {name}"
    for variable, kind in re.findall(r"\$(\w+)\s*:\s*([\w\[\]!]+)", request["body"]["query"].split("{")[0]):
        yield f"declared {name} ${variable}: {kind}"
    for variable, value in (request["body"].get("variables") or {}).items():
        if variable in JSON_TEXT_VARIABLES and isinstance(value, str):
            yield f"value {name} {variable}: JSON text"
            yield from (f"{variable} {fact}" for fact in paths(json.loads(value), "", depth=3))
        else:
            yield from (f"value {name} {fact}" for fact in paths(value, variable))


def line_facts(stream, line):
    """Of a row. 1 and 1.0 are the same to the server, except where it wants an integer."""
    if stream.endswith((".json", ".jsonl")) or line.startswith("{"):
        for fact in paths(json.loads(line), ""):
            yield f"{stream} {fact if fact.startswith('_step') else fact.replace(': integer', ': number')}"
    else:
        yield f"{stream} plain text"


def file_stream_facts(request):
    body = request["body"]
    yield "heartbeat {}" if body == {} else "file_stream"
    for stream, chunk in body.pop("files", {}).items():
        yield from (f"file_stream files.{stream}.{key}: {type_name(value)}" for key, value in chunk.items())
        for line in chunk["content"]:
            yield from line_facts(stream, line)
    yield from (f"file_stream {fact}" for fact in paths(body, ""))


def header_facts(kind, headers):
    for name, value in headers.items():
        if name in ("content-type", "authorization", "content-encoding"):
            yield f"header {kind} {name}: {value}"
        elif name not in ("host", "content-length"):
            yield f"header {kind} {name}"


def request_facts(request):
    path = request["path"]
    if path == "/graphql":
        yield from header_facts("graphql", request["headers"])
        yield from graphql_facts(request)
    elif path.endswith("/file_stream"):
        yield from header_facts("file_stream", request["headers"])
        yield from file_stream_facts(request)
    elif path.startswith("/upload/"):
        yield from header_facts(f"{request['method']} upload", request["headers"])
    else:
        yield f"other {request['method']} {path}"


def plain_numbers(value):
    """1.0 as 1, as the official client prints it."""
    if isinstance(value, dict):
        return {key: plain_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def row_fact(line):
    row = {key: value for key, value in json.loads(line).items() if key not in ("_timestamp", "_runtime")}
    return f"row {json.dumps(plain_numbers(row), sort_keys=True)}"


def stored_facts(server):
    project = server.project()
    (run,) = project["runs"]
    yield from (row_fact(line) for line in server.history_lines(run["id"]))
    (artifact,) = project["artifacts"]
    yield from (f"run file {file['name']}" for file in run["files"])
    yield f"state {run['state']}"
    yield f"artifact digest {artifact['digest']}, {artifact['version']}, aliases {artifact['aliases']}"
    (manifest,) = server.folder.glob("*/*/artifacts/*/v0/wandb_manifest.json")
    yield from (f"manifest {fact}" for fact in paths(json.loads(manifest.read_text()), ""))


def facts_of(server):
    facts = set(stored_facts(server))
    for request in server.requests():
        facts.update(request_facts(request))
    return facts


def official_facts(options, folder):
    python = python_with_wandb(options.venv)
    folder.mkdir()
    with Standin(options.standin, folder / "state") as server:
        command = [str(python), str(HERE / "official_run.py"), "--id", "tiny", "--folder", str(folder)]
        subprocess.run(command, check=True, cwd=folder, env=client_environment(folder, server), timeout=300)
        return facts_of(server)


def our_facts(options, folder):
    folder.mkdir()
    with Standin(options.standin, folder / "state") as server:
        environment = client_environment(folder, server)
        command = [options.tiny_run, str(folder / "logs"), str(folder)]
        subprocess.run(command, check=True, cwd=folder, env=environment, timeout=60)
        command = [options.sync, str(folder / "logs"), "--strategy", "main"]
        subprocess.run(command, check=True, env=environment, timeout=300)
        return facts_of(server)


def read_accepted(path):
    """Patterns by whether the difference may also be absent (written with a leading "? ")."""
    entries = []
    for line in pathlib.Path(path).read_text().splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            entries.append((line.removeprefix("? "), line.startswith("? ")))
    return entries


def matches(pattern, difference):
    return fnmatch.fnmatchcase(difference, pattern.replace("[", "[[]"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, what in (
        ("standin", "the program wandb-standin"),
        ("venv", "folder of the official client's environment, made if need be"),
        ("sync", "the program wandb-sync"),
        ("tiny-run", "the program that logs the run with ranklog"),
        ("accepted", "the list of accepted differences"),
    ):
        parser.add_argument(f"--{name}", required=True, type=lambda path: str(pathlib.Path(path).resolve()), help=what)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ranklog-interop-") as temp:
        official = official_facts(options, pathlib.Path(temp) / "official")
        ours = our_facts(options, pathlib.Path(temp) / "ours")
    differences = [f"official: {fact}" for fact in official - ours] + [f"ours: {fact}" for fact in ours - official]
    accepted = read_accepted(options.accepted)
    unexplained = sorted(d for d in differences if not any(matches(pattern, d) for pattern, _ in accepted))
    stale = [p for p, optional in accepted if not optional and not any(matches(p, d) for d in differences)]
    print(f"{len(official & ours)} facts are the same, {len(differences)} differ")
    for difference in unexplained:
        print(f"not in the list of accepted differences: {difference}")
    for pattern in stale:
        print(f"accepted, but no longer a difference: {pattern}")
    sys.exit(1 if unexplained or stale else 0)


if __name__ == "__main__":
    main()
