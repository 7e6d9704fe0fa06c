"""Extensions are found by kind and name: built in, in a named file, or installed; names can't be taken twice."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.registry import PLUGINS_VARIABLE, Registry


class Greeting:
    extension_kind: ClassVar[str] = "greeting"
    extension_package: ClassVar[str] = "greetings"

    def __init__(self, name: str, summary: str = "") -> None:
        self.name = name
        self.summary = summary


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    package = tmp_path / "greetings"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "good_day.py").write_text(
        "from tests.test_registry import Greeting\nONE = Greeting('good-day', 'polite')\n"
    )
    (package / "several.py").write_text(
        "from tests.test_registry import Greeting\nALL = [Greeting('hello'), Greeting('hi')]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(PLUGINS_VARIABLE, "")
    for name in [name for name in sys.modules if name.split(".")[0] == "greetings"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tests.test_registry", sys.modules[__name__])
    return Registry()


def plugin(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text("from tests.test_registry import Greeting\n" + text)
    return path


def test_only_the_file_that_is_needed_is_imported(found: Registry) -> None:
    assert found.get(Greeting, "good-day").summary == "polite"
    assert "greetings.several" not in sys.modules


def test_a_file_may_hold_several(found: Registry) -> None:
    assert found.get(Greeting, "hi").name == "hi"
    assert found.names(Greeting) == ("good-day", "hello", "hi")


def test_an_unknown_name_is_answered_with_the_nearest_and_all(found: Registry) -> None:
    with pytest.raises(UsageError, match="there is no greeting 'helo'") as err:
        found.get(Greeting, "helo")
    assert err.value.fix is not None
    assert "did you mean hello?" in err.value.fix
    assert "good-day, hello, hi" in err.value.fix


def test_a_plugin_file_is_found_listed_and_announced_to_child_processes(found: Registry, tmp_path: Path) -> None:
    path = plugin(tmp_path, "GREETING = Greeting('servus')\n")
    loaded = found.load_file(path)
    assert loaded.extensions == ("greeting servus",)
    assert found.get(Greeting, "servus").name == "servus"
    assert found.names(Greeting) == ("good-day", "hello", "hi", "servus")
    assert [each.name for each in found.plugins] == ["mine.py"]
    assert os.environ[PLUGINS_VARIABLE] == str(path.resolve())
    assert Registry().names(Greeting) == ("good-day", "hello", "hi", "servus")
    assert found.load_file(path) is loaded


def test_two_plugin_files_of_one_name_are_both_listed(found: Registry, tmp_path: Path) -> None:
    for folder, greeting in (("a", "servus"), ("b", "moin")):
        (tmp_path / folder).mkdir()
        found.load_file(plugin(tmp_path / folder, f"GREETING = Greeting('{greeting}')\n"))
    assert [(each.name, each.extensions) for each in found.plugins] in (
        [("mine.py", ("greeting servus",)), ("mine.py", ("greeting moin",))],
        [("mine.py", ("greeting moin",)), ("mine.py", ("greeting servus",))],
    )


def test_a_name_that_is_taken_is_refused(found: Registry, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is already a greeting 'hi'"):
        found.load_file(plugin(tmp_path, "GREETING = Greeting('hi')\n"))
    assert found.plugins == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GREETING = Greeting('Guten Tag')\n", "can't be the name"),
        ("GREETING = 3\n", "defines no extension"),
        ("raise RuntimeError('no')\n", "can't be run: RuntimeError: no"),
        ("def (\n", "can't be run: SyntaxError"),
    ],
)
def test_a_wrong_file_is_refused_in_words(found: Registry, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        found.load_file(plugin(tmp_path, text))
    with pytest.raises(UsageError, match="no such plugin file"):
        found.load_file(tmp_path / "absent.py")


def test_built_in_objects_that_a_plugin_imports_are_not_its_own(found: Registry, tmp_path: Path) -> None:
    text = "from greetings.good_day import ONE\nGREETING = Greeting('moin', ONE.summary)\n"
    assert found.load_file(plugin(tmp_path, text)).extensions == ("greeting moin",)


def test_an_installed_package_is_found_by_its_entry_point(
    found: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path, "GREETING = Greeting('ahoj')\n", "hoofbeat_ahoj.py")
    info = tmp_path / "ahoj-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ahoj\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hoofbeat.plugins]\nahoj = hoofbeat_ahoj\n")
    importlib.invalidate_caches()
    assert any(point.name == "ahoj" for point in importlib.metadata.entry_points(group="hoofbeat.plugins"))
    assert found.get(Greeting, "ahoj").name == "ahoj"
    assert [each.name for each in found.plugins] == ["hoofbeat_ahoj"]


def test_a_file_that_is_changed_in_the_same_second_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "mine.py"
    for text, message in (("x = 1", "defines no extension"), ("1 / 0", "ZeroDivisionError")):
        file.write_text(text)
        os.utime(file, (1, 1))
        with pytest.raises(UsageError, match=message):
            Registry().load_file(file)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_a_file_that_was_changed_replaces_what_it_brought(found: Registry, tmp_path: Path) -> None:
    found.load_file(plugin(tmp_path, "GREETING = Greeting('moin', 'first')\nOTHER = Greeting('servus')\n"))
    again = found.load_file(plugin(tmp_path, "GREETING = Greeting('moin', 'second')\n"))
    assert found.get(Greeting, "moin").summary == "second"
    assert again.extensions == ("greeting moin",)
    assert not found.has(Greeting, "servus")
    assert [each.extensions for each in found.plugins] == [("greeting moin",)]
    with pytest.raises(UsageError, match="there is already a greeting 'hi'"):
        found.load_file(plugin(tmp_path, "GREETING = Greeting('hi')\n"))
    assert found.get(Greeting, "moin").summary == "second", "a version that can't be loaded changes nothing"
    with pytest.raises(UsageError, match="there is already a greeting 'moin'"):
        found.load_file(plugin(tmp_path, "GREETING = Greeting('moin')\n", "another.py"))
