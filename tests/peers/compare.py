"""Ours and the peers on the same corpus, one after the other, as one table.

    python compare.py --gnnxml PROGRAM --train T.jsonl.gz [--ids FILE] --test D.jsonl.gz \\
        [--presets fast,best] [--flat] [--omikuji PYTHON] [--pecos PYTHON] [--folder DIR]

CPU seconds of ours go from raw text to a saved model, those of the stage that trains the rankers stand beside; the peers' are
training alone, their features stand beside.
`cargo xtask bench peers` sets the two pythons up. `--flat` adds one-vs-all over words and a transformer's vectors, which takes long."""

import argparse
import json
import os
import resource
import subprocess
import tempfile

COLUMNS = ["P@1", "P@3", "P@5", "nDCG@5", "RP@5", "PSP@1", "PSP@3", "PSP@5"]


def measured(command):
    """The command's output and the CPU seconds it took, children included."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    # Progress bars would bury the table: what a command says beside its answer is shown when it fails.
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout, spent() - before


def ours(program, preset, args, folder):
    model = os.path.join(folder, preset)
    ids = ["--ids", args.ids] if args.ids else []
    command = [program, "train", "--corpus", args.train, *ids, "--preset", preset, "--out", model, "--json-progress"]
    events, cpu = measured(command)
    rankers = sum(
        event["cpu_seconds"]
        for event in map(json.loads, events.splitlines())
        if event["type"] == "stage_done" and event["stage"] == "rank"
    )
    report, predict = measured([program, "evaluate", "--model", model, "--corpus", args.test, "--json"])
    report = json.loads(report)
    size = sum(os.path.getsize(os.path.join(model, name)) for name in os.listdir(model)) / 1e6
    return report | {
        "name": f"gnnxml {preset}",
        "train_cpu": cpu,
        "beside": f"{rankers:.0f} the rankers",
        "predict_ms": 1000 * predict / report["documents"],
        "megabytes": size,
    }


def theirs(command):
    row = json.loads(measured(command)[0].splitlines()[-1])
    return row | {"beside": f"+{row['features_cpu']:.0f} features"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gnnxml", required=True)
    parser.add_argument("--train", required=True)
    parser.add_argument("--ids")
    parser.add_argument("--test", required=True)
    parser.add_argument("--presets", default="fast")
    parser.add_argument("--omikuji")
    parser.add_argument("--pecos")
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--folder")
    args = parser.parse_args()
    peers = [("omikuji-parabel", args.omikuji), ("omikuji-bonsai", args.omikuji), ("pecos", args.pecos)]
    if args.flat:
        peers.append(("pecos-flat", args.pecos))
    print("| | " + " | ".join(COLUMNS) + " | train CPU s | predict CPU ms/document | MB |", flush=True)
    print("|---" * (len(COLUMNS) + 4) + "|", flush=True)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or scratch
        rows = [lambda preset=preset: ours(args.gnnxml, preset, args, folder) for preset in args.presets.split(",")]
        for peer, python in peers:
            if python:
                ids = ["--ids", args.ids] if args.ids else []
                command = [python, script, peer, "--train", args.train, *ids, "--test", args.test]
                if peer == "pecos-flat":
                    command += ["--program", args.gnnxml]
                rows.append(lambda command=command: theirs(command))
        for row in rows:
            row = row()
            figures = " | ".join(f"{row[c]:.2f}" for c in COLUMNS)
            print(
                f"| {row['name']} | {figures} | {row['train_cpu']:.0f} ({row['beside']})"
                f" | {row['predict_ms']:.2f} | {row['megabytes']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
