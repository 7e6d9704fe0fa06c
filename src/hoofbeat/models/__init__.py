"""The one seam to language models and encoders: a model is named by one string and used through `Model`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.models.budget import Budget, Estimate, Price
    from hoofbeat.models.encoder import Encoder, load_encoder
    from hoofbeat.models.model import CallResult, Model, StructuredReply
    from hoofbeat.models.model_loading import Config, ModelSettings, load_config, load_model
    from hoofbeat.models.requests import ChatRequest, Image, Likelihood, Message, Reply

__all__ = [
    "SPEC_HELP",
    "Budget",
    "CallResult",
    "ChatRequest",
    "Config",
    "Encoder",
    "Estimate",
    "Image",
    "Likelihood",
    "Message",
    "Model",
    "ModelSettings",
    "Price",
    "Reply",
    "StructuredReply",
    "load_config",
    "load_encoder",
    "load_model",
]

SPEC_HELP = (
    "embedded, embedded:qwen2.5-coder-1.5b, openai:NAME, http://host:port/v1#NAME, batch:FOLDER#NAME, replay:FILE, "
    "or an alias in hoofbeat.toml"
)
"""The forms of a model's name, for the help of every verb that takes a model: it loads no model for it."""

__getattr__ = lazy_names(
    __name__,
    {
        "budget": "Budget Estimate Price",
        "encoder": "Encoder load_encoder",
        "model": "CallResult Model StructuredReply",
        "model_loading": "Config ModelSettings load_config load_model",
        "requests": "ChatRequest Image Likelihood Message Reply",
    },
)
