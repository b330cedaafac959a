#!/usr/bin/env python3
"""Reads rank files by schema/FORMAT.md alone, and compares them with what was logged.

    read_with_python.py FOLDER                    rank files and expected.jsonl (or .gz), which lists what they hold
    read_with_python.py --writer PROGRAM [ARG...] runs PROGRAM ARG... FOLDER first, which makes such a folder
    read_with_python.py --trace TRACE PROGRAM     PROGRAM TRACE FOLDER logs a history; what was read is compared with
                                                  TRACE itself. One that is not there is looked for in RANKLOG_TRACES
    read_with_python.py --list FOLDER             prints the listing instead
"""

import gzip
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    import zstandard
except ImportError:
    print("skipped: Python's zstandard is missing (Debian: python3-zstandard)")
    sys.exit(77)

NULL, FLOAT64, INT64, BOOL, STRING, JSON_TEXT = range(6)
STREAMS = HISTORY, SYSTEM, CONSOLE = range(3)
RECORDS = "config", "metric", "summary", "event", "artifact", "run_file"
MIXED = 255
MASK = (1 << 64) - 1
SEEN = set()  # ways to write something that were met


class Cursor:
    """Bytes that are taken from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise ValueError("the data end too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def unpack(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def signed(value):
    return value - (1 << 64) if value >> 63 else value


# --- Section 4 and 5: envelopes and chunks


def open_envelope(data):
    checksum, mode = struct.unpack_from("<IB", data)
    if zlib.crc32(data[4:]) != checksum or mode > 1:
        raise ValueError("damaged envelope")
    SEEN.add(("envelope", mode))
    return data[5:] if mode else zstandard.ZstdDecompressor().decompress(data[5:])


def stream(cursor, size):
    if size == 0:
        return b""
    mode = cursor.unpack("B")[0]
    SEEN.add(("stream", mode))
    if mode == 0:
        return cursor.take(size)
    if mode == 1:
        return cursor.take(1) * size
    assert mode == 2
    content = zstandard.ZstdDecompressor().decompress(cursor.take(cursor.varint()))
    assert len(content) == size
    return content


def unzigzag(word):
    return word >> 1 ^ (MASK if word & 1 else 0)


def restore(words, prediction, float_bits):
    """Words as they were before the prediction. float_bits: how many, or 0 for integers."""
    if prediction == 5:
        for i in range(1, len(words)):
            words[i] ^= words[i - 1]
        return words
    if prediction == 0:
        return words if float_bits else [unzigzag(word) for word in words]
    words = [unzigzag(word) for word in words]
    if prediction == 6:
        average = words[0]
        for i in range(1, len(words)):
            residual = words[i]
            words[i] = (average + residual) & MASK
            average = (average + (signed(residual) >> 3)) & MASK
    else:
        for first in range(prediction, 0, -1):
            for i in range(first, len(words)):
                words[i] = (words[i] + words[i - 1]) & MASK
    if not float_bits:
        return words
    sign, mask = 1 << float_bits - 1, (1 << float_bits) - 1
    return [word ^ sign if word & sign else ~word & mask for word in words]


def numbers(cursor, count, is_float=False):
    if count == 0:
        return []
    code = cursor.unpack("B")[0]
    view, prediction = code & 7, code >> 3
    SEEN.add(("float64" if is_float else "integers", view, prediction))
    decimals = cursor.unpack("B")[0] if view == 2 else 0
    shift = cursor.unpack("B")[0] if view == 4 else 0
    dictionary = [cursor.unpack("Q")[0] for _ in range(cursor.varint())] if view == 3 else []
    order = min(count, {0: 0, 5: 1, 6: 1}.get(prediction, prediction))
    first = [cursor.varint() for _ in range(order)]
    planes = [stream(cursor, count - order) for _ in range(cursor.unpack("B")[0])]
    words = first + [sum(plane[i] << 8 * n for n, plane in enumerate(planes)) for i in range(count - order)]
    words = restore(words, prediction, 32 if view == 1 else 64 - shift if view in (0, 4) and is_float else 0)
    if view == 1:
        words = [struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", word))[0]))[0]
                 for word in words]
    elif view == 2:
        words = [struct.unpack("<Q", struct.pack("<d", float(signed(word)) / 10.0**decimals))[0] for word in words]
    elif view == 3:
        words = [dictionary[word] for word in words]
    elif view == 4:
        words = [word << shift for word in words]
    return words


def texts(cursor, count):
    if count == 0:
        return []
    mode = cursor.unpack("B")[0]
    SEEN.add(("texts", mode))
    distinct = cursor.varint() if mode == 1 else count
    lengths = numbers(cursor, distinct)
    content = Cursor(stream(cursor, sum(lengths)))
    found = [content.take(length) for length in lengths]
    return [found[index] for index in numbers(cursor, count)] if mode == 1 else found


def values_of_kind(cursor, kind, count):
    if kind == NULL:
        return [0] * count
    if kind in (FLOAT64, INT64):
        return numbers(cursor, count, kind == FLOAT64)
    if kind == BOOL:
        packed = stream(cursor, (count + 7) // 8)
        return [packed[i // 8] >> i % 8 & 1 for i in range(count)]
    return texts(cursor, count)


def column(cursor, rows):
    tag = cursor.unpack("B")[0]
    SEEN.add(("column", tag))
    if tag != MIXED:
        return [(tag, value) for value in values_of_kind(cursor, tag, rows)]
    kinds = stream(cursor, rows)
    by_kind = {kind: iter(values_of_kind(cursor, kind, kinds.count(kind))) for kind in range(6)}
    return [(kind, next(by_kind[kind])) for kind in kinds]


def chunk_rows(data, keys):
    cursor = Cursor(open_envelope(data))
    stream_number, rows, columns = cursor.take(1)[0], cursor.varint(), cursor.varint()
    index_lengths = [cursor.varint() for _ in range(3)]
    heads = [(keys[cursor.varint()], cursor.varint()) for _ in range(columns)]
    sequences, steps, times = (whole(cursor, length, numbers, rows) for length in index_lengths)
    values = [{} for _ in range(rows)]
    for key, length in heads:
        for row, value in zip(values, whole(cursor, length, column, rows)):
            row[key] = value
    assert cursor.at == len(cursor.data)
    return stream_number, {s: (signed(step), signed(time), v)
                           for s, step, time, v in zip(sequences, steps, times, values)}


def whole(cursor, length, read, rows):
    """What stands in the next `length` bytes, and it takes all of them."""
    part = Cursor(cursor.take(length))
    result = read(part, rows)
    assert part.at == length
    return result


def check_stats(row, decoded):
    """The statistics must say what the chunk's own rows say."""
    cursor = Cursor(open_envelope(row["stats"]))
    assert cursor.take(1)[0] == row["stream"]
    ranges = [cursor.varint() for _ in range(3)] + list(cursor.unpack("4q"))
    columns = ["rows", "first_sequence", "last_sequence", "min_step", "max_step", "min_time_ns", "max_time_ns"]
    assert ranges == [row[name] for name in columns]
    steps = [step for step, _, _ in decoded.values()]
    times = [time for _, time, _ in decoded.values()]
    assert ranges == [len(decoded), min(decoded), max(decoded), min(steps), max(steps), min(times), max(times)]
    for _ in range(cursor.varint()):
        key, count, numbers, nans = (cursor.varint() for _ in range(4))
        low, high, last_kind, last = cursor.unpack("ddBd")
        values = [value for _, (_, _, row_values) in sorted(decoded.items()) for k, value in row_values.items()
                  if k == row["keys"][key]]
        assert count == len(values) == len(decoded)
        reals = [as_number(value) for value in values if value[0] in (FLOAT64, INT64)]
        finite = [number for number in reals if number == number]
        assert (numbers, nans) == (len(finite), len(reals) - len(finite))
        assert not finite or (low, high) == (min(finite), max(finite))
        assert last_kind == values[-1][0]
        number = as_number(values[-1]) if last_kind in (FLOAT64, INT64, BOOL) else 0.0
        assert last == number or number != number
    assert cursor.at == len(cursor.data)


def as_number(value):
    kind, bits = value
    if kind == FLOAT64:
        return struct.unpack("<d", struct.pack("<Q", bits))[0]
    return float(signed(bits))


# --- Section 6: the tail


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def payload_at(data, at):
    length, checksum = struct.unpack_from("<II", data, at)
    payload = data[at + 8:at + 8 + length]
    whole = length > 0 and len(payload) == length and (crc32c(payload) or 1) == checksum
    return payload if whole else None


def frames(data):
    """The payloads, past records that were never finished, up to a torn end."""
    at = 0
    while at + 8 <= len(data):
        payload = payload_at(data, at)
        if payload is None:
            at += 8
        else:
            yield payload
            at += (8 + len(payload) + 7) // 8 * 8


def field_value(cursor):
    kind = cursor.unpack("B")[0]
    if kind == NULL:
        return kind, 0
    if kind == BOOL:
        return kind, cursor.unpack("B")[0]
    if kind in (FLOAT64, INT64):
        return kind, cursor.unpack("Q")[0]
    return kind, cursor.take(cursor.unpack("I")[0])


def read_segment(data, state):
    if data[:8] != b"RKLGTAIL" or struct.unpack_from("<I", data, 8)[0] != 1:
        raise ValueError("not a tail segment of version 1")
    payloads = frames(data[16:])
    header = next(payloads)
    meta = state["meta"]
    if (struct.unpack_from("<I", header)[0], header[4:]) != (meta[b"rank"], meta[b"launch_token"]):
        return
    for payload in payloads:
        cursor = Cursor(payload)
        kind = cursor.unpack("B")[0]
        if kind == 1:
            key = cursor.unpack("I")[0]
            state["keys"][key] = cursor.rest()
            continue
        if kind > 21:
            continue  # of a later version
        sequence = cursor.unpack("Q")[0]
        if sequence <= meta[b"watermark"] or sequence in state["seen"]:
            continue
        state["seen"].add(sequence)
        if kind - 2 in STREAMS:
            step, time, count = cursor.unpack("qqI")
            fields = [(cursor.unpack("I")[0], field_value(cursor)) for _ in range(count)]
            state["rows"][kind - 2][sequence] = (step, time, {state["keys"][key]: value for key, value in fields})
        else:
            time = cursor.unpack("q")[0]
            apply_operation(state, kind, sequence, time, json.loads(cursor.rest()))


def apply_operation(state, kind, sequence, time, o):
    if kind == 16:
        state["config"][o["key"]] = [o["key"], o["json"]]
    elif kind == 17:
        state["metric"][o["name"]] = [o["name"], o["step_metric"], o["hidden"], o["step_sync"], o["summary"], o["goal"]]
    elif kind == 18:
        state["summary"][o["key"]] = [o["key"], o["json"]]
    elif kind == 19:
        state["event"][sequence] = [sequence, time, o.get("step"), o["kind"], o["json"]]
    elif kind == 20:
        files = [[f["name"], f["path"], f["size"], f["md5"], f["sha256"], f["reference"], f["json"]]
                 for f in o["files"]]
        state["artifact"][sequence] = [sequence, time, o["name"], o["type"], o["description"], o.get("step"),
                                       o.get("ttl_seconds"), o["aliases"], o["tags"], o["metadata"], files]
    elif kind == 21:
        add_file(state, [sequence, time, o["name"], o["path"], o["size"], o["md5"], o["sha256"], o["kind"]])


def add_file(state, entry):
    state["run_file"].pop(entry[2], None)  # the last one of a name counts
    state["run_file"][entry[2]] = entry


# --- Sections 2, 3 and 7: the database


def open_database(path):
    connection = sqlite3.connect(path)
    connection.text_factory = bytes  # a logged text need not be UTF-8
    connection.row_factory = sqlite3.Row
    connection.isolation_level = None
    assert connection.execute("PRAGMA application_id").fetchone()[0] == 0x524B4C47
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 1
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == b"ok"
    return connection


def read_meta(connection):
    return {name: value for name, value in connection.execute("SELECT name, value FROM meta")}


DIGESTED = {
    "key": "id, path",
    "config": "key, position, json",
    "metric": "name, position, step_metric, hidden, step_sync, summary, goal",
    "summary": "key, position, json",
    "event": "sequence, time_ns, step, kind, json",
    "artifact": "sequence, time_ns, name, type, description, step, ttl_seconds, aliases, tags, metadata",
    "artifact_file": "artifact, position, name, path, size, md5, sha256, reference, json",
    "file": "sequence, time_ns, name, path, size, md5, sha256, kind",
}


def field_bytes(value):
    if value is None:
        return b"\0"
    if isinstance(value, int):
        return struct.pack("<Bq", 1, value)
    return struct.pack("<BQ", 2, len(value)) + value


def digest(connection, table, columns):
    return sum(zlib.crc32(b"".join(map(field_bytes, row))) for row in
               connection.execute(f"SELECT {columns} FROM {table}")) % (1 << 32)


def check_digests(connection, meta):
    for table, columns in DIGESTED.items():
        assert digest(connection, table, columns) == meta.get(b"digest_" + table.encode(), 0), table
    assert digest(connection, "(SELECT * FROM meta WHERE name <> 'digest_meta')", "name, value") == meta[b"digest_meta"]
    rows, = connection.execute("SELECT coalesce(sum(rows), 0) FROM chunk").fetchone()
    assert rows == meta[b"chunk_rows"]


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def read_tables(connection, state):
    def query(sql):
        return connection.execute(sql)

    state["keys"] = {key: path for key, path in query("SELECT id, path FROM key")}
    for row in query("SELECT * FROM chunk ORDER BY id"):
        stream_number, decoded = chunk_rows(row["data"], state["keys"])
        assert stream_number == row["stream"]
        check_stats({**{name: row[name] for name in row.keys()}, "keys": state["keys"]}, decoded)
        state["rows"][stream_number].update(decoded)
    for what in ("config", "summary"):
        for key, value in query(f"SELECT key, json FROM {what} ORDER BY position"):
            state[what][text(key)] = [text(key), text(value)]
    for row in query("SELECT name, step_metric, hidden, step_sync, summary, goal FROM metric ORDER BY position"):
        name, step_metric, hidden, step_sync, summary, goal = map(text, row)
        state["metric"][name] = [name, step_metric, bool(hidden), bool(step_sync), json.loads(summary), goal]
    for row in query("SELECT sequence, time_ns, step, kind, json FROM event ORDER BY sequence"):
        state["event"][row[0]] = [text(value) for value in row]
    for row in query("SELECT sequence, time_ns, name, type, description, step, ttl_seconds, aliases, tags, metadata "
                     "FROM artifact ORDER BY sequence"):
        *head, aliases, tags, metadata = map(text, row)
        files = query("SELECT name, path, size, md5, sha256, reference, json FROM artifact_file "
                      f"WHERE artifact = {row[0]} ORDER BY position")
        state["artifact"][row[0]] = [*head, json.loads(aliases), json.loads(tags), metadata,
                                     [[text(value) for value in file] for file in files]]
    for row in query("SELECT sequence, time_ns, name, path, size, md5, sha256, kind FROM file ORDER BY sequence"):
        add_file(state, [text(value) for value in row])


def open_segments(path):
    stem = os.path.basename(path)[:-len(".db")] + ".tail."
    folder = os.path.dirname(path)
    indices = sorted(int(name[len(stem):]) for name in os.listdir(folder) if name.startswith(stem))
    return [open(os.path.join(folder, stem + str(index)), "rb") for index in indices]


def read_rank_file(path):
    connection = open_database(path)
    state = {"rows": {stream_number: {} for stream_number in STREAMS}, "seen": set(), **{what: {} for what in RECORDS}}
    has_ended = b"end_time_ns" in read_meta(connection)
    segments = [] if has_ended else open_segments(path)
    connection.execute("BEGIN")
    state["meta"] = read_meta(connection)
    check_digests(connection, state["meta"])
    read_tables(connection, state)
    assert state["meta"][b"rows"] == len(state["rows"][HISTORY])
    for segment in segments:
        with segment:
            read_segment(segment.read(), state)
    connection.close()
    return state


# --- Section 8: attempts and history (files of one experiment)


def history(files, rank):
    attempts = {}
    for state in files:
        attempts.setdefault(state["meta"][b"launch_token"], []).append(state)

    def start(token):
        members = attempts[token]
        zero = [s["meta"][b"start_time_ns"] for s in members if s["meta"][b"rank"] == 0]
        return min(zero or [s["meta"][b"start_time_ns"] for s in members]), token

    order = sorted(attempts, key=start)
    resume_steps = []
    for token in order:
        steps = [s["meta"][b"resume_step"] for s in attempts[token] if b"resume_step" in s["meta"]]
        has_rows = any(s["rows"][HISTORY] for s in attempts[token])
        resume_steps.append(min(steps) if steps and has_rows else None)
    of_rank = [(number, state) for number, token in enumerate(order)
               for state in sorted(attempts[token], key=lambda s: s["meta"][b"start_time_ns"])
               if state["meta"][b"rank"] == rank]
    # Each as (file, sequence, step): what came before in that order, at steps from there on, is superseded.
    rewinds = [(place, event[0], event[2]) for place, (_, state) in enumerate(of_rank)
               for event in state["event"].values() if event[3] == "rewind"]
    merged, superseded = {}, 0
    for place, (number, state) in enumerate(of_rank):
        for sequence, (step, time, values) in sorted(state["rows"][HISTORY].items()):
            if (any(cut is not None and step >= cut for cut in resume_steps[number + 1:]) or
                    any((place, sequence) < (file, at) and step >= cut for file, at, cut in rewinds)):
                superseded += 1
                continue
            row = merged.setdefault(step, [step, 0, 0, {}])
            row[1:3] = time, number
            row[3].update(values)
    return [merged[step] for step in sorted(merged)], superseded


# --- The comparison


def check_with_sqlite_shell(path):
    shell = shutil.which("sqlite3")
    if shell:
        answer = subprocess.run([shell, path, "pragma integrity_check"], capture_output=True, text=True, check=True)
        assert answer.stdout.strip() == "ok", answer.stdout


def listed_text(value):
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def listed_values(values):
    return {key.decode(): [kind, listed_text(value) if isinstance(value, bytes) else value]
            for key, (kind, value) in values.items()}


META = ("project experiment entity group job_type name notes tags wandb_run_id log_strategy rank local_rank world_size "
        "local_world_size node launch_token resume_step host pid pid_start_ticks program arguments git_commit "
        "git_remote libraries host_facts start_time_ns end_time_ns end_state exit_code").split()


def listed_meta(meta):
    found = {name: text(meta.get(name.encode())) for name in META}
    found["pid_start_ticks"] &= MASK
    return {**found, "tags": json.loads(found["tags"]), "arguments": json.loads(found["arguments"])}


def listing(folder):
    """As tests/schema/listing.hpp says."""
    lines, states = [], []
    for name in sorted(os.listdir(folder), key=lambda name: (len(name), name)):
        if not name.startswith("rank-") or not name.endswith(".db"):
            continue
        check_with_sqlite_shell(os.path.join(folder, name))
        state = read_rank_file(os.path.join(folder, name))
        states.append(state)
        lines.append({"file": name, "meta": listed_meta(state["meta"])})
        lines += [{"file": name, "key": path.decode()} for _, path in sorted(state["keys"].items())]
        rows = sorted((s, number, row) for number in STREAMS for s, row in state["rows"][number].items())
        lines += [{"file": name, "row": {"stream": number, "sequence": s, "step": step, "time_ns": time,
                                         "values": listed_values(values)}}
                  for s, number, (step, time, values) in rows]
        for what in RECORDS:
            lines += [{"file": name, what: record} for record in state[what].values()]
    rows, superseded = history(states, 0)
    lines += [{"history": [step, time, attempt, listed_values(values)]} for step, time, attempt, values in rows]
    return lines + [{"superseded_rows": superseded}]


def check_every_encoding_was_met():
    ways = {("float64", view, prediction) for view in range(5) for prediction in range(7)}
    ways |= {("integers", view, prediction) for view in (0, 3) for prediction in range(7)}
    ways |= {("stream", mode) for mode in range(3)} | {(what, mode) for what in ("texts", "envelope") for mode in (0, 1)}
    ways |= {("column", tag) for tag in (*range(6), MIXED)}
    if ways != SEEN:
        sys.exit(f"never met: {sorted(ways - SEEN)}; not described: {sorted(SEEN - ways)}")


def open_lines(path):
    if os.path.exists(path):
        return open(path, encoding="utf-8")
    return gzip.open(path + ".gz", "rt", encoding="utf-8")


def compare(folder):
    found = listing(folder)
    with open_lines(os.path.join(folder, "expected.jsonl")) as file:
        expected = [json.loads(line) for line in file]
    for number, (line, want) in enumerate(zip(found, expected)):
        if line != want:
            sys.exit(f"line {number + 1} differs:\n  read     {line!r:.2000}\n  expected {want!r:.2000}")
    if len(found) != len(expected):
        sys.exit(f"{len(found)} lines were read, and {len(expected)} expected")
    print(f"{len(found)} lines: all as logged")


def find_trace(path):
    if os.path.exists(path):
        return path
    folder = os.environ.get("RANKLOG_TRACES")
    if not folder:
        print(f"skipped: {os.path.basename(path)} is not shipped; set RANKLOG_TRACES to a folder that has it")
        sys.exit(77)
    return os.path.join(folder, os.path.basename(path))


def logged_value(value):
    if value is None:
        return NULL, 0
    if isinstance(value, float):
        return FLOAT64, struct.unpack("<Q", struct.pack("<d", value))[0]
    if isinstance(value, int):
        return INT64, value & MASK
    return STRING, value.encode()


def compare_with_trace(folder, trace):
    with (gzip.open if trace.endswith(".gz") else open)(trace, "rt", encoding="utf-8") as file:
        source = [json.loads(line) for line in file]
    rows = sorted(read_rank_file(os.path.join(folder, "rank-00000.db"))["rows"][HISTORY].items())
    assert len(rows) == len(source)
    for number, ((_, (step, _, values)), want) in enumerate(zip(rows, source)):
        wanted = {key.replace("\\", "\\\\").replace(".", "\\.").encode(): logged_value(value)
                  for key, value in want["values"].items()}
        if (step, values) != (want["step"], wanted):
            sys.exit(f"row {number} differs:\n  read   {step} {values!r:.2000}\n  logged {want!r:.2000}")
    print(f"{len(rows)} rows: as in {os.path.basename(trace)}")


def log_trace(trace, program):
    trace = find_trace(trace)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, trace, folder], check=True)
        experiment = os.path.join(folder, "traces", "trace")
        compare(experiment)
        compare_with_trace(experiment, trace)


def main(arguments):
    if arguments[0] == "--list":
        print(*(json.dumps(line, ensure_ascii=False) for line in listing(arguments[1])), sep="\n")
    elif arguments[0] == "--trace":
        log_trace(*arguments[1:])
    elif arguments[0] == "--writer":
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*arguments[1:], folder], check=True)
            compare(folder)
    else:
        with tempfile.TemporaryDirectory() as copy:  # SQLite may write beside a file that has not ended
            shutil.copytree(arguments[0], copy, dirs_exist_ok=True)
            compare(copy)
            check_every_encoding_was_met()


main(sys.argv[1:])
