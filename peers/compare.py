"""./run peers: facts about ropd beside the programs of its field, one line each (docs/real_run.md).

Parts can be run alone; facts.json keeps what the others found."""
import argparse
import pathlib
import sys

import torch

import model_facts
import models
import text_facts
import training_facts
from report import Report


PARTS = ["text", "theirs", "ours", "adapters", "training", "grader"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these of: " + ", ".join(PARTS))
    parser.add_argument("--program", default="build/ropd")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build-peers/facts"))
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    tokenizers, golden = arguments.data / "tokenizers", arguments.data / "golden"
    if not tokenizers.is_dir():
        sys.exit(f"peers: {tokenizers}: no such folder; the tokenizers of the shared data are needed (--data)")
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # enough for models this small
    report = Report(arguments.program, arguments.out, keeps=bool(arguments.parts))
    report.eos_ids = [models.SIZE["eos_token_id"]]
    teacher = arguments.out / "theirs" / "teacher"
    if not (teacher / "config.json").exists():
        models.make(teacher, tokenizers, "qwen3", tied=False, seed=7)

    def run_of(family, dtype, settings=None):
        student = arguments.out / "theirs" / f"student-{family}-{dtype}"
        if not (student / "config.json").exists():
            models.make(student, tokenizers, family, tied=family != "llama", seed=3,
                        dtype=torch.float32 if dtype == "f32" else torch.bfloat16)
        name = f"run-{family}-{dtype}" + ("-adapter" if settings else "")
        run = training_facts.train(report, student, teacher, name, settings or {"train.learning_rate": 1e-3})
        return training_facts.checkpoint_of(run) / "model"

    def text():
        text_facts.compare_tokenizers(report, tokenizers)
        text_facts.compare_templates(report, tokenizers, golden)

    def training():
        run_of("qwen3", "f32")
        training_facts.compare_gradients(report, arguments.out / "theirs" / "student-qwen3-f32", teacher)
        training_facts.compare_with_trl(report)
        training_facts.compare_curves(report, arguments.out / "runs" / "run-qwen3-f32")

    works = {"text": text, "theirs": lambda: model_facts.theirs_load_here(report, tokenizers),
             "ours": lambda: model_facts.ours_load_there(report, run_of),
             "adapters": lambda: model_facts.adapters_load_there(report, run_of), "training": training,
             "grader": lambda: text_facts.compare_grader(report, golden)}
    for part in arguments.parts or PARTS:
        works[part]()
        report.save()
    failed = report.failed()
    print(f"{len(report.rows) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
