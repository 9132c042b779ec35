"""Tokenizers, chat templates and the grader beside the libraries everybody uses."""
import json
import random

import tokenizers as hf_tokenizers
import transformers

from report import read_lines, write_lines


def texts():
    """A few thousand: every plane of Unicode, emoji, CJK, long runs, digits, white space, special tokens inside of text."""
    rng = random.Random(1)
    planes = [(0x20, 0x7F), (0xA0, 0x250), (0x370, 0x590), (0x590, 0x900), (0x900, 0x1200), (0x1E00, 0x2100), (0x2100, 0x2C00),
              (0x3040, 0x3100), (0x4E00, 0x9FFF), (0xAC00, 0xD7A4), (0xF900, 0xFFF0), (0x1D400, 0x1D800), (0x1F300, 0x1FB00),
              (0x20000, 0x20400), (0xE0000, 0xE0100), (0x300, 0x370), (0x200B, 0x2070)]
    words = ["the", " answer", " is", " 42", "x^2", "\\frac{1}{2}", "\n", "\n\n", "  ", "\t", "don't", "I'LL", " 3.14159", "1234567",
             "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|endoftext|>", "<|im_", "é", "e\u0301", "ﬁ", "👩‍👩‍👧‍👦", "🇩🇪",
             "\u00a0", "\u3000", "\r\n", "'s", "''", "$", "{", "}", "\\boxed{", "…", "中文", "한국어", "עברית"]
    result = ["", " ", "\n", "a" * 5000, " " * 3000, "1" * 2000, "\n" * 1000, "🙂" * 500, "ab" * 4000]
    for low, high in planes:
        for _ in range(120):
            result.append("".join(chr(rng.randrange(low, high)) for _ in range(rng.randrange(1, 40))))
    for _ in range(2000):
        result.append("".join(rng.choice(words) for _ in range(rng.randrange(1, 30))))
    return [text for text in result if not any(0xD800 <= ord(c) < 0xE000 for c in text)]


def compare_tokenizers(report, folder):
    lines = [{"text": text} for text in texts()]
    for name in ("qwen3", "qwen2_5", "deepseek_r1_distill_qwen"):
        source = write_lines(report.folder / f"texts-{name}.jsonl", lines)
        out = report.folder / f"ids-{name}.jsonl"
        out.unlink(missing_ok=True)
        report.ropd("tokenize", "--model", folder / name, "--in", source, "--out", out)
        theirs = hf_tokenizers.Tokenizer.from_file(str(folder / name / "tokenizer.json"))
        ours = [row["ids"] for row in read_lines(out)]
        equal = sum(ids == theirs.encode(row["text"], add_special_tokens=False).ids for ids, row in zip(ours, lines))
        report.fact(f"tokenizer {name}", f"{equal} of {len(lines)} texts equal", "tokenizers", equal == len(lines))


def compare_templates(report, folder, golden):
    for name in ("qwen3", "qwen2_5"):
        rows = read_lines(golden / f"chat_{name}.jsonl")
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder / name)
        source = write_lines(report.folder / f"chats-{name}.jsonl", rows)
        out = report.folder / f"chat-ids-{name}.jsonl"
        out.unlink(missing_ok=True)
        report.ropd("tokenize", "--model", folder / name, "--chat", "--in", source, "--out", out)
        equal = 0
        for row, ours in zip(rows, read_lines(out)):
            options = {key: row[key] for key in ("add_generation_prompt", "enable_thinking") if key in row}
            options.setdefault("add_generation_prompt", True)
            text = tokenizer.apply_chat_template(row["messages"], tools=row.get("tools"), tokenize=False, **options)
            equal += tokenizer(text, add_special_tokens=False)["input_ids"] == ours["ids"]
        report.fact(f"chat template {name}", f"{equal} of {len(rows)} chats equal", "apply_chat_template", equal == len(rows))


def compare_grader(report, golden):
    """Math-Verify is another judge, not a reference: where it differs, the cases are listed for a reader."""
    import math_verify
    differences = []
    total = 0
    for name in ("grader_edge", "grader_bench"):
        source, out = golden / f"{name}.jsonl", report.folder / f"{name}-ours.jsonl"
        out.unlink(missing_ok=True)
        report.ropd("grade", "--in", source, "--out", out)
        for row in read_lines(out):
            total += 1
            try:
                gold = math_verify.parse(f"\\boxed{{{row['answer']}}}")
                theirs = math_verify.verify(gold, math_verify.parse(row["response"]))
            except Exception:  # it is meant for batches: what it cannot parse is wrong
                theirs = False
            if bool(row["correct"]) != bool(theirs):
                differences.append({"answer": row["answer"], "response": row["response"][-120:], "ours": bool(row["correct"]),
                                    "math_verify": bool(theirs)})
    (report.folder / "grader_differences.json").write_text(json.dumps(differences, indent=1, ensure_ascii=False))
    more = sum(d["ours"] for d in differences)
    report.fact("grader beside Math-Verify", f"{total - len(differences)} of {total} verdicts equal",
                f"{more} right only for us, {len(differences) - more} only for Math-Verify (grader_differences.json)", True)
