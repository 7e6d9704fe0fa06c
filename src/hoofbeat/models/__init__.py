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
    from hoofbeat.models.spec_help import SPEC_HELP

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

__getattr__ = lazy_names(
    __name__,
    {
        "budget": "Budget Estimate Price",
        "encoder": "Encoder load_encoder",
        "model": "CallResult Model StructuredReply",
        "model_loading": "Config ModelSettings load_config load_model",
        "requests": "ChatRequest Image Likelihood Message Reply",
        "spec_help": "SPEC_HELP",
    },
)
