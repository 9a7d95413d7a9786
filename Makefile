# Every target builds what it needs from nothing: Python 3.11 or later is the only thing assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test check soundness docs notebooks bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

demo: $(VENV)/demo ## prove, attack and report on bundled digits; writes build/demo.html
	@mkdir -p build
	$(BIN)/tacit demo --report build/demo.html --json build/demo.json

# One process per core; threads beside them would only wait for one another.
test soundness: export OMP_NUM_THREADS = 1

# Files in their order: the short ones of theory/ come last, so that no process has a long one to itself at the end.
test: $(VENV)/work ## run the tests
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

check: $(VENV)/work ## lint, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/test_architecture.py::test_imports_run_one_way tests/test_architecture.py::test_the_rooms_form_no_circle

soundness: $(VENV)/work ## make every theorem 1 % too optimistic: the tests must notice
	$(BIN)/python tests/soundness.py

docs: $(VENV)/work ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "written: $(CURDIR)/site/index.html"

notebooks: $(VENV)/work ## write the notebooks of examples/ from its scripts
	$(BIN)/jupytext --quiet --update --to ipynb examples/*.py

bench: $(VENV)/work ## measure speed as ratios against named baselines
	$(BIN)/python benchmarks/foundation.py
	$(BIN)/python benchmarks/reconstruction.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/audit.py

clean: ## remove everything that was built
	rm -rf $(VENV) build site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A stamp for each set of packages; a change of the requirements installs anew.
$(VENV)/base: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tacit needs Python 3.11 or later, got " + sys.version.split()[0] + " from $(PYTHON); run make PYTHON=/path/to/python3.11")'
	@echo "installing tacit into $(VENV) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/demo: $(VENV)/base
	@echo "installing torch and OpenDP …"
	@$(INSTALL) --editable '.[demo]'
	@touch $@

$(VENV)/work: $(VENV)/demo
	@echo "installing what tests, checks and documentation need …"
	@$(INSTALL) --editable '.[test,check,docs]'
	@touch $@
