"""What a rehearsal measured, as a page: memory by phase, seconds, disk, each beside the plan."""
import json
import os
import pathlib
import platform
import subprocess

PHASES = ["sampling", "scoring by the student", "scoring by the teacher", "updates"]


def gigabytes(count):
    return f"{count / 1e9:.2f}"


def beside(measured, planned):
    return f"{100 * (measured / planned - 1):+.1f} %" if planned else ""


def planned_bytes(plan, phase):
    """Without mapped files: their pages are the system's, which takes them back when others need memory."""
    return sum(bytes for part in ("always", phase) for name, bytes in plan["memory"].get(part, {}).items()
               if "(mapped" not in name)


def cost(facts):
    return (f"{facts['seconds']:.0f} s, {facts['processor_seconds']:.0f} s of processor time, "
            f"{gigabytes(facts['peak_bytes'])} GB")


def processor_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def memory_rows(plan, sessions):
    rows = []
    for phase in PHASES:
        seen = [session["phases"][phase]["own_bytes"] for session in sessions if phase in session["phases"]]
        if seen:
            planned = planned_bytes(plan, phase)
            rows.append(f"| {phase} | {gigabytes(planned)} | {gigabytes(max(seen))} | {beside(max(seen), planned)} |")
    return ["| phase, without mapped files | planned, GB | measured, GB | difference |", "|---|---|---|---|", *rows]


def iterations_of(run):
    path = run / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if line["kind"] == "iteration"]


STAGES = {"sampling": "timing_s/gen", "scoring by the student": "timing_s/old_log_prob",
          "scoring by the teacher": "timing_s/teacher", "updates": "timing_s/update_actor"}


def time_rows(plan, run, responses):
    """Seconds of each stage, and the plan's estimate for the tokens that there were in brackets. Sampling in the first
    iteration has the bank with it."""
    rows = ["| iteration | source | tokens | " + " | ".join(STAGES) + " | all, without checkpoints |",
            "|---|---|---|" + "---|" * (len(STAGES) + 1)]
    for line in iterations_of(run):
        share = line["response_tokens"] / (plan["assumed_length"] * responses)
        cells, measured, planned = [], 0, 0
        for stage, name in STAGES.items():
            seconds = line.get(name, 0)
            is_made = seconds > 0 and (stage != "sampling" or line["source"] == "current")  # a bank is only read
            estimate = plan["seconds"][stage] * share if is_made else 0
            if stage == "sampling" and line["iteration"] == 1:
                estimate += plan["seconds"]["bank"]
            measured, planned = measured + seconds, planned + estimate
            cells.append(f"{seconds:.0f} ({estimate:.0f})" if is_made else "")
        rows.append(f"| {line['iteration']} | {line['source'].split(':')[0]} | {line['response_tokens']} | " + " | ".join(cells)
                    + f" | {measured:.0f} ({planned:.0f}): {beside(measured, planned)} |")
    return rows


def text(facts, run, long_step_run, settings):
    revision = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    out = [f"# Rehearsal, {facts.get('train', facts.get('models', {})).get('when', '')[:10]}", "",
           f"{processor_name()}, {os.cpu_count()} cores, commit {revision}, settings {json.dumps(settings)}.", ""]
    for name, made in facts.get("models", {}).items():
        if isinstance(made, dict):
            out.append(f"- {name}: {gigabytes(made['bytes'])} GB, made in {made['seconds']:.0f} s; {made['says']}")
    plan = facts.get("plan", {}).get("plan")
    train = facts.get("train", {})
    sessions = train.get("sessions", [])
    if plan and sessions:
        out += ["", "Memory by phase:", "", *memory_rows(plan, sessions), "",
                "Seconds of stages (estimated):", "", *time_rows(plan, run, 8), ""]
        for session in sessions:
            out.append(f"- session {session['name']}: {session['seconds']:.0f} s, "
                       f"{session['processor_seconds']:.0f} s of processor time")
        redone = train.get("redone", [])
        out += [f"- steps computed again behind a kill: {len(redone)}, equal: {sum(1 for _, same in redone if same)}",
                f"- tau: {train.get('tau')}" + ("; the bank was replayed in a branch" if "replay" in train else ""),
                f"- disk: {gigabytes(train['disk_bytes'])} GB, forecast {gigabytes(plan['disk_bytes'])} GB "
                f"({beside(train['disk_bytes'], plan['disk_bytes'])}; the forecast counts one checkpoint more, "
                "the one being written)"]
    long_step = facts.get("long_step")
    if long_step:
        out += ["", f"A step on {long_step['tokens']} tokens: {long_step['seconds']:.0f} s, "
                f"{long_step['processor_seconds']:.0f} s of processor time.", "",
                *memory_rows(long_step["plan"], [long_step]), "", "Seconds of stages (estimated):", "",
                *time_rows(long_step["plan"], long_step_run, 1)]
    larger = facts.get("larger")
    if larger:
        out += ["", f"1.7B from 4B by an adapter, two responses of {larger['tokens']} tokens at most: {cost(larger)}.", "",
                *memory_rows(larger["plan"], [larger])]
    for name, facts_of in facts.get("long_eval", {}).items():
        if isinstance(facts_of, dict):
            rate = facts_of["responses"] * facts_of["tokens"] / facts_of["seconds"]
            out.append(f"- evaluation, {facts_of['responses']} of {facts_of['tokens']} tokens: {cost(facts_of)}, "
                       f"{rate:.1f} tok/s")
    out += [f"- {part}: {cost(facts[part])}" for part in ("data", "verify", "diagnose", "report") if part in facts]
    return "\n".join(out) + "\n"
