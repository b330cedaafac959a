"""Run inside the environment with the official client: one tiny run. Prints what the client says about it as JSON."""

import argparse
import json
import pathlib

import wandb


def log_rows(run, rows):
    for step in range(rows):
        histogram = wandb.Histogram(np_histogram=([1, step, 2], [-1.0, 0.0, 0.5, 1.0]))
        row = {"loss": 1 / (step + 1), "big": 2**53 + 1, "dist": histogram, "nested": {"a": step}}
        row["odd"] = float("nan") if step == 1 else float("inf") if step == 2 else step
        run.log(row)


def log_artifact(run, folder, online):
    first, second = folder / "a.txt", folder / "b.bin"
    first.write_bytes(b"hello\n")
    second.write_bytes(bytes(range(256)))
    artifact = wandb.Artifact("tiny-model", type="model", description="two files", metadata={"step": 4})
    artifact.add_file(str(first))
    artifact.add_file(str(second), name="dir/b.bin")
    logged = run.log_artifact(artifact, aliases=["best"])
    if online:
        logged.wait()
        return {"digest": artifact.digest, "version": artifact.version, "aliases": sorted(artifact.aliases)}
    return {"digest": artifact.digest}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--id", required=True)
    parser.add_argument("--mode", default="online")
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--exit-code", type=int, default=0)
    parser.add_argument("--no-artifact", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path.cwd())
    options = parser.parse_args()
    config = {"learning_rate": 0.1, "layers": [8, 16], "nested": {"a": 1}, "world_size": 4, "rank": 1, "local_rank": 1}
    run = wandb.init(
        project="interop", id=options.id, name="rank-1", group="tiny", job_type="train", tags=["a", "b"], notes="noted",
        config=config, mode=options.mode, dir=options.folder,
    )
    log_rows(run, options.rows)
    print("a line on the console", flush=True)
    artifact = {} if options.no_artifact else log_artifact(run, options.folder, options.mode == "online")
    folder = pathlib.Path(run.dir).parent
    run.finish(exit_code=options.exit_code)
    print(json.dumps({"artifact": artifact, "folder": str(folder)}))


main()
