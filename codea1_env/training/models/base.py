"""The model that both seats of a run start from: a tiny one, warm-started and cached, or a pretrained one.

Does not promise that a pretrained model knows a chat template, nor that it fits: `--dry-run` estimates the latter.
"""

from __future__ import annotations

from pathlib import Path

from codea1_env.errors import ConfigurationError
from codea1_env.extras import extra
from codea1_env.language_models.directories import require_model
from codea1_env.training.config.presets import Preset, PretrainedModel
from codea1_env.training.models import warm_start

with extra("train", "training needs"):
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

MODEL_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]


def base_model(preset: Preset, cache: Path) -> Path:
    """A directory with the model and its tokenizer in Hugging Face format, built or downloaded on first use.

    Raises ConfigurationError for a pretrained model that is neither a directory nor within reach on the hub.
    """
    if not isinstance(preset.model, PretrainedModel):
        return warm_start.base_model(preset, cache)
    name, revision = preset.model.pretrained, preset.model.revision or None
    if preset.trainer == "packed" and (Path(name).is_dir() or name.endswith(".gguf")):
        require_model(Path(name), "model.pretrained")
        return Path(name)
    if Path(name).is_dir():
        if not (Path(name) / "config.json").is_file():
            raise ConfigurationError(f"model.pretrained must hold a model with its config.json, got {name}")
        return Path(name)
    try:
        directory = Path(snapshot_download(name, revision=revision, allow_patterns=MODEL_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ConfigurationError(
            f"model.pretrained must be a directory or a model within reach on the hub, got {name!r}: {error}"
        ) from None
    if preset.trainer == "packed":
        require_model(directory, "model.pretrained")
    return directory
