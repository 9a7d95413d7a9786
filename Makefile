# Every target builds what it needs from nothing: Python 3.11 or later is the only thing assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PURPOSES := demo service test check dist docs supply
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test systems shown check soundness faults docs dist notebooks examples gallery bench lock sbom advisories clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

demo: $(VENV)/demo ## prove, attack and report on bundled digits; writes build/demo.html
	@mkdir -p build
	$(BIN)/tacit demo --report build/demo.html --json build/demo.json

# One process per core; threads beside them would only wait for one another.
test systems shown soundness faults: export OMP_NUM_THREADS = 1
# Commands that tests start load what an earlier one has compiled, wherever the environment says otherwise.
test systems shown soundness: export PYTHONDONTWRITEBYTECODE =

# What needs whole systems around it (services, clusters, databases, browsers, other processes) or does whole runs again.
SYSTEMS := service reproduce fuzz learning/test_engines.py learning/test_learn_files.py learning/test_repeated_fits.py \
	reconstruction/test_bound_files.py reconstruction/test_bound_texts.py runtime/test_clusters.py runtime/test_private_files.py \
	certificate/test_checker_page.py certificate/test_replaying.py test_demo.py test_ledger.py test_pages.py \
	test_release_check.py test_release_check_certificates.py test_soundness.py

# Files in their order: the short ones of theory/ come last, so that no process has a long one to itself at the end.
test: $(VENV)/test ## run the tests, but for those of the next two
	$(PYTEST) --ignore tests/documents $(SYSTEMS:%=--ignore tests/%)

systems: $(VENV)/test ## run the tests that need services, clusters, databases or browsers, or do whole runs again
	$(PYTEST) $(SYSTEMS:%=tests/%)

shown: $(VENV)/test ## run what README, documentation, help and examples show
	$(PYTEST) tests/documents

check: $(VENV)/check ## lint, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/test_architecture.py::test_imports_run_one_way tests/test_architecture.py::test_no_files_import_one_another

soundness: $(VENV)/test ## make every theorem 1 % too optimistic: the tests must notice
	$(BIN)/python tests/soundness.py

faults: $(VENV)/test ## kill a service and its database a thousand times, and send it 100000 strange requests (hours)
	PYTHONPATH=tests/support $(BIN)/python tests/long/faults.py
	PYTHONPATH=tests/support $(BIN)/python tests/long/description.py

docs: $(VENV)/docs ## build the documentation into site/
	@$(BIN)/zensical build --clean --strict
	@echo "written: $(CURDIR)/site/index.html"

dist: $(VENV)/dist ## build wheel and sdist into dist/, and try both in an empty environment
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation
	@$(BIN)/python requirements/try_dist.py dist/*.whl dist/*.tar.gz

notebooks: $(VENV)/test ## write the notebooks of examples/ from its scripts
	$(BIN)/jupytext --quiet --update --to ipynb examples/*.py

examples: $(VENV)/test ## run the examples, and write a page of the documentation for each
	$(BIN)/python docs/run_examples.py

gallery: $(VENV)/test ## run the commands of the gallery, and write their pages and pictures (needs chromium)
	$(BIN)/python docs/run_gallery.py

bench: $(VENV)/test ## measure speed as ratios against named baselines
	$(BIN)/python benchmarks/foundation.py
	$(BIN)/python benchmarks/reconstruction.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/codes.py
	$(BIN)/python benchmarks/kernel.py
	$(BIN)/python benchmarks/service.py

clean: ## remove everything that was built
	rm -rf $(VENV) build site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

lock: $(VENV)/lock ## pin anew what each purpose installs, by versions that are four weeks old
	@$(BIN)/python requirements/lock.py

sbom: $(VENV)/supply ## list what each purpose installs, as CycloneDX, in build/sbom/
	@mkdir -p build/sbom
	@for purpose in $(PURPOSES); do $(BIN)/cyclonedx-py requirements requirements/$$purpose.txt --output-file build/sbom/$$purpose.json || exit; done
	@$(BIN)/cyclonedx-py requirements constraints.txt --output-file build/sbom/torch.json
	@echo "written: $(CURDIR)/build/sbom"

advisories: $(VENV)/supply ## ask the index for known weaknesses of what is pinned
	@for purpose in $(PURPOSES); do $(BIN)/pip-audit --no-deps --disable-pip --strict --requirement requirements/$$purpose.txt || exit; done

# A stamp for each purpose, with what it needs and no more; a change of its pins installs anew.
$(VENV)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tacit needs Python 3.11 or later, got " + sys.version.split()[0] + " from $(PYTHON); run make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/lock: $(VENV)/venv
	@$(PIP) uv
	@touch $@

# Torch is pinned apart and without hashes: its builds for CPUs and for GPUs are different files with different needs.
$(VENV)/demo $(VENV)/test $(VENV)/check: $(VENV)/%: requirements/%.txt constraints.txt pyproject.toml | $(VENV)/venv
	@echo "installing what make $* needs into $(VENV) …"
	@$(PIP) --no-deps --require-hashes --requirement $<
	@$(PIP) --constraint constraints.txt $(if $(filter demo,$*),torch,torch torchvision)
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dist $(VENV)/docs $(VENV)/supply: $(VENV)/%: requirements/%.txt | $(VENV)/venv
	@echo "installing what make $* needs into $(VENV) …"
	@$(PIP) --no-deps --require-hashes --requirement $<
	@touch $@
