"""Directories of transformers load here, ours load there, and both give the same numbers."""
import peft
import torch
import transformers

import models
from report import read_lines, write_lines

TOLERANCE = 1e-4
PROMPTS = ["What is 2 + 2?", "Find all real x with x^2 = 9.", "Ein Dreieck hat die Seiten 3, 4, 5."]
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}


def greedy(model, prompt_ids, count):
    ids = torch.tensor([prompt_ids])
    with torch.no_grad():
        for _ in range(count):
            ids = torch.cat([ids, model(ids, logits_to_keep=1).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return ids[0, len(prompt_ids):].tolist()


def compare(report, name, ours_path, theirs_path, tokens=24, load=models.load):
    """Greedy text and the log-probabilities of 16 candidates at every position."""
    folder = report.folder / "work" / name.replace(" ", "_").replace(",", "")
    folder.mkdir(parents=True, exist_ok=True)
    prompts = write_lines(folder / "prompts.jsonl", [{"query_id": str(i), "prompt": text} for i, text in enumerate(PROMPTS)])
    rollouts, scores = folder / "rollouts.jsonl", folder / "scores.jsonl"
    report.ropd("generate", "--model", ours_path, "--prompts", prompts, "--greedy", "--precision", "f32", "--max-tokens", tokens,
                "--overwrite", "--out", rollouts)
    scores.unlink(missing_ok=True)
    report.ropd("score", "--model", ours_path, "--rollouts", rollouts, "--precision", "f32", "--out", scores)
    model = load(theirs_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(theirs_path)
    ends = set(report.eos_ids)
    equal_prompts = equal_text = 0
    worst = 0.0
    rows = read_lines(rollouts)
    for row, score in zip(rows, read_lines(scores)):
        message = [{"role": "user", "content": PROMPTS[int(row["query_id"])]}]
        rendered = tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
        equal_prompts += tokenizer(rendered, add_special_tokens=False)["input_ids"] == row["prompt_ids"]
        expected = greedy(model, row["prompt_ids"], len(row["response_ids"]))
        first_end = next((i for i, token in enumerate(expected) if token in ends), len(expected))
        equal_text += expected[:first_end + 1] == row["response_ids"]
        ids = torch.tensor([row["prompt_ids"] + row["response_ids"]])
        with torch.no_grad():
            logprobs = torch.log_softmax(model(ids).logits[0].double(), -1)
        for t, candidates in enumerate(score["candidates"]):
            theirs = logprobs[len(row["prompt_ids"]) + t - 1]
            ours = torch.tensor(score["student_logprobs"][t], dtype=torch.float64)
            worst = max(worst, (theirs[candidates] - ours).abs().max().item())
            # The candidates are their most likely ids, too, up to ties within the tolerance.
            worst = max(worst, (theirs.topk(len(candidates)).values - theirs[candidates].sort(descending=True).values).abs().max().item())
    report.fact(f"{name}: rendered prompts", f"{equal_prompts} of {len(rows)} equal", "apply_chat_template", equal_prompts == len(rows))
    report.fact(f"{name}: greedy text", f"{equal_text} of {len(rows)} equal", "argmax of transformers", equal_text == len(rows))
    report.fact(f"{name}: log-probabilities", f"largest difference {worst:.1e}", "transformers, f32", worst <= TOLERANCE)


def theirs_load_here(report, tokenizers):
    folder = report.folder / "theirs"
    kinds = [("qwen3", True, torch.float32, "1GB"), ("qwen3", False, torch.bfloat16, "1GB"), ("qwen3", True, torch.float16, "1GB"),
             ("qwen2", False, torch.float32, "8MB"), ("qwen2", True, torch.bfloat16, "1GB"), ("llama", False, torch.float32, "1GB"),
             ("llama", True, torch.bfloat16, "8MB"), ("qwen3_moe", False, torch.bfloat16, "8MB"), ("qwen3_moe", True, torch.float32, "1GB")]
    for family, tied, dtype, shard in kinds:
        name = f"{family} {str(dtype).split('.')[1]}{' tied' if tied else ''}{' sharded' if shard == '8MB' else ''}"
        path = folder / name.replace(" ", "-")
        if not (path / "config.json").exists():
            models.make(path, tokenizers, family, tied, dtype, shard)
        compare(report, "theirs, " + name, path, path)
    for family, scaling in (("qwen3", YARN), ("llama", LLAMA3)):
        path = folder / f"{family}-{scaling['rope_type']}"
        if not (path / "config.json").exists():
            models.make(path, tokenizers, family)
            models.set_rope_scaling(path, scaling)
        compare(report, f"theirs, {family} {scaling['rope_type']}", path, path, tokens=120)


def ours_load_there(report, run_of):
    """A training step of each trainable family, stored in each type; `run_of` trains and gives the checkpoint's model."""
    for family in ("qwen3", "qwen2", "llama"):
        for dtype in ("f32", "bf16"):
            path = run_of(family, dtype)
            compare(report, f"ours, {family} {dtype}", path, path)


def adapters_load_there(report, run_of):
    """An adapter trained here, under peft; one that peft saved, here; ours merged, as a plain model."""
    for family, dtype in (("qwen3", "f32"), ("qwen2", "f32"), ("llama", "bf16")):
        adapter = run_of(family, dtype, {"adapter.rank": 4, "adapter.alpha": 8, "train.learning_rate": 5e-2})
        base = report.folder / "theirs" / f"student-{family}-{dtype}"
        with_adapter = lambda path: peft.PeftModel.from_pretrained(models.load(path), adapter).eval()
        compare(report, f"adapter of ours, {family} {dtype}", adapter, base, load=with_adapter)
        merged = report.folder / "work" / f"merged-{family}-{dtype}"
        if not merged.exists():
            report.ropd("merge", adapter, "--dtype", "f32", "--out", merged)
        compare(report, f"adapter of ours, merged, {family} {dtype}", merged, merged)
    base = report.folder / "theirs" / "student-qwen3-f32"
    for name, settings in (("all-linear", dict(r=8, lora_alpha=16, target_modules="all-linear")),
                           ("rslora, ranks", dict(r=4, lora_alpha=4, target_modules=["q_proj", "down_proj"], use_rslora=True,
                                                  rank_pattern={"down_proj": 7}))):
        adapter = report.folder / "theirs" / f"adapter-{name.replace(', ', '-')}"
        torch.manual_seed(11)
        model = peft.get_peft_model(models.load(base), peft.LoraConfig(task_type="CAUSAL_LM", **settings))
        with torch.no_grad():
            for parameter, value in model.named_parameters():
                if "lora_B" in parameter:
                    value.normal_(0.0, 0.05)
        model.save_pretrained(adapter)
        with_adapter = lambda path: peft.PeftModel.from_pretrained(models.load(path), adapter).eval()
        compare(report, f"adapter of theirs, {name}", adapter, base, load=with_adapter)
