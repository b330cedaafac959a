"""Run inside the environment with the official client: reads a run and its artifact back through the public API."""

import json
import pathlib
import sys

import wandb

run_id, folder = sys.argv[1:]
api = wandb.Api()
run = api.run(f"interop/{run_id}")
artifact = api.artifact("interop/tiny-model:best")
root = pathlib.Path(artifact.download(root=str(pathlib.Path(folder) / "downloaded")))
print(
    json.dumps(
        {
            "state": run.state,
            "name": run.name,
            "config": dict(run.config),
            "rows": list(run.scan_history()),
            "files": sorted(file.name for file in run.files()),
            "digest": artifact.digest,
            "version": artifact.version,
            "contents": {str(p.relative_to(root)): p.read_bytes().hex() for p in root.rglob("*") if p.is_file()},
            "logged": [one.name for one in run.logged_artifacts()],
        }
    )
)
