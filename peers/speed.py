"""./run peers speed: decoding, prefill, scoring and training of the 0.6B shape beside transformers, torch and peft.

Random weights, two threads each, one program after the other in one call: compare the ratios of a run, not its numbers.
bf16: their decoding, prefill and scoring with weights in bf16, their training by autocast, as ours keeps f32 weights, too."""
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


def decode(model, sequences, steps, times):
    """Behind a context of 32, the best of several calls, as ours is; the first step, which sets things up, does not count."""
    speeds = []
    with torch.no_grad():
        for _ in range(times):
            past = model(torch.full((sequences, 32), 7), use_cache=True).past_key_values
            for step in range(steps + 1):
                if step == 1:
                    begin = time.perf_counter()
                past = model(torch.full((sequences, 1), 7), past_key_values=past, use_cache=True).past_key_values
            speeds.append(sequences * steps / (time.perf_counter() - begin))
    return max(speeds)


def theirs(tokens, times):
    model = make_model()
    ids = torch.arange(tokens).remainder(1000)[None]
    speeds = {}

    def score():
        with torch.no_grad():
            torch.log_softmax(model(ids).logits[0].float(), -1).topk(TOP_K)

    def train(trained, precision):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = candidate_loss(trained, ids)
        loss.backward()

    speeds["score, top 16, f32"] = tokens / best_seconds(score, times)
    for precision in ("f32", "bf16"):
        speeds[f"train, {precision}, {tokens} tokens"] = tokens / best_seconds(lambda: train(model, precision), times)
    for value in model.parameters():
        value.grad = None
    adapted = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
    for precision in ("f32", "bf16"):
        speeds[f"train, {precision}, adapter, {tokens} tokens"] = tokens / best_seconds(lambda: train(adapted, precision), times)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    model = adapted.unload().to(torch.bfloat16)
    speeds["score, top 16, bf16"] = tokens / best_seconds(score, times)

    def prefill():
        with torch.no_grad():
            model(torch.arange(512)[None], logits_to_keep=1, use_cache=True)
    speeds["prefill 512, bf16"] = 512 / best_seconds(prefill, times)
    for count in (1, 8, 32, 64):
        speeds[f"decode {count}, context 32, bf16"] = decode(model, count, 12, times)
    return speeds, memory


def ours(program, tokens):
    done = subprocess.run([program, "bench", "--shape", "qwen3-0.6b", "--tokens", str(tokens), "--work", "decode,score,train", "--json", "--quiet", "--threads",
                           "2"], capture_output=True, text=True, check=True)
    return {row["work"]: row for row in json.loads(done.stdout)["rows"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/ropd")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    rows = ours(arguments.program, arguments.tokens)
    speeds, memory = theirs(arguments.tokens, arguments.times)
    print(f"| work, 0.6B shape, two threads | ours, tok/s | transformers {transformers.__version__}, torch {torch.__version__} | ratio |\n"
          "|---|---|---|---|")
    for name in sorted(speeds):
        mine = rows[name]["tokens_per_second"]
        print(f"| {name} | {mine:.1f} | {speeds[name]:.1f} | {mine / speeds[name]:.2f} |")
    print(f"| peak memory, GB (ours with decoding and bf16, theirs of f32 work and autocast) | {max(row['peak_memory_bytes'] for row in rows.values()) / 1e9:.1f} "
          f"| {memory / 1e9:.1f} | |")


if __name__ == "__main__":
    main()
