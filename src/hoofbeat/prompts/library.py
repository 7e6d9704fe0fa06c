"""Reading and filling prompt files."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

import jinja2
import jinja2.meta
import msgspec
from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.models.requests import ChatRequest, Message
from hoofbeat.prompts.instructions import material_instructions
from hoofbeat.text import printable

_FOLDER = resources.files("hoofbeat.prompts") / "files"
_HEAD = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n(.*)\Z", re.DOTALL)
_PART = re.compile(r"^## (system|user|output)\n", re.MULTILINE)
_CONTROL = re.compile(
    # ChatML, Llama 3, Phi, Qwen, Command R, Harmony: <|im_end|> and its kin; DeepSeek's have wide bars
    r"<(?=/?[|｜])|(?<=[|｜])>"
    # Llama 2, Gemma, Qwen's tools, reasoning
    r"|<(?=/?(?:think|thinking|reasoning|s|system|user|assistant|model|tools?|tool_(?:call|response)s?)>)"
    r"|<(?=/?(?:bos|eos|pad|unk|cls|sep|mask|eop)(?:_token)?>)"  # Gemma, Command R
    r"|<(?=(?:start|end)_of_(?:turn|image)>)|<(?=unused\d{1,4}>)"
    r"|<(?=</?SYS>>)|(?<=<)<(?=/?SYS>>)"
    # Llama 2, Mistral
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|RESULTS|CONTENT)|THINK|ARGS|CALL_ID|PREFIX|MIDDLE"
    r"|SUFFIX|IMG|IMG_BREAK|IMG_END|CONTROL_\d{1,4})\])"
    # Claude's turns begin a line; a wide colon reads the same
    r"|(?<=^Human):|(?<=^Assistant):",
    re.IGNORECASE | re.MULTILINE,
)
_HARMLESS = {"<": "‹", ">": "›", "[": "⟦", ":": "："}
_FENCE = re.compile(r"[<＜﹤](?=\s*[/／]?\s*material)", re.IGNORECASE)


def material(text: str, name: str = "text") -> str:
    """Fence a document's text for a prompt; nothing in it can close the fence or speak the chat format."""
    safe = _FENCE.sub("‹", _CONTROL.sub(lambda found: _HARMLESS[found.group()], printable(text)))
    return f'<material name="{label(name)}">\n{safe.strip()}\n</material>'


def label(name: str) -> str:
    """A document's or passage's name as one short line of plain words: it may stand outside a fence."""
    return " ".join(re.sub(r"[^\w .,:;()/-]", " ", name).split())[:120]


class _Head(Struct, frozen=True, forbid_unknown_fields=True):
    purpose: str
    variables: list[str]
    max_tokens: int = 512
    temperature: float = 0.0


class Prompt(Struct, frozen=True, kw_only=True):
    """One prompt: its templates, variables, limits and output contract."""

    name: str
    purpose: str
    fingerprint: str
    variables: tuple[str, ...]
    system: str
    user: str
    schema: dict[str, object] | None
    max_tokens: int
    temperature: float

    @property
    def label(self) -> str:
        """Name and fingerprint, as lineage and manifests record them."""
        return f"{self.name}@{self.fingerprint}"

    def request(
        self,
        values: Mapping[str, object],
        *,
        schema: dict[str, object] | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        sample: int = 0,
    ) -> ChatRequest:
        """The filled prompt as a request; limits and output contract are the file's unless given."""
        system, user = self.fill(values)
        messages: tuple[Message, ...] = (Message(role="user", content=user),)
        if system:
            messages = (Message(role="system", content=system), *messages)
        return ChatRequest(
            messages=messages,
            max_tokens=self.max_tokens if max_tokens is None else max_tokens,
            temperature=self.temperature if temperature is None else temperature,
            seed=seed,
            schema=schema or self.schema,
            sample=sample,
            prompt=self.label,
            flags=(*material_instructions(system), *material_instructions(user)),
        )

    def fill(self, values: Mapping[str, object]) -> tuple[str, str]:
        """The system and user texts for these values; every variable must be given, and no other."""
        if set(values) != set(self.variables):
            raise UsageError(
                f"the prompt {self.name} needs {', '.join(self.variables)} but got {', '.join(sorted(values))}"
            )
        return _template(self.system).render(values).strip(), _template(self.user).render(values).strip()


@cache
def _template(source: str) -> jinja2.Template:
    return _environment().from_string(source)


def template_names(source: str) -> set[str] | None:
    """The variables that a template takes from outside; None where it is no template."""
    try:
        return jinja2.meta.find_undeclared_variables(_environment().parse(source))
    except jinja2.TemplateError:
        return None


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True)  # noqa: S701
    environment.filters["material"] = material
    environment.filters["label"] = label
    return environment


def prompt_names() -> list[str]:
    """All prompts that ship with the package."""
    return sorted(entry.name.removesuffix(".md") for entry in _FOLDER.iterdir() if entry.name.endswith(".md"))


@cache
def load_prompt(name: str) -> Prompt:
    """Read one prompt file."""
    if name not in prompt_names():
        raise UsageError(f"there is no prompt {name!r}", fix=f"use one of: {', '.join(prompt_names())}")
    text = (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return parse_prompt(name, text)


def parse_prompt(name: str, text: str) -> Prompt:
    """A prompt from its file's text; raises `UsageError` when the file breaks the format."""
    match = _HEAD.match(text)
    if not match:
        raise UsageError(f"the prompt {name} has no head between +++ lines")
    try:
        head = msgspec.convert(tomllib.loads(match.group(1)), _Head)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as err:
        raise UsageError(f"the head of the prompt {name} is wrong: {err}") from err
    pieces = _PART.split(match.group(2))
    parts = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if "user" not in parts:
        raise UsageError(f"the prompt {name} has no user part")
    try:
        schema = msgspec.json.decode(parts["output"]) if "output" in parts else None
    except msgspec.DecodeError as err:
        raise UsageError(f"the output schema of the prompt {name} is not JSON: {err}") from err
    return Prompt(
        name=name,
        purpose=head.purpose,
        fingerprint=hashlib.sha256(text.encode()).hexdigest()[:12],
        variables=tuple(head.variables),
        system=parts.get("system", ""),
        user=parts["user"],
        schema=schema,
        max_tokens=head.max_tokens,
        temperature=head.temperature,
    )
