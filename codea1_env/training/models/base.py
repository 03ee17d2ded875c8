"""The model that both seats of a run start from: a tiny one, warm-started and cached, or a pretrained one.

Does not promise that a pretrained model knows a chat template, nor that it fits: `--dry-run` estimates the latter.
"""

from __future__ import annotations

from pathlib import Path

from codea1_env.configuration.model_sections import PretrainedModel
from codea1_env.configuration.presets import Preset
from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.directories import require_chat_model, require_model
from codea1_env.language_models.loading import load_tokenizer, load_weights
from codea1_env.training.models import warm_start

with extra("train", "training needs"):
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

MODEL_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]


def base_model(preset: Preset, cache: Path) -> Path:
    """A directory with the model and its tokenizer in Hugging Face format, built or downloaded on first use.

    Raises ConfigurationError, in one line, for a pretrained model that is neither a directory nor within reach on the
    hub, or a model whose files are not whole.
    """
    if not isinstance(preset.model, PretrainedModel):
        built = warm_start.base_model(preset, cache)
        what = "the base in CODEA1_CACHE, which is built anew once it is deleted,"
        require_chat_model(built, what)
        load_weights(built, what, load_tokenizer(built, what), device_map="meta")
        return built
    name, revision = preset.model.pretrained, preset.model.revision or None
    if Path(name).is_dir() or (preset.trainer == "packed" and name.endswith(".gguf")):
        directory = Path(name)
    else:
        directory = _downloaded(name, revision)
    (require_model if preset.trainer == "packed" else require_chat_model)(directory, "--model")
    return directory


def _downloaded(name: str, revision: str | None) -> Path:
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=MODEL_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        said = " ".join(str(error).split())
        raise ConfigurationError(
            f"--model must be a directory or a model within reach on the hub, got {name!r}: {said:.300}"
        ) from None
