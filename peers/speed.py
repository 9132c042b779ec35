"""./run peers speed: scoring, training, an adapter's training and decoding of the 0.6B shape beside transformers, torch and peft.

Random weights in f32, both programs with two threads, one after the other in one call: compare the ratios of a run, not its numbers."""
import argparse
import json
import resource
import subprocess
import time

import peft
import torch
import transformers

SHAPE = dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8, head_dim=128,
             vocab_size=151936, max_position_embeddings=40960, rope_theta=1e6, tie_word_embeddings=True)
TOP_K = 16


def make_model():
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(transformers.Qwen3Config(**SHAPE), dtype=torch.float32, attn_implementation="sdpa")
    model = model.to_empty(device="cpu")
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.fill_(1.0) if "norm" in name else value.uniform_(-0.02, 0.02)
    model.tie_weights()
    for module in model.modules():  # rotary tables are buffers, which to_empty() left unset
        if hasattr(module, "inv_freq"):
            steps = torch.arange(0, SHAPE["head_dim"], 2) / SHAPE["head_dim"]
            module.inv_freq = module.original_inv_freq = 1.0 / SHAPE["rope_theta"] ** steps
    return model


def best_seconds(work, times):
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def candidate_loss(model, ids):
    """The student's 16 candidates with constant coefficients: what a training step of the method computes."""
    logprobs = torch.log_softmax(model(ids).logits[0, :-1], -1)
    chosen = logprobs.topk(TOP_K).indices
    sign = torch.ones(TOP_K)
    sign[::2] = -1
    return (logprobs.gather(-1, chosen) * sign).sum() * 1e-3


def decode(model, sequences, steps):
    with torch.no_grad():
        past = model(torch.full((sequences, 32), 7), use_cache=True).past_key_values
        begin = time.perf_counter()
        for _ in range(steps):
            past = model(torch.full((sequences, 1), 7), past_key_values=past, use_cache=True).past_key_values
    return sequences * steps / (time.perf_counter() - begin)


def theirs(tokens, times):
    model = make_model()
    ids = torch.arange(tokens).remainder(1000)[None]
    speeds = {}
    for count in (1, 8):
        speeds[f"decode {count}, context 32, bf16"] = decode(model, count, 6)

    def score():
        with torch.no_grad():
            torch.log_softmax(model(ids).logits[0], -1).topk(TOP_K)
    speeds["score, top 16, f32"] = tokens / best_seconds(score, times)

    def train():
        candidate_loss(model, ids).backward()
    speeds[f"train, f32, {tokens} tokens"] = tokens / best_seconds(train, times)
    for value in model.parameters():
        value.grad = None
    adapted = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))

    def train_adapter():
        candidate_loss(adapted, ids).backward()
    speeds[f"train, f32, adapter, {tokens} tokens"] = tokens / best_seconds(train_adapter, times)
    return speeds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def ours(program, tokens):
    done = subprocess.run([program, "bench", "--shape", "qwen3-0.6b", "--tokens", str(tokens), "--work", "decode,score,train", "--json", "--quiet", "--threads",
                           "2"], capture_output=True, text=True, check=True)
    return {row["work"]: row for row in json.loads(done.stdout)["rows"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/ropd")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--times", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    rows = ours(arguments.program, arguments.tokens)
    speeds, memory = theirs(arguments.tokens, arguments.times)
    print(f"| work, 0.6B shape, two threads | ours, tok/s | transformers {transformers.__version__}, torch {torch.__version__}, f32 | ratio |\n|---|---|---|---|")
    for name, speed in speeds.items():
        mine = rows[name]["tokens_per_second"]
        print(f"| {name}{' here' if name.startswith('decode') else ''} | {mine:.1f} | {speed:.1f} | {mine / speed:.2f} |")
    print(f"| peak memory of all of it, GB | {max(row['peak_memory_bytes'] for row in rows.values()) / 1e9:.1f} | {memory / 1e9:.1f} | |")


if __name__ == "__main__":
    main()
