"""One training step here and in plain torch: gradients of every objective, and the curves TensorBoard sees."""
import json

import safetensors.torch
import torch
import yaml

import models
from report import read_lines, write_lines

BETA1 = 0.9
OBJECTIVES = ("candidates", "full_reverse_kl", "full_forward_kl", "jsd", "renormalized")


def train(report, student, teacher, name, settings):
    """A run of one iteration; gives its folder."""
    run = report.folder / "runs" / name
    if (run / "checkpoints" / "LATEST").exists():
        return run
    queries = write_lines(report.folder / "queries.jsonl", [{"id": str(i), "problem": f"What is {i} + {i * 7}?", "answer": str(8 * i)}
                                                           for i in range(4)])
    config = {"student": str(student), "teacher": str(teacher), "output": str(run), "data": {"queries": str(queries), "select": {"all": True}},
              "rollout": {"max_response_tokens": 12, "precision": "f32"},
              "train": {"iterations": 1, "responses_per_iteration": 8, "minibatch": 8, "teacher_precision": "f32", "grad_clip": 0,
                        "reduction": "minibatch_tokens"},
              "curriculum": {"stages": [{"source": "current"}]}}
    for key, value in settings.items():
        section, entry = key.split(".")
        config.setdefault(section, {})[entry] = value
    file = report.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(config))
    report.ropd("train", file)
    return run


def checkpoint_of(run):
    return run / "checkpoints" / (run / "checkpoints" / "LATEST").read_text().strip()


def loss_at(kind, student, teacher):
    """The loss of every position from two rows of logits; Schulman-style constants of the method are detached."""
    s, t = torch.log_softmax(student, -1), torch.log_softmax(teacher, -1)
    if kind == "full_reverse_kl":
        return (s.exp() * (s - t)).sum(-1)
    if kind == "full_forward_kl":
        return (t.exp() * (t - s)).sum(-1)
    if kind == "jsd":
        m = torch.logaddexp(s, t) - torch.log(torch.tensor(2.0))
        return 0.5 * (s.exp() * (s - m)).sum(-1) + 0.5 * (t.exp() * (t - m)).sum(-1)
    chosen = s.topk(16).indices
    s, t = s.gather(-1, chosen), t.gather(-1, chosen)
    if kind == "renormalized":
        s, t = torch.log_softmax(s, -1), torch.log_softmax(t, -1)
        return (s.exp() * (s - t)).sum(-1)
    weight = torch.softmax(s.detach(), -1)
    advantage = weight * (t - s.detach())
    return (-advantage * (s - s.detach()).exp()).sum(-1)


def gradient_in_torch(kind, student_path, teacher_path, rollouts):
    # In double: over 151,936 entries torch's own f32 differs from it by more than ours does.
    student, teacher = models.load(student_path).double(), models.load(teacher_path).double()
    total = sum(len(row["response_ids"]) for row in rollouts)
    for row in rollouts:
        ids = torch.tensor([row["prompt_ids"] + row["response_ids"]])
        positions = slice(len(row["prompt_ids"]) - 1, ids.shape[1] - 1)
        with torch.no_grad():
            teacher_logits = teacher(ids).logits[0, positions]
        (loss_at(kind, student(ids).logits[0, positions], teacher_logits).sum() / total).backward()
    return {name: value.grad for name, value in student.named_parameters() if value.grad is not None}


def compare_gradients(report, student, teacher):
    for kind in OBJECTIVES:
        run = train(report, student, teacher, f"gradient-{kind}", {"objective.kind": kind})
        moments = safetensors.torch.load_file(checkpoint_of(run) / "optimizer.safetensors")
        theirs = gradient_in_torch(kind, student, teacher, read_lines(run / "rollouts" / "iter-0001.jsonl"))
        worst, norm = 0.0, 0.0
        for name, gradient in theirs.items():
            ours = next(value for key, value in moments.items() if key.startswith("exp_avg") and not key.startswith("exp_avg_sq") and key.endswith(name))
            ours = ours.reshape(gradient.shape) / (1 - BETA1)
            worst = max(worst, (ours - gradient).abs().max().item())
            norm = max(norm, gradient.abs().max().item())
        report.fact(f"gradient of {kind}", f"largest difference {worst / norm:.1e} of the largest entry", "torch autograd, f64",
                    worst / norm <= 1e-4)


def compare_with_trl(report):
    """Our JSD is TRL's generalised one: same mixture, same weights, on the same logits."""
    try:
        from trl.experimental.gkd import GKDTrainer
    except ImportError:
        from trl import GKDTrainer
    torch.manual_seed(0)
    student, teacher = torch.randn(1, 6, 50), torch.randn(1, 6, 50)
    theirs = GKDTrainer.generalized_jsd_loss(student, teacher, beta=0.5, reduction="sum").item()
    ours = loss_at("jsd", student[0], teacher[0]).sum().item()
    report.fact("jsd as defined by TRL's GKD", f"{ours:.6f}", f"{theirs:.6f}", abs(ours - theirs) < 1e-4)


def compare_curves(report, run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    folder = next(path.parent for path in run.rglob("events.out.tfevents*"))
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    lines = [row for row in read_lines(run / "metrics.jsonl")]
    equal = checked = 0
    for tag in events.Tags()["scalars"]:
        values = [(event.step, event.value) for event in events.Scalars(tag)]
        key = tag.split("/", 1)[1] if tag.startswith(("step/", "iteration/")) else tag
        for step, value in values:
            found = [row[name] for row in lines if row.get("step") == step for name in (tag, key) if isinstance(row.get(name), (int, float))]
            if found:
                checked += 1
                equal += any(abs(value - other) <= 1e-6 * max(1.0, abs(other)) for other in found)
    report.fact("TensorBoard's reader", f"{equal} of {checked} points as in metrics.jsonl", f"{len(events.Tags()['scalars'])} curves",
                checked > 0 and equal == checked)
