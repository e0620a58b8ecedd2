# `make help` says what there is. Every target may be interrupted and called again.
PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
SEEDS ?= 1 2 3
RUN = $(VENV)/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help setup setup-colab book test quick seeds doubt experiments serve pdf lighthouse lab bench links lock notebooks clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | \
		awk -F '\t' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: ## make .venv and install the exact pins (done by the others when needed)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "The course needs Python 3.11 or newer, and $(PYTHON) is" \
		"$$($(PYTHON) --version 2>&1); install one and say: make PYTHON=python3.12 …"; \
		exit 1; }
	@if ! cat requirements.txt pyproject.toml | cmp -s - $(VENV)/.installed || \
		! $(VENV)/bin/python -c '' 2>/dev/null; then \
		set -e; \
		rm -f $(VENV)/.installed; \
		echo "installing into $(VENV): some minutes. On Linux PyTorch comes with its" \
		"GPU libraries, 2.7 GB; the README says how to get the 200 MB without."; \
		$(VENV)/bin/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV); \
		$(RUN) pip install -q -r requirements.txt; \
		$(RUN) pip install -q --no-deps -e .; \
		$(RUN) pip check; \
		cat requirements.txt pyproject.toml > $(VENV)/.installed; \
	fi

setup-colab: setup ## make .venv-colab with the versions that Colab has
	@$(RUN) tools.colab

book: setup ## execute what changed and build the site in _build/html
	@$(RUN) tools.build book

test: setup setup-colab ## every check; the last line counts them
	@$(RUN) tools.check test

quick: setup ## lint, types and the quick tests: what needs no notebook
	@$(RUN) tools.check quick

seeds: setup ## execute all notebooks with other seeds: make seeds SEEDS="1 2 3"
	@$(RUN) tools.build seeds $(SEEDS)

doubt: setup ## make each claim false and see its assertion fail (ARGS=06, --list, --changed)
	@$(RUN) tools.doubts $(ARGS)

experiments: setup ## measure what long experiments lack, an hour or so (ARGS=06, --list)
	@$(RUN) tools.experiments $(ARGS)

serve: setup ## show the built site at http://127.0.0.1:8000/ (PORT=…)
	@$(RUN) tools.build serve --port $(PORT)

pdf: book ## the whole book as one PDF, _build/course.pdf (needs Chromium)
	@$(RUN) tools.site.pdf

lighthouse: book ## marks for speed and accessibility (needs npm and Chromium)
	@$(RUN) tools.site.lighthouse

lab: setup ## open the notebooks in JupyterLab
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@cp tools/lab_overrides.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@$(RUN) jupyter lab --LabApp.default_url='/lab/tree/book/lab_start.md'

bench: book ## measure the code against others' designs: twenty minutes (ARGS=--quick: two)
	@$(RUN) benchmarks.run $(ARGS)

links: setup ## try every link that leaves the site
	@$(RUN) tools.build links

lock: setup ## write requirements.txt from the extras of pyproject.toml (ARGS=--upgrade)
	@$(RUN) pip install -q "uv>=0.8"
	@$(RUN) tools.lock $(ARGS)

notebooks: setup ## normalise the notebooks, make the exercises from the solutions
	@$(RUN) tools.notebooks stamp
	@$(RUN) tools.notebooks.exercises generate

clean: ## delete everything that was built; .venv stays
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
