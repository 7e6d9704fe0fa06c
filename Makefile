# `make demo` and `make test` do all set-up on a fresh machine; nothing else is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.stamp
DEMO   := demo
QUICK  := tests/store tests/prompts tests/findings tests/judging tests/benchmarks tests/leakage \
          $(filter-out tests/test_api.py,$(wildcard tests/test_*.py))

# Compiled bytecode is kept: without it every process that a test starts compiles the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick check format docs golden golden-ray faults chaos fuzz bench notebook weights clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Hoofbeat needs Python 3.11 or newer; name one with PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# What users get: the light core install.
$(STAMP)-core: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(STAMP)-dev: $(STAMP)-core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(STAMP)-bench: $(STAMP)-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $@

# The embedded model and encoder (116 MB), hash-checked, kept in the user's cache.
weights: $(STAMP)-core
	$(BIN)/hoofbeat weights pull demo

demo: weights
	$(BIN)/hoofbeat demo -o $(DEMO)

# One worker more than two cores: some tests wait for a cluster, a server or a command that is killed.
WORKERS ?= 3
test: $(STAMP)-dev weights
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# A first look in one to two minutes: records, prompts, measures, judging, names; without a browser, a model or a command.
quick: $(STAMP)-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(QUICK)

check: $(STAMP)-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The documentation site; a broken link is an error. Open build/site/index.html.
docs: $(STAMP)-dev
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs build/site

golden: $(STAMP)-core weights
	$(BIN)/python tools/golden.py

# The same bytes from a Ray cluster on this machine.
golden-ray: $(STAMP)-dev weights
	$(BIN)/python tools/golden.py --on ray --fresh

# What a cluster, a database and model servers do when they die; a quarter of an hour.
faults: $(STAMP)-dev
	$(BIN)/python -m tools.faults

# Commands killed (-9) again and again: the bytes of an undisturbed run, and no call paid twice. Half an hour.
# make chaos CHAOS="--kills 50 --only 'audit*' --seed 7"
chaos: $(STAMP)-dev weights
	$(BIN)/python -m tests.chaos.kills $(CHAOS)

# Mutated files, endpoint replies and model outputs: readable errors only. make fuzz FUZZ="--seconds 60 --only 'reader-*'"
fuzz: $(STAMP)-dev
	$(BIN)/python -m tests.fuzz.fuzzing $(FUZZ)

# A notebook of docs/notebooks as out/NAME.ipynb: make notebook NOTEBOOK=compare_retrievers
NOTEBOOK ?= first_study
notebook: $(STAMP)-dev
	$(BIN)/python tools/notebook.py docs/notebooks/$(NOTEBOOK).py out

bench: $(STAMP)-bench weights
	$(BIN)/python -m bench.client
	-$(BIN)/python -m bench.encode
	-$(BIN)/python -m bench.corpus_import --articles 2000
	-$(BIN)/python -m bench.lexical --passages 10000 100000
	-$(BIN)/python -m bench.dense
	-$(BIN)/python -m bench.hero
	-$(BIN)/python -m bench.lines
	-$(BIN)/python -m bench.answers
	-$(BIN)/python -m bench.economy
	-$(BIN)/python -m bench.audit --scale 0.02
	-$(BIN)/python -m bench.web
	-$(BIN)/python -m bench.browse
	-$(BIN)/python -m bench.scale
	-$(BIN)/python -m bench.plan
	-$(BIN)/python -m bench.starts

clean:
	rm -rf $(VENV) $(DEMO) .pytest_cache .mypy_cache .ruff_cache build dist
