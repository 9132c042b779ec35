"""Small random models of every family, written by transformers with a real tokenizer."""
import json
import shutil

import torch
import transformers

SIZE = dict(hidden_size=64, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=4096, vocab_size=151936, rope_theta=1e6, bos_token_id=151643, eos_token_id=151645)


def config_of(family, tied):
    if family == "qwen3":
        return transformers.Qwen3Config(**SIZE, head_dim=16, tie_word_embeddings=tied)
    if family == "qwen2":
        return transformers.Qwen2Config(**SIZE, tie_word_embeddings=tied)
    if family == "llama":
        return transformers.LlamaConfig(**SIZE, tie_word_embeddings=tied)
    return transformers.Qwen3MoeConfig(**SIZE, head_dim=16, tie_word_embeddings=tied, num_experts=8, num_experts_per_tok=2,
                                       moe_intermediate_size=48, norm_topk_prob=True, decoder_sparse_step=1)


def make(path, tokenizers, family, tied=True, dtype=torch.float32, shard="1GB", seed=0, rope_scaling=None):
    """Writes a model directory. Weights are wider than transformers' default, so that probabilities are not flat."""
    torch.manual_seed(seed)
    config = config_of(family, tied)
    if rope_scaling:
        config.rope_scaling = rope_scaling
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" in name:
                value.normal_(1.0, 0.2)
            elif "embed_tokens" in name or "lm_head" in name:
                value.normal_(0.0, 0.35)
            elif name.endswith("bias"):
                value.normal_(0.0, 0.3)
            else:
                value.normal_(0.0, 0.15)
    model.to(dtype).save_pretrained(path, max_shard_size=shard)
    for file in (tokenizers / "qwen3").iterdir():
        shutil.copy(file, path / file.name)
    return path


def set_rope_scaling(path, scaling):
    """As published configs carry it: `rope_scaling` beside `rope_theta` at the top."""
    config = json.loads((path / "config.json").read_text())
    parameters = config.pop("rope_parameters", None)
    if parameters:
        config["rope_theta"] = parameters["rope_theta"]
    config["rope_scaling"] = scaling
    (path / "config.json").write_text(json.dumps(config, indent=2))


def load(path):
    return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
