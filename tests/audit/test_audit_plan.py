"""The plan of an audit: questions are expanded with the words of its pack, and with those of a user's table."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.audit.audit_plan import pack_note, plan_audit
from hoofbeat.audit.source_names import AuditSource
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.records import Question
from hoofbeat.retrieval.corpus_index import index_corpus
from tests.audit.planted import handbooks
from tests.prompts.test_packs import OWN

QUESTION = Question(id="q", text="What if I have a fever?")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return handbooks(tmp_path_factory.mktemp("handbooks"))


def line_of(corpus: Corpus, pack: str, words: Path | None = None, line: str = "hero") -> str:
    plan = plan_audit(corpus, [QUESTION], index_corpus, pack=pack, words=words, line=line)
    return str(plan.settings["line"])


def test_a_question_is_expanded_with_the_words_of_its_domain(corpus: Corpus, tmp_path: Path) -> None:
    assert line_of(corpus, "transplant") == "hero"
    assert line_of(corpus, "legal") == "hero[expand=legal]"
    assert line_of(corpus, "legal", line="hero[expand=none]") == "hero[expand=none]"
    own = tmp_path / "own.toml"
    own.write_text(OWN, encoding="utf-8")
    assert line_of(corpus, str(own)) == "hero[expand=none]"  # a pack without words
    own.write_text(f'{OWN}\n[[expansions]]\nterms = ["leash", "lead"]\n', encoding="utf-8")
    assert line_of(corpus, str(own)) == f"hero[expand={own}]"


def test_a_user_s_table_comes_beside_the_pack_s_words(corpus: Corpus, tmp_path: Path) -> None:
    words = tmp_path / "words.tsv"
    words.write_text("fever; burning up\n", encoding="utf-8")
    assert line_of(corpus, "transplant", words) == f"hero[expand=transplant+{words}]"
    plan = plan_audit(corpus, [QUESTION], index_corpus, words=words)
    before = plan.settings["words"]
    words.write_text("fever; glow\n", encoding="utf-8")
    assert plan_audit(corpus, [QUESTION], index_corpus, words=words).settings["words"] != before
    with pytest.raises(UsageError, match="only HERO expands"):
        line_of(corpus, "transplant", words, line="bm25")


def test_the_default_pack_is_named_and_doubted_where_nothing_is_about_transplants(corpus: Corpus) -> None:
    plan = plan_audit(corpus, [QUESTION], index_corpus)
    assert pack_note(plan.pack, plan.questions, plan.sources) == (
        "domain pack: transplant (the default), written for a transplant patient; choose another with --pack"
    )
    others = [AuditSource(id="back", title="Low back pain (invented)", facets={"institution": "Elm Clinic"})]
    odd = [QUESTION, Question(id="r", text="Does my back need an X-ray?"), Question(id="s", text="After a transplant?")]
    told = pack_note(plan.pack, odd, others)
    assert told.startswith("warning: domain pack: transplant (the default)")
    assert "--pack guidelines" in told
