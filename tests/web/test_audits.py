from __future__ import annotations

import random
import re
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import pytest

from hoofbeat.audit import Audit, OrderProbe
from hoofbeat.audit.findings.audit_changes import split_between
from hoofbeat.audit.findings.divergence_themes import Theme, ThemeExample
from hoofbeat.audit.findings.pair_arrays import question_matrix
from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.findings.serious_divergence import serious_pairs
from hoofbeat.audit.findings.source_profiles import pair_rates
from hoofbeat.audit.findings.table_agreement import join
from hoofbeat.records import Answer, Comparison, Failure, Passage, Question
from hoofbeat.reports.pair_index import NO_LABEL, AuditIndex, PairFilter
from hoofbeat.reports.tables import written
from hoofbeat.store import Manifest, create
from hoofbeat.store.tables import write_jsonl
from hoofbeat.web.browse.audit_figures import open_audit
from hoofbeat.web.site import Site
from tests.web.answered import an_audit
from tests.web.browse_support import Visitor, a_site
from tests.web.test_runs import plain

SOURCES = ("alder", "brook", "cairn", "dune")
QUESTIONS = [
    Question(id=f"q{n}", text=f"What of {n}?", facets={"group": "ab"[n % 2], "topics": [f"t{n % 3}"]})
    for n in range(12)
]
LABELS = (*FIVE_RELATIONS.order, "")
LEVELS = ("low", "medium", "high")


def random_pairs(seed: int) -> list[Comparison]:
    rng = random.Random(seed)
    made = []
    for question in QUESTIONS:
        for a, b in combinations(SOURCES, 2):
            label = rng.choice(LABELS)
            apart = label in FIVE_RELATIONS.diverging
            made.append(
                Comparison(
                    question=question.id, a=a, b=b, label=label, judge="j", basis="judged",
                    topic=rng.choice(["Dose.", "dose", "timing", None]) if apart else None,
                    significance=rng.choice([*LEVELS, None]) if apart else None,
                    reasoning=f"Because of {question.id}, {a} and {b}.",
                    failure=None if label else Failure(kind="timeout", message="gave up"),
                )
            )  # fmt: skip
    return made


def said() -> list[Answer]:
    shown = Passage(id="p", document="alder", text="Take it daily. Never skip it.", heading="Doses")
    return [
        Answer(
            question=question.id, model="m", condition="source", source=source, text=f"{source} on {question.id}.",
            absent=source == "dune" and number > 5, citations=("Doses",) if source == "alder" else (),
            evidence=(shown,) if source == "alder" else (),
        )
        for number, question in enumerate(QUESTIONS)
        for source in SOURCES
    ]  # fmt: skip


def index_of(site: Site, slug: str) -> AuditIndex:
    folder = site.library.folder(slug)
    assert folder is not None
    opened = open_audit(site, folder, patience=30)
    assert opened is not None
    return opened.index


@pytest.fixture(scope="module")
def pairs() -> list[Comparison]:
    return random_pairs(3)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, pairs: list[Comparison]) -> Site:
    folder = tmp_path_factory.mktemp("audits")
    probes = [OrderProbe(question="q0", a="alder", b="brook", label=pairs[0].label, swapped="Consistent")]
    an_audit(folder / "audit", QUESTIONS, said(), pairs, probes=probes)
    an_audit(folder / "later", QUESTIONS, said(), random_pairs(4))
    return a_site(folder)


def is_wanted(pair: Comparison, wanted: PairFilter) -> bool:
    facets = next(question.facets for question in QUESTIONS if question.id == pair.question)
    chosen = {SOURCES[number - 1] for number in (wanted.a, wanted.b) if number}
    return (
        chosen <= {pair.a, pair.b}
        and (not wanted.question or pair.question == QUESTIONS[wanted.question - 1].id)
        and wanted.label in ("", pair.label or NO_LABEL)
        and wanted.level in ("", pair.significance or "")
        and all(value in facets[name] for name, value in wanted.facets)
    )


def test_every_filter_finds_what_the_records_say(site: Site, pairs: list[Comparison]) -> None:
    index = index_of(site, "audit")
    labels = ["", "Contradictory", "Absent", NO_LABEL]
    asked: product[tuple[int, int, str, str, str, int]] = product(
        (0, 1), (0, 3), labels, ("", "high"), ("", "a"), (0, 4)
    )
    for a, b, label, level, group, question in asked:
        facets = (("group", group),) if group else ()
        wanted = PairFilter(a=a, b=b, label=label, level=level, facets=facets, question=question)
        mine = [pair for pair in pairs if is_wanted(pair, wanted)]
        rows, total = index.serious(wanted, 0, 1000)
        assert total == len(mine)
        key = Counter((pair.question, pair.a, pair.b, pair.label or NO_LABEL) for pair in mine)
        assert key == Counter(
            (QUESTIONS[row.question - 1].id, SOURCES[row.a - 1], SOURCES[row.b - 1], row.label) for row in rows
        )
        matching, apart = index.found(wanted)
        assert matching.tolist() == [sum(pair.question == q.id for pair in mine) for q in QUESTIONS]
        diverging = [pair for pair in mine if pair.label in FIVE_RELATIONS.diverging]
        assert apart.tolist() == [sum(pair.question == q.id for pair in diverging) for q in QUESTIONS]


def test_the_most_serious_pairs_come_first_page_by_page(site: Site, pairs: list[Comparison]) -> None:
    index = index_of(site, "audit")
    whole, total = index.serious(PairFilter(), 0, 1000)
    assert total == len(pairs) == len({row.row for row in whole})
    paged = [row for start in range(0, total, 7) for row in index.serious(PairFilter(), start, 7)[0]]
    assert paged == whole
    found = serious_pairs(index._audit.frame(), top=1000, per_question=0)
    first = [(QUESTIONS[row.question - 1].id, SOURCES[row.a - 1], SOURCES[row.b - 1]) for row in whole[: len(found)]]
    assert Counter(first) == Counter((pair.question, pair.a, pair.b) for pair in found)
    assert [(row.level, row.label) for row in whole[: len(found)]] == [(p.significance, p.label) for p in found]
    assert {row.label for row in whole[-5:]} == {"Absent"}


def test_neighbours_walk_the_list_from_end_to_end(site: Site) -> None:
    index = index_of(site, "audit")
    for wanted in (PairFilter(), PairFilter(a=2), PairFilter(label="Divergent", level="low")):
        rows = [row.row for row in index.serious(wanted, 0, 1000)[0]]
        assert rows
        for place, row in enumerate(rows):
            before, after = index.neighbours(wanted, row)
            assert before == (rows[place - 1] if place else None)
            assert after == (rows[place + 1] if place + 1 < len(rows) else None)


def test_topics_are_counted_whatever_their_spelling(site: Site, pairs: list[Comparison]) -> None:
    index = index_of(site, "audit")
    counts = Counter((pair.topic or "").strip(".").lower() for pair in pairs if pair.topic)
    assert dict(index.topics) == dict(counts)
    for place, (words, count) in enumerate(index.topics):
        rows, total = index.serious(PairFilter(topics=(place,)), 0, 1000)
        assert total == count
        assert {row.topic for row in rows} == {words}
    assert index.serious(PairFilter(topics=()), 0, 10) == ([], 0)


def test_the_matrix_has_the_shares_of_the_findings(site: Site) -> None:
    page = Visitor(site).get("/audits/audit").text
    rates = pair_rates(index_of(site, "audit")._audit.frame())
    matrix = page[page.index('class="matrix"') :]
    for x, y in combinations(range(4), 2):
        share = rates.share(x, y)
        assert share is not None
        link = f"/audits/audit/pairs?a={x + 1}&amp;b={y + 1}"
        said = f"{rates.diverging[x][y]} of {rates.judged[x][y]} judged pairs diverge"
        cells = re.findall(rf'<a class="cell d\d(?: few)?" href="{re.escape(link)}" title="([^"]+)">(\d+)</a>', matrix)
        assert len(cells) == 2
        assert all(title.endswith(said) and figure == f"{100 * share:.0f}" for title, figure in cells)


def test_who_says_what_comes_before_the_figures_and_leads_to_the_passage(site: Site) -> None:
    visitor = Visitor(site)
    page = visitor.get("/audits/audit").text
    assert 0 < page.index('class="synthesis') < page.index('class="cards"')
    links = re.findall(r'href="(/audits/audit/questions/\d+#source-\d+)"', page)
    assert len(links) == sum(1 for each in said() if not each.absent and not each.failure)
    path, _, anchor = links[0].partition("#")
    question = visitor.get(path).text
    _, _, shown = question.partition(f'id="{anchor}"')
    assert "<blockquote" in shown.partition("</details>")[0]


def test_a_questions_matrix_leads_to_each_pair(site: Site) -> None:
    visitor = Visitor(site)
    index = index_of(site, "audit")
    for number, question in enumerate(QUESTIONS[:3], start=1):
        page = visitor.get(f"/audits/audit/questions/{number}").text
        found = question_matrix(index._audit.frame(), question.id)
        for x, y in combinations(range(4), 2):
            href = f"/audits/audit/questions/{number}/pairs/{x + 1}/{y + 1}"
            titles = re.findall(rf'href="{href}" title="([^"]+)"', page)
            label = found.labels[x][y] or "no label"
            assert titles == [f"{SOURCES[x]} and {SOURCES[y]}: {label}", f"{SOURCES[y]} and {SOURCES[x]}: {label}"]


def test_a_pair_shows_both_answers_and_why(site: Site, pairs: list[Comparison]) -> None:
    words = plain(Visitor(site).get("/audits/audit/questions/1/pairs/1/2").text)
    for told in (
        "alder and brook", "What of 0?", pairs[0].label or NO_LABEL, "alder on q0.", "brook on q0.", "Doses cited",
        "Take it daily. Never skip it.", "judge: j", "the judge compared this pair",
    ):  # fmt: skip
        assert told in words, told
    again = "the same label" if pairs[0].label == "Consistent" else f"Consistent, not {pairs[0].label}"
    assert f"judged again with the answers swapped: {again}" in words
    turned = plain(Visitor(site).get("/audits/audit/questions/1/pairs/2/1").text)
    assert turned.index("alder on q0.") < turned.index("brook on q0.")
    lost = next(place for place, pair in enumerate(pairs) if pair.failure)
    a, b = (SOURCES.index(name) + 1 for name in (pairs[lost].a, pairs[lost].b))
    failed = Visitor(site).get(f"/audits/audit/questions/{lost // 6 + 1}/pairs/{a}/{b}")
    assert "timeout: gave up" in failed.text


def test_the_api_gives_pairs_and_one_in_full(site: Site, pairs: list[Comparison]) -> None:
    visitor = Visitor(site)
    first = visitor.get("/api/audits/audit/pairs?label=Contradictory&a=brook&size=3").json()
    mine = [pair for pair in pairs if pair.label == "Contradictory" and "brook" in (pair.a, pair.b)]
    assert first["total"] == len(mine)
    assert visitor.get("/api/audits/audit/pairs?a=nobody").json()["total"] == 0
    assert visitor.get("/api/audits/audit/pairs?question=q3").json()["total"] == 6
    assert visitor.get("/api/audits/audit/pairs?page=999&size=10").json()["page"] == 8
    whole = visitor.get("/api/audits/audit/questions/1/pairs/2/1").json()
    assert (whole["a"], whole["b"], whole["reasoning"]) == ("alder", "brook", "Because of q0, alder and brook.")
    assert whole["numbers"] == [1, 2]
    for path in ("questions/1/pairs/1/1", "questions/99/pairs/1/2", "questions/1/pairs/1/9"):
        assert visitor.get(f"/api/audits/audit/{path}").status_code == 404
    assert visitor.get("/api/audits/nothing/pairs").status_code == 404
    assert visitor.get("/api/audits/audit/questions/0/pairs/1/2").status_code == 422


def test_what_changed_since_an_earlier_audit(site: Site) -> None:
    visitor = Visitor(site)
    assert "/audits/later/since/audit" in visitor.get("/audits/later").text
    before, after = (index_of(site, slug)._audit.frame() for slug in ("audit", "later"))
    found = split_between(join(before, after))
    words = plain(visitor.get("/audits/later/since/audit").text)
    assert found.intensity.change is not None
    assert f"intensity {written(found.intensity.before, 'share')} {written(found.intensity.after, 'share')}" in words
    assert visitor.get("/audits/later/since/later").status_code == 404


def test_lists_of_questions_are_in_the_order_asked_for(site: Site) -> None:
    visitor = Visitor(site)
    index = index_of(site, "audit")

    def listed(query: str) -> list[str]:
        return re.findall(r'<span class="id">(\w+)</span>', visitor.get(f"/audits/audit/questions?{query}").text)

    assert listed("order=number") == [question.id for question in QUESTIONS]
    shares = {q.id: index.diverging(n) / max(1, index.judged(n)) for n, q in enumerate(QUESTIONS)}
    by_share = listed("")
    assert [shares[name] for name in by_share] == sorted(shares.values(), reverse=True)
    by_count = listed("order=diverging")
    counts = {q.id: index.diverging(n) for n, q in enumerate(QUESTIONS)}
    assert [counts[name] for name in by_count] == sorted(counts.values(), reverse=True)
    assert set(listed("facet.group=b&order=number")) == {q.id for q in QUESTIONS if q.facets["group"] == "b"}
    first = visitor.get(f"/audits/audit/questions/{1 + int(by_count[1][1:])}?order=diverging").text
    assert f'rel="prev" href="/audits/audit/questions/{1 + int(by_count[0][1:])}?order=diverging"' in first
    assert f'rel="next" href="/audits/audit/questions/{1 + int(by_count[2][1:])}?order=diverging"' in first
    assert 'rel="next" href="/audits/audit/questions/4"' in visitor.get("/audits/audit/questions/3").text
    only = visitor.get("/audits/audit/questions/2?facet.group=b").text
    assert len(set(re.findall(r"/audits/audit/questions/(\d+)\?facet.group=b", only)) & set("13579")) == 0
    assert listed("a=99") == []
    assert listed("a=x") == []


def test_themes_of_an_audit_find_their_pairs(tmp_path: Path, pairs: list[Comparison]) -> None:
    audit = an_audit(tmp_path / "audit", QUESTIONS, said(), pairs)
    visitor = Visitor(a_site(tmp_path))
    assert "dose" in (words := plain(visitor.get("/audits/audit/themes").text))
    assert 'id="themes"' not in words
    counts = Counter((pair.topic or "").strip(".").lower() for pair in pairs if pair.topic)
    example = ThemeExample(question="q0", a="alder", b="brook", label="Divergent", significance="low", topic="dose")
    theme = Theme(
        name="How much <b>", rule_name="dose", count=counts["dose"], questions=3, sources=4, different=1,
        phrases=(("dose", counts["dose"]),), labels={}, levels={}, cohesion=1.0, examples=(example,),
    )  # fmt: skip
    with create(tmp_path / "themes", replace_kind="themes") as draft:
        write_jsonl(draft.path / "themes.jsonl", [{"place": 1, "weight": 2.0, "theme": theme}])
        draft.finish(Manifest(kind="themes", title="Themes", inputs=[audit.reference()]))
    visitor = Visitor(a_site(tmp_path))
    page = visitor.get("/audits/audit/themes").text
    assert '<a href="/audits/audit/pairs?theme=1">How much &lt;b&gt;</a>' in page
    found = plain(visitor.get("/audits/audit/pairs?theme=1").text)
    assert f"{counts['dose']} of 72 pairs" in found
    assert "0 of 72 pairs" in plain(visitor.get("/audits/audit/pairs?theme=2").text)
    other = next(place for place, (name, _) in enumerate(index_of(a_site(tmp_path), "audit").topics) if name != "dose")
    assert "0 of 72 pairs" in plain(visitor.get(f"/audits/audit/pairs?theme=1&topic={other + 1}").text)


def test_of_many_sources_the_silent_ones_are_left_out_of_the_grid(tmp_path: Path) -> None:
    names = [f"s{number:02}" for number in range(45)]
    questions = QUESTIONS[:1]
    answers = [
        Answer(question="q0", model="m", condition="source", source=name, text="Yes.", absent=name < "s03")
        for name in names
    ]
    pairs = [
        Comparison(question="q0", a=a, b=b, label="Absent" if a < "s03" else "Consistent", basis="judged")
        for a, b in combinations(names, 2)
    ]
    an_audit(tmp_path / "audit", questions, answers, pairs)
    page = Visitor(a_site(tmp_path)).get("/audits/audit/questions/1").text
    assert "3 sources are silent and not in the matrix: s00, s01, s02." in plain(page)
    assert page.count('class="cell tone1"') == 42 * 41 // 2 + 1  # each pair once, and the key
    assert "/questions/1/pairs/4/5" in page


def test_an_audit_without_pairs_has_pages_too(tmp_path: Path) -> None:
    one = [Answer(question="q0", model="m", condition="source", source="alder", text="Yes.", absent=False)]
    an_audit(tmp_path / "audit", QUESTIONS[:1], one, [])
    visitor = Visitor(a_site(tmp_path))
    assert "nothing to compare" in visitor.get("/audits/audit").text
    for path in ("sources", "themes", "questions", "questions/1", "pairs"):
        assert visitor.get(f"/audits/audit/{path}").status_code == 200
    assert "Fewer than two sources" in visitor.get("/audits/audit/questions/1").text


@pytest.mark.parametrize(
    "path",
    ["/audits/nothing", "/audits/nothing/pairs", "/audits/audit/questions/0", "/audits/audit/questions/13",
     "/audits/audit/questions/1/pairs/1/1", "/audits/audit/questions/1/pairs/0/1",
     "/audits/audit/questions/1/pairs/1/5", "/audits/audit/since/nothing", "/audits/nothing/themes",
     "/audits/nothing/questions/1/pairs/1/2"],
)  # fmt: skip
def test_what_is_not_here_is_a_page_that_says_so(site: Site, path: str) -> None:
    found = Visitor(site).get(path)
    assert found.status_code == 404
    assert "<h1>" in found.text


def test_the_teaching_audit_leads_to_its_documents(folders: Path) -> None:
    audit = Audit.open(folders / "audit")
    visitor = Visitor(a_site(folders))
    page = visitor.get("/audits/audit/questions/3/pairs/1/7").text
    title = "Living with your new kidney"
    assert re.search(
        rf'<a href="/corpora/handbooks/documents/\d+" dir="auto">{title}</a> <span class="id">hb-alder', page
    )
    assert audit.questions[2].text in plain(page)
    assert "<mark>If your temperature is 38.0 °C or higher" in page
