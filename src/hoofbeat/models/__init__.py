"""The one seam to language models and encoders: a model is named by one string and used through `Model`."""

from __future__ import annotations

from hoofbeat.models.budget import Budget, Estimate, Price
from hoofbeat.models.encoder import Encoder, load_encoder
from hoofbeat.models.model import CallResult, Model, StructuredReply
from hoofbeat.models.model_loading import SPEC_HELP, Config, ModelSettings, load_config, load_model
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
