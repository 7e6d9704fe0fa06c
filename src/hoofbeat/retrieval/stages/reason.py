"""`reason`: searches with the final answer of a model that thinks first."""

from __future__ import annotations

import re
from typing import ClassVar

from hoofbeat.models import Reply
from hoofbeat.retrieval.document_writers import DocumentWriter, final_text, generation_options

_ANSWER = re.compile(r"^[\s*#_`]*(?:final )?answer[*_`]*[ \t]*:[*_`]*", re.IGNORECASE | re.MULTILINE)


class ReasonStage(DocumentWriter):
    """Only the final answer is used, whether the model thinks in a separate block or before `Answer:`."""

    name = "reason"
    summary = "searches with the final answer of a model that thinks first"
    options = generation_options(4096)
    thinks: ClassVar[bool] = True

    def read(self, reply: Reply) -> tuple[str, str]:
        """The final answer in a reply, and everything before it; thinking that was cut off has no answer."""
        text, reasoning = final_text(reply)
        marks = list(_ANSWER.finditer(text))
        if marks:
            thought = "\n".join(part for part in (reasoning, text[: marks[-1].start()].strip()) if part)
            return text[marks[-1].end() :].strip(), thought
        return (text, reasoning) if reasoning or reply.finish != "length" else ("", text)


STAGE = ReasonStage()
