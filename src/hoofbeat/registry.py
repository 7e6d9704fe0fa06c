"""One registry for everything that can be extended.

An extension is one object in one file: a stage of a retriever line, a reader of files, a corpus filter, an aspect of
judging, a scorer, a section of a report, an export format, a recipe, a preset or a domain pack. The file owns
everything about it: its name, options, construction, prompts, models, cost and help. Hoofbeat looks for it

- in the package of its kind (`hoofbeat.retrieval.stages` for stages), in a file that has the extension's name,
- in a Python file that the user names: `--plugin my_stage.py`, or `plugins = ["my_stage.py"]` in `hoofbeat.toml`,
- in an installed package that has an entry point in the group `hoofbeat.plugins`.

A plugin is an ordinary Python file. Every object at its top level whose class names its kind (`extension_kind`) is an
extension; nothing has to be called to register it. A TOML file is a domain pack. Plugins run with your rights:
load only files that you trust. Manifests list the plugins that were loaded, with the hashes of their files.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from hoofbeat.errors import HoofbeatError, UsageError, did_you_mean

PLUGINS_VARIABLE = "HOOFBEAT_PLUGINS"
"""Plugin files that processes started by this one load as well, separated as in PATH."""

_GROUP = "hoofbeat.plugins"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*")
_PACK_SUFFIX = ".toml"


class Extension(Protocol):
    """What every extension has. The class of the object says what kind it is and where the built-in ones are."""

    extension_kind: ClassVar[str]
    extension_package: ClassVar[str]

    @property
    def name(self) -> str:
        """What users write."""
        ...

    @property
    def summary(self) -> str:
        """One line for help and listings."""
        ...


class Plugin(NamedTuple):
    """A plugin that was loaded: its file or package, the hash of its file, and what it brought (`kind name`)."""

    name: str
    sha256: str
    extensions: tuple[str, ...]


E = TypeVar("E", bound=Extension)


class Registry:
    """Extensions by kind and name. Built-in files are imported when they are first needed, not before."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Extension]] = {}
        self._in_order: dict[str, tuple[Extension, ...]] = {}
        self._complete: set[str] = set()
        self._plugins: dict[str, Plugin] = {}
        self._files: dict[Path, list[Extension]] = {}
        self._searched = False

    def get(self, kind: type[E], name: str) -> E:
        """The extension of that kind and name; where there is none, a `UsageError` lists the known names."""
        found = self._found.get(kind.extension_kind, {}).get(name)
        if found is None and kind.extension_kind not in self._complete:
            self._import_builtin(kind.extension_package, name.replace("-", "_").replace(".", "_"))
            found = self._found.get(kind.extension_kind, {}).get(name)
        if found is None:
            known = {each.name: each for each in self.all(kind)}
            if name not in known:
                raise self._unknown(kind, name, list(known))
            found = known[name]
        return found  # type: ignore[return-value]  # filed under its kind by `_file`

    def has(self, kind: type[Extension], name: str) -> bool:
        """Whether there is such an extension."""
        return any(each.name == name for each in self.all(kind))

    def all(self, kind: type[E]) -> tuple[E, ...]:
        """Every extension of a kind, by name; imports all built-in files of that kind."""
        self._load_announced()
        self._import_all(kind)
        listed = self._in_order.get(kind.extension_kind)
        if listed is None:  # kept, since an import asks several times per file
            found = self._found.get(kind.extension_kind, {})
            listed = self._in_order[kind.extension_kind] = tuple(found[name] for name in sorted(found))
        return listed  # type: ignore[return-value]  # filed under its kind by `_file`

    def names(self, kind: type[Extension]) -> tuple[str, ...]:
        """The names of all extensions of a kind."""
        return tuple(each.name for each in self.all(kind))

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """The plugins that were loaded, in order of their names."""
        return tuple(sorted(self._plugins.values(), key=lambda each: (each.name, each.sha256)))

    def plugin_at_fault(self, err: BaseException) -> tuple[str, int] | None:
        """The plugin file and its line in which an error arose, or nothing: then the error is not a plugin's."""
        paths, found = {str(path) for path in self._files}, None
        trace = err.__traceback__
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if name in paths or str(Path(name).resolve()) in paths:
                found = name, trace.tb_lineno
            trace = trace.tb_next
        return found

    def load_file(self, path: Path) -> Plugin:
        """Load a plugin file: Python, or a domain pack as TOML. Loading the same content again changes nothing.

        A file that was changed since replaces what it brought before, as in a notebook in which it is being written.
        """
        if not path.is_file():
            raise UsageError("there is no such plugin file", where=str(path), fix="check the path")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if (known := self._plugins.get(str(path.resolve()))) is not None and known.sha256 == digest:
            return known
        defined = [_read_pack(path)] if path.suffix == _PACK_SUFFIX else _extensions(_run_file(path, digest))
        before = self._files.get(path.resolve(), [])
        self._take_out(before)
        try:
            brought = self._add_new(defined, str(path))
        except UsageError:
            self._put_back(before)
            raise
        if not brought:
            self._put_back(before)
            raise UsageError(
                "the plugin file defines no extension",
                where=str(path),
                fix="define an object such as STAGE = MyStage() at its top level; see docs/extending.md",
            )
        self._files[path.resolve()] = brought
        plugin = self._record(str(path.resolve()), path.name, digest, brought)
        files = [part for part in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep) if part]
        if str(path.resolve()) not in files:
            os.environ[PLUGINS_VARIABLE] = os.pathsep.join([*files, str(path.resolve())])
        return plugin

    def _take_out(self, extensions: list[Extension]) -> None:
        for each in extensions:
            if self._found.get(each.extension_kind, {}).get(each.name) is each:
                del self._found[each.extension_kind][each.name]

    def _put_back(self, extensions: list[Extension]) -> None:
        for each in extensions:
            self._found[each.extension_kind].setdefault(each.name, each)

    def _record(self, key: str, name: str, digest: str, brought: list[Extension]) -> Plugin:
        lines = tuple(sorted(f"{each.extension_kind} {each.name}" for each in brought))
        self._plugins[key] = plugin = Plugin(name, digest, lines)
        return plugin

    def _load_announced(self) -> None:
        """Plugins of installed packages, and those that the process which started this one had loaded."""
        if self._searched:
            return
        self._searched = True
        for part in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep):
            if part:
                self.load_file(Path(part))
        for point in sorted(entry_points(group=_GROUP), key=lambda each: each.name):
            loaded = point.load()
            brought = self._add_new(_extensions(loaded) if isinstance(loaded, ModuleType) else [loaded], point.value)
            module = sys.modules[point.module]
            content = Path(module.__file__).read_bytes() if module.__file__ else b""
            self._record(point.value, point.value, hashlib.sha256(content).hexdigest(), brought)

    def _add_new(self, defined: list[Extension], where: str) -> list[Extension]:
        """File what a plugin defines; built-in objects that it imports are not its own. Names can't be taken twice."""
        for each in defined:
            self._import_all(type(each))
        own = [each for each in defined if self._found.get(each.extension_kind, {}).get(each.name) is not each]
        for each in own:
            if not _NAME.fullmatch(each.name):
                raise UsageError(
                    f"{each.name!r} can't be the name of a {each.extension_kind}",
                    where=where,
                    fix="use lower-case letters, digits and hyphens; begin with a letter",
                )
            if each.name in self._found.get(each.extension_kind, {}):
                raise UsageError(
                    f"there is already a {each.extension_kind} {each.name!r}", where=where, fix="give it another name"
                )
        for each in own:
            self._file(each)
        return own

    def _file(self, extension: Extension) -> None:
        self._found.setdefault(extension.extension_kind, {})[extension.name] = extension
        self._in_order.pop(extension.extension_kind, None)

    def _import_all(self, kind: type[Extension]) -> None:
        if kind.extension_kind in self._complete:
            return
        package = kind.extension_package
        if package:
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
                self._import_builtin(package, module.name)
        self._complete.add(kind.extension_kind)

    def _import_builtin(self, package: str, name: str) -> None:
        full = f"{package}.{name}"
        if not package or not name.isidentifier() or importlib.util.find_spec(full) is None:
            return
        for each in _extensions(importlib.import_module(full)):
            if each.extension_package == package:
                self._file(each)

    @staticmethod
    def _unknown(kind: type[Extension], name: str, known: list[str]) -> UsageError:
        return UsageError(
            f"there is no {kind.extension_kind} {name!r}",
            fix=f"{did_you_mean(name, known)}use one of: {', '.join(known)}; or load a file that defines it with "
            "--plugin",
        )


registry = Registry()
"""The registry of this process."""


def _extensions(module: ModuleType) -> list[Extension]:
    """The extensions at the top level of a module, each once; a list or tuple of them counts as well."""
    found: dict[int, Extension] = {}
    for value in list(vars(module).values()):
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(getattr(type(each), "extension_kind", None), str) and hasattr(each, "name"):
                found.setdefault(id(each), each)
    return list(found.values())


def _read_pack(path: Path) -> Extension:
    pack: Extension = importlib.import_module("hoofbeat.prompts.packs").read_pack(path)
    return pack


class _FileAsItIs(SourceFileLoader):
    """Compiles a user's file anew: bytecode kept beside it may be that of another text of the same second and size."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 (the interface has it)
        """The code of the file as it is now; nothing is written beside it."""
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def _run_file(path: Path, digest: str) -> ModuleType:
    name = f"hoofbeat_plugin_{digest[:16]}"
    loader = _FileAsItIs(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or path.suffix != ".py":
        raise UsageError("this is not a Python file", where=str(path), fix="name a .py file, or a pack's .toml file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations that are written as text are looked up there
    try:
        loader.exec_module(module)
    except HoofbeatError:
        raise
    except Exception as err:
        raise UsageError(
            f"the plugin file can't be run: {type(err).__name__}: {err}",
            where=str(path),
            fix="correct the file; it is ordinary Python",
        ) from err
    return module
