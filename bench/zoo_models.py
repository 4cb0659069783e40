"""The models of bench/zoo.py: small configurations with random weights, one row each.

make(name) gives a case as bench/worker.py wants it: a step without gradients and the batches that it takes in turn. Inputs are fixed by seed.
Rows of TRANSFORMERS: configuration class, model class, its settings, kind of input. Rows of TIMM: the model's name there, its settings,
image size. GENERATE: rows of TRANSFORMERS whose generate() is run as well, as NAME_generate.
"""

import torch

BATCHES, BATCH, LENGTH, VOCABULARY, IMAGE, NEW_TOKENS = 4, 1, 32, 1000, 64, 16

WIDTH = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
ENCODER = {**WIDTH, "vocab_size": VOCABULARY, "max_position_embeddings": 128}
LLAMA = {**ENCODER, "num_key_value_heads": 2, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": None}
GPT = {"vocab_size": VOCABULARY, "n_positions": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": None}
NEOX = {**ENCODER, "bos_token_id": 1, "eos_token_id": None}
SEQ2SEQ = {"vocab_size": VOCABULARY, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
           "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
           "decoder_start_token_id": 2, "forced_eos_token_id": None}
T5 = {"vocab_size": VOCABULARY, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
VISION = {**WIDTH, "image_size": IMAGE, "patch_size": 8}
TOWER = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
SPEECH = {**WIDTH, "conv_dim": (32, 32, 32), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2), "num_conv_pos_embeddings": 16,
          "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 3, "vocab_size": 32}

TRANSFORMERS = {
    "bert": ("BertConfig", "BertModel", ENCODER, "tokens"),
    "bert_classifier": ("BertConfig", "BertForSequenceClassification", ENCODER, "tokens"),
    "roberta": ("RobertaConfig", "RobertaModel", ENCODER, "tokens"),
    "distilbert": ("DistilBertConfig", "DistilBertModel", {"vocab_size": VOCABULARY, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}, "tokens"),
    "albert": ("AlbertConfig", "AlbertModel", {**ENCODER, "embedding_size": 32}, "tokens"),
    "electra": ("ElectraConfig", "ElectraModel", {**ENCODER, "embedding_size": 32}, "tokens"),
    "deberta": ("DebertaConfig", "DebertaModel", {**ENCODER, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "tokens"),
    "deberta_v2": ("DebertaV2Config", "DebertaV2Model", {**ENCODER, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 16}, "tokens"),
    "mpnet": ("MPNetConfig", "MPNetModel", ENCODER, "tokens"),
    "convbert": ("ConvBertConfig", "ConvBertModel", {**ENCODER, "embedding_size": 64}, "tokens"),
    "squeezebert": ("SqueezeBertConfig", "SqueezeBertModel", {**ENCODER, "embedding_size": 64}, "tokens"),
    "mobilebert": ("MobileBertConfig", "MobileBertModel", {**ENCODER, "embedding_size": 64, "intra_bottleneck_size": 32}, "tokens"),
    "xlnet": ("XLNetConfig", "XLNetModel", {"vocab_size": VOCABULARY, "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 128}, "tokens"),
    "fnet": ("FNetConfig", "FNetModel", ENCODER, "tokens"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", GPT, "tokens"),
    "gpt_neo": ("GPTNeoConfig", "GPTNeoForCausalLM", {"vocab_size": VOCABULARY, "hidden_size": 64, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 128,
                "attention_types": [[["global", "local"], 1]], "window_size": 16}, "tokens"),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", NEOX, "tokens"),
    "gptj": ("GPTJConfig", "GPTJForCausalLM", {**GPT, "rotary_dim": 8}, "tokens"),
    "opt": ("OPTConfig", "OPTForCausalLM", {"vocab_size": VOCABULARY, "hidden_size": 64, "ffn_dim": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "max_position_embeddings": 128, "word_embed_proj_dim": 64}, "tokens"),
    "bloom": ("BloomConfig", "BloomForCausalLM", {"vocab_size": VOCABULARY, "hidden_size": 64, "n_layer": 2, "n_head": 4}, "tokens"),
    "llama": ("LlamaConfig", "LlamaForCausalLM", LLAMA, "tokens"),
    "mistral": ("MistralConfig", "MistralForCausalLM", LLAMA, "tokens"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", LLAMA, "tokens"),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {**LLAMA, "head_dim": 16, "pad_token_id": 0}, "tokens"),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", {**LLAMA, "head_dim": 16, "pad_token_id": 0}, "tokens"),
    "phi": ("PhiConfig", "PhiForCausalLM", LLAMA, "tokens"),
    "falcon": ("FalconConfig", "FalconForCausalLM", {"vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}, "tokens"),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", LLAMA, "tokens"),
    "mamba": ("MambaConfig", "MambaForCausalLM", {"vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 8}, "tokens"),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5, "pair"),
    "bart": ("BartConfig", "BartForConditionalGeneration", SEQ2SEQ, "pair"),
    "marian": ("MarianConfig", "MarianMTModel", SEQ2SEQ, "pair"),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", SEQ2SEQ, "pair"),
    "whisper": ("WhisperConfig", "WhisperForConditionalGeneration", {**{k: v for k, v in SEQ2SEQ.items() if k != "max_position_embeddings"}, "num_mel_bins": 16,
                "max_source_positions": 50, "max_target_positions": 64}, "mel"),
    "vit": ("ViTConfig", "ViTModel", VISION, "image"),
    "deit": ("DeiTConfig", "DeiTModel", VISION, "image"),
    "dinov2": ("Dinov2Config", "Dinov2Model", VISION, "image"),
    "clip": ("CLIPConfig", "CLIPModel", {"text_config": {**TOWER, "vocab_size": VOCABULARY, "max_position_embeddings": 64, "eos_token_id": 2},
             "vision_config": {**TOWER, "image_size": IMAGE, "patch_size": 8}, "projection_dim": 32}, "both"),
    "siglip": ("SiglipVisionConfig", "SiglipVisionModel", VISION, "image"),
    "wav2vec2": ("Wav2Vec2Config", "Wav2Vec2Model", SPEECH, "wave"),
}
GENERATE = ("gpt2", "llama", "opt", "t5")

TIMM = {
    "timm_resnet18": ("resnet18", {}, IMAGE),
    "timm_resnet50": ("resnet50", {}, IMAGE),
    "timm_mobilenetv2": ("mobilenetv2_100", {}, IMAGE),
    "timm_mobilenetv3": ("mobilenetv3_small_100", {}, IMAGE),
    "timm_efficientnet": ("efficientnet_b0", {}, IMAGE),
    "timm_convnext": ("convnext_atto", {}, IMAGE),
    "timm_vit": ("vit_tiny_patch16_224", {"img_size": IMAGE}, IMAGE),
    "timm_deit": ("deit_tiny_patch16_224", {"img_size": IMAGE}, IMAGE),
    "timm_swin": ("swin_tiny_patch4_window7_224", {"img_size": 56, "window_size": 7, "depths": (1, 1, 2, 1), "embed_dim": 48}, 56),
    "timm_regnet": ("regnetx_002", {}, IMAGE),
    "timm_mixer": ("mixer_s32_224", {"img_size": IMAGE}, IMAGE),
    "timm_densenet": ("densenet121", {}, IMAGE),
    "timm_ghostnet": ("ghostnet_100", {}, IMAGE),
    "timm_poolformer": ("poolformer_s12", {}, IMAGE),
}


def names():
    return [*TRANSFORMERS, *(name + "_generate" for name in GENERATE), *TIMM]


def inputs(kind, size=IMAGE):
    """The keyword arguments of one call."""
    tokens = {"input_ids": torch.randint(3, VOCABULARY, (BATCH, LENGTH))}
    if kind == "tokens":
        return tokens
    if kind == "pair":
        return {**tokens, "decoder_input_ids": torch.randint(3, VOCABULARY, (BATCH, LENGTH // 2))}
    if kind == "mel":
        return {"input_features": torch.randn(BATCH, 16, 100), "decoder_input_ids": torch.randint(3, VOCABULARY, (BATCH, LENGTH // 2))}
    image = {"pixel_values": torch.randn(BATCH, 3, size, size)}
    if kind == "image":
        return image
    if kind == "both":
        return {**tokens, **image}
    return {"input_values": torch.randn(BATCH, 4000)}


def first_tensor(output):
    """The output that is compared: logits of a model with a head, the last hidden state of another."""
    for name in ("logits", "logits_per_image", "last_hidden_state"):
        if getattr(output, name, None) is not None:
            return getattr(output, name)
    return output


def allow_torchvision():
    """torchvision comes without its library (zoo.py): its operators are missing, and these are asked for at import."""
    if not hasattr(torch.ops.torchvision, "nms"):
        allow_torchvision.library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            allow_torchvision.library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def make(name):
    """(step, batches) of a row. step(**inputs) is wrapped to take the batch as one argument."""
    torch.manual_seed(0)
    allow_torchvision()
    if name in TIMM:
        import timm
        model_name, settings, size = TIMM[name]
        model = timm.create_model(model_name, num_classes=100, **settings).eval()
        batches = [(torch.randn(BATCH, 3, size, size),) for _ in range(BATCHES)]

        def step(image):
            with torch.no_grad():
                return model(image)
        return step, batches

    import transformers
    generates = name.endswith("_generate")
    config_class, model_class, settings, kind = TRANSFORMERS[name.removesuffix("_generate")]
    config = getattr(transformers, config_class)(**settings)
    model = getattr(transformers, model_class)(config).eval()
    if generates:
        batches = [(inputs("tokens")["input_ids"][:, :8],) for _ in range(BATCHES)]

        def generate(tokens):
            return model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False,
                                  pad_token_id=0)
        return generate, batches
    batches = [(inputs(kind),) for _ in range(BATCHES)]

    def step(batch):
        with torch.no_grad():
            return first_tensor(model(**batch))
    return step, batches
