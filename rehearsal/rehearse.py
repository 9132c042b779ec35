"""./run rehearsal: a run at real size with made weights, from models to report, killed and resumed on the way.

Every part can be run alone and is left out when it is done; record.json in the output folder keeps what was measured,
`record` prints it beside what `ropd plan` said. Hours at full size on two cores; --quick and --layers make trials.
"""
import argparse
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys

import measure
import record

PARTS = ["models", "data", "plan", "train", "verify", "long_step", "larger", "long_eval", "diagnose", "report", "record"]
END, NEVER = 151645, 151935  # <|im_end|>; an id without a token


class Rehearsal:
    def __init__(self, arguments):
        self.program, self.maker, self.data = arguments.program, arguments.maker, arguments.data
        self.layers, self.quick, self.out = arguments.layers, arguments.quick, arguments.out
        self.precision = arguments.precision
        self.out.mkdir(parents=True, exist_ok=True)
        self.student, self.teacher = self.out / "models" / "student", self.out / "models" / "teacher"
        self.run_directory = self.out / "run"
        self.log = self.out / "rehearsal.log"
        # Tokens of a response, of the long step, of the evaluation (several; one).
        self.longest = arguments.longest or (192 if self.quick else 4096)
        self.long_step_tokens = arguments.long_step_tokens or (1024 if self.quick else 16384)
        self.eval_several, self.eval_one = (256, 512) if self.quick else (16384, 32768)
        self.facts = json.loads(self.record_file.read_text()) if self.record_file.exists() else {}

    @property
    def record_file(self):
        return self.out / "record.json"

    def keep(self, part, facts):
        self.facts[part] = facts | {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                                    "load": os.getloadavg()[0]}
        self.record_file.write_text(json.dumps(self.facts, indent=1) + "\n")

    def must(self, command, **options):
        measured = measure.run(command, self.log, **options)
        if measured.exit_code != 0:
            sys.exit(f"rehearsal: {command[0]} {command[1]} ended with {measured.exit_code}; see {self.log}")
        return measured

    # --- parts ---

    def models(self):
        self.make(("student", "0.6b", 0.15, ["--noise", "1", "--seed", "1"]),
                  ("teacher", "4b", 0.1, ["--noise", "0.7", "--seed", "2"]))

    def make(self, *wanted):
        """Models that are not there yet: (name, shape, mean length as a share of the longest, further options)."""
        facts = {name: made for name, made in self.facts.get("models", {}).items() if isinstance(made, dict)}
        for name, shape, length, more in wanted:
            folder = self.out / "models" / name
            if (folder / "config.json").exists():
                continue
            folder.parent.mkdir(exist_ok=True)
            layers = ["--layers", self.layers] if self.layers else []
            measured = self.must([self.maker, "--shape", shape, "--out", folder, "--tokenizer",
                                  self.data / "tokenizers" / "qwen3", "--mean-length", int(length * self.longest),
                                  *layers, *more])
            facts[name] = measured.facts() | {"says": measured.output.strip(), "bytes": bytes_below(folder)}
        self.keep("models", facts)

    def queries(self):
        return self.out / "queries.jsonl"

    def data_part(self):
        measured = self.must([self.program, "data", "prepare", "--in", self.data / "train" / "dapo-math-17k.parquet",
                              "--out", self.queries(), "--no-han", "--wrapper", "keep", "--model", self.student,
                              "--max-prompt-tokens", "1024", "--overwrite"])
        with open(self.queries()) as lines:
            self.keep("data", measured.facts() | {"queries": sum(1 for _ in lines)})

    def settings(self, output, more=()):
        """The paper's settings with few responses."""
        return ["recipes/qwen3-0.6b-ropd.yaml", f"student={self.student}", f"teacher={self.teacher}",
                f"output={output}", f"data.queries={self.queries()}", "data.select.count=4",
                f"rollout.max_response_tokens={self.longest}", f"rollout.memory_gb={1 if self.quick else 2}",
                "train.iterations=5", "train.responses_per_iteration=8", "train.minibatch=4", "train.shards=2",
                f"train.microbatch_tokens={self.longest + 1024}", "curriculum.bank.responses=16",
                "trigger.persistence=1", "trigger.storage=file", "checkpoint.keep=2",
                f"rollout.precision={self.precision}", f"train.teacher_precision={self.precision}", *more]

    def plan_of(self, settings, *options):
        text = subprocess.run([str(self.program), "plan", *settings, "--json", *options], capture_output=True, text=True)
        if not text.stdout.strip():
            sys.exit("rehearsal: plan failed: " + text.stderr)
        return json.loads(text.stdout)

    def plan(self):
        self.keep("plan", {"plan": self.plan_of(self.settings(self.run_directory))})

    def train(self):
        """Killed while the bank is sampled and inside of iteration 2, stopped once, resumed each time."""
        run, sessions = self.run_directory, self.facts.get("train", {}).get("sessions", [])

        def bank_began():
            partial = run / "banks" / "initial.partial.jsonl"
            return partial.exists() and partial.stat().st_size > 0

        def steps():
            path = run / "metrics.jsonl"
            return path.read_text().count('"kind":"step"') if path.exists() else 0

        ways = [("killed in the bank", bank_began, signal.SIGKILL), ("killed behind step 3", lambda: steps() >= 3,
                                                                      signal.SIGKILL),
                ("stopped behind step 5", lambda: steps() >= 5, signal.SIGTERM), ("to the end", None, None)]
        for name, condition, number in ways[len(sessions):]:
            exists = (run / "config.yaml").exists()
            command = [self.program, "resume", run] if exists else [self.program, "train", *self.settings(run)]
            measured = measure.run(command, self.log, run_directory=run, kill_when=condition, signal_number=number)
            expected = {signal.SIGKILL: (-9, 0), signal.SIGTERM: (3, 0), None: (0,)}[number]
            if measured.exit_code not in expected:
                sys.exit(f"rehearsal: training ended with {measured.exit_code} ({name}); see {self.log}")
            sessions.append(measured.facts() | {"name": name, "exit_code": measured.exit_code})
            self.keep("train", {"sessions": sessions, "is_done": measured.exit_code == 0,
                                "disk_bytes": bytes_below(run)})
            if measured.exit_code == 0:
                break
        self.facts["train"]["redone"] = redone_steps(run)
        self.facts["train"]["tau"] = last_iteration(run).get("tau")
        self.keep("train", self.facts["train"])
        if self.facts["train"]["tau"] is None:
            self.replay()

    def replay(self):
        """Where the trigger was not set, a branch replays the bank behind the oldest checkpoint."""
        checkpoint = sorted((self.run_directory / "checkpoints").glob("step-*"))[0]
        step, branch = int(checkpoint.name[len("step-"):]), self.out / "replay"
        stages = f"curriculum.stages=[{{source: current, iterations: {step // 2}}}, {{source: initial}}]"
        settings = self.settings(branch, [stages, "checkpoint.keep=1"])
        command = [self.program, "branch", self.run_directory, step, *settings]
        measured = self.must(command, run_directory=branch)
        self.keep("train", self.facts["train"] | {"replay": measured.facts()})

    def verify(self):
        self.keep("verify", self.must([self.program, "verify", self.run_directory]).facts())

    def long_step(self):
        """One training step on a response of 16,384 tokens, its text made of real questions."""
        text = self.out / "long_text.jsonl"
        questions = self.queries().read_text().splitlines()[:1000]
        text.write_text("\n".join(json.dumps({"text": json.loads(line)["problem"]}) for line in questions) + "\n")
        ids_file = self.out / "long_ids.jsonl"
        self.must([self.program, "tokenize", "--model", self.student, "--in", text, "--out", ids_file, "--overwrite"])
        ids = [id for line in ids_file.read_text().splitlines() for id in json.loads(line)["ids"]]
        bank = self.out / "long_bank.jsonl"
        bank.write_text(json.dumps({"query_id": "long", "prompt_ids": ids[:64],
                                    "response_ids": ids[64:64 + self.long_step_tokens]}) + "\n")
        settings = [f"curriculum.stages=[{{source: bank, path: {bank}}}]", "train.iterations=1",
                    "train.responses_per_iteration=1", "train.minibatch=1", "checkpoint.every=0",
                    f"rollout.max_response_tokens={self.long_step_tokens}",
                    f"train.microbatch_tokens={self.long_step_tokens + 64}", "data.max_prompt_tokens=64", 'data.queries=""']
        run = self.out / "long-step"
        self.remove(run)
        plan = self.plan_of(self.settings(run, settings), "--mean-tokens", str(self.long_step_tokens))
        measured = self.must([self.program, "train", *self.settings(run, settings)], run_directory=run)
        self.keep("long_step", measured.facts() | {"plan": plan, "tokens": self.long_step_tokens,
                                                   "iteration": last_iteration(run)})

    def larger(self):
        """1.7B from 4B: an adapter of rank 16, the teacher streamed, one iteration of two short responses."""
        self.make(("student-1.7b", "1.7b", 0.15, ["--noise", "1", "--seed", "3"]),
                  ("teacher", "4b", 0.1, ["--noise", "0.7", "--seed", "2"]))
        run, tokens = self.out / "larger", 64 if self.quick else 256
        settings = [f"student={self.out / 'models' / 'student-1.7b'}", "adapter.rank=16", "train.learning_rate=2e-5",
                    "curriculum.stages=[{source: current}]", "train.iterations=1", "train.responses_per_iteration=2",
                    "train.minibatch=2", "train.shards=1", f"rollout.max_response_tokens={tokens}",
                    "rollout.memory_gb=0.5", "train.microbatch_tokens=2048", "train.teacher_memory_gb=2",
                    "data.max_prompt_tokens=512"]
        self.remove(run)
        plan = self.plan_of(self.settings(run, settings))
        measured = self.must([self.program, "train", *self.settings(run, settings)], run_directory=run)
        self.keep("larger", measured.facts() | {"plan": plan, "tokens": tokens, "iteration": last_iteration(run)})

    def long_eval(self):
        """Responses that do not end: several of 16K tokens, one of 32K."""
        endless = self.out / "models" / "endless"
        endless.mkdir(exist_ok=True)
        for path in self.student.iterdir():
            if not (endless / path.name).exists():
                os.link(path, endless / path.name)
        for name in ("config.json", "generation_config.json"):
            settings = json.loads((self.student / name).read_text())
            settings["eos_token_id"] = NEVER
            (endless / name).unlink(missing_ok=True)
            (endless / name).write_text(json.dumps(settings, indent=2) + "\n")
        facts = {name: done for name, done in self.facts.get("long_eval", {}).items() if isinstance(done, dict)}
        for name, count, tokens in (("several", 3, self.eval_several), ("one", 1, self.eval_one)):
            if name in facts:
                continue
            questions = (self.data / "benchmarks" / "aime24.jsonl").read_text().splitlines()[:count]
            (self.out / f"{name}.jsonl").write_text("\n".join(questions) + "\n")
            suite = self.out / f"{name}.yaml"
            suite.write_text(f"name: long-{name}\nbenchmarks: [{{name: {name}, file: {name}.jsonl}}]\n")
            budgets = ",".join(str(tokens * part // 4) for part in (1, 2, 4))
            measured = self.must([self.program, "eval", "--model", endless, "--suite", suite, "--data", self.out,
                                  "--max-tokens", tokens, "--budgets", budgets, "--out", self.out / "eval" / name])
            facts[name] = measured.facts() | {"responses": count, "tokens": tokens}
            self.keep("long_eval", facts | {"is_done": name == "one"})

    def diagnose(self):
        sources = {}
        for name, model in (("theta0", self.student), ("trained", self.run_directory)):
            sources[name] = self.out / f"prefixes-{name}.jsonl"
            self.must([self.program, "generate", "--model", model, "--prompts", self.queries_of_run(), "--n", "2",
                       "--max-tokens", str(self.longest // 4), "--seed", "5", "--purpose", "diagnosis", "--out",
                       sources[name], "--overwrite"])
        config = self.out / "diagnosis.yaml"
        config.write_text(f"teacher: {self.teacher}\noutput: {self.out / 'diagnosis'}\nstudents:\n"
                          f"  - {{name: theta0, model: {self.student}}}\n"
                          f"  - {{name: trained, model: {self.run_directory}}}\nsources:\n"
                          + "".join(f"  - {{name: {name}, rollouts: {path}}}\n" for name, path in sources.items())
                          + "positions: 8\nprobes: {trajectories: 4, minibatch: 2}\n")
        self.remove(self.out / "diagnosis")
        self.keep("diagnose", self.must([self.program, "diagnose", "--config", config]).facts())

    def queries_of_run(self):
        prompts = self.out / "prompts.jsonl"
        prompts.write_text("\n".join(self.queries().read_text().splitlines()[:4]) + "\n")
        return prompts

    def report(self):
        page = self.out / "report.html"
        folders = [self.run_directory, self.out / "diagnosis"]
        page.unlink(missing_ok=True)
        measured = self.must([self.program, "report", *folders, "--out", page])
        self.keep("report", measured.facts() | {"bytes": page.stat().st_size})

    def record(self):
        text = record.text(self.facts, self.run_directory, self.out / "long-step",
                           {"layers": self.layers, "quick": self.quick, "longest": self.longest,
                            "precision": self.precision})
        (self.out / "record.md").write_text(text)
        print(text)

    def remove(self, folder):
        """Only what this rehearsal made."""
        if folder.exists() and folder.parent == self.out:
            subprocess.run(["rm", "-r", "--", str(folder)], check=True)

    def is_done(self, part):
        if part in ("models", "record"):
            return False  # cheap where nothing is missing
        return self.facts.get(part, {}).get("is_done", part in self.facts)

    def perform(self, part):
        print(f"rehearsal: {part}", file=sys.stderr, flush=True)
        {"data": self.data_part}.get(part, getattr(self, part, None))()


def bytes_below(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def last_iteration(run):
    iterations = [line for line in lines_of(run / "metrics.jsonl") if line["kind"] == "iteration"]
    return iterations[-1] if iterations else {}


def redone_steps(run):
    """Steps that a kill undid, computed again: [step, equal bits?]."""
    again = {line["step"]: line for line in lines_of(run / "metrics.jsonl") if line["kind"] == "step"}
    return [[line["step"], all(line[key] == again[line["step"]][key] for key in ("loss", "grad_norm", "tokens"))]
            for line in lines_of(run / "metrics.discarded.jsonl") if line["kind"] == "step"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these of: " + ", ".join(PARTS))
    parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path("build/ropd"))
    parser.add_argument("--maker", type=pathlib.Path, default=pathlib.Path("build/rehearsal/rehearsal_models"))
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/rehearsal"))
    parser.add_argument("--layers", type=int, default=0, help="of both models, for a trial; 0 = as published")
    parser.add_argument("--precision", default="bf16", help="of rollouts and of the teacher; training is f32")
    parser.add_argument("--longest", type=int, default=0, help="tokens of a response in training; 0 = 4096, quick 192")
    parser.add_argument("--long-step-tokens", type=int, default=0, help="0 = 16384, quick 1024")
    parser.add_argument("--quick", action="store_true", help="short responses, for a trial")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    rehearsal = Rehearsal(arguments)
    for part in arguments.parts or PARTS:
        if arguments.parts or not rehearsal.is_done(part):
            rehearsal.perform(part)


if __name__ == "__main__":
    main()
