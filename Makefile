# `make` lists the targets. Everything happens in this folder; the environment is .venv.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV ?= .venv
CORES ?= all
BIN := $(abspath $(VENV))/bin
# An environment belongs to one lock file: another content is another stamp; its time says nothing.
LOCK := envs/requirements.lock
STAMP := $(VENV)/.installed-$(shell sha256sum $(LOCK) | cut -c1-16)
# pip comes from outside the environment, which has none, whether or not it is activated; inside it,
# its own Python comes first.
OUTSIDE := PATH="$(subst $(BIN):,,$(PATH))"
export PATH := $(BIN):$(PATH)
export PYTHONPATH := $(CURDIR)
export DVC_NO_ANALYTICS := 1
# Images of containers set it; each of hundreds of processes would then compile the library anew.
unexport PYTHONDONTWRITEBYTECODE

# A misspelt PAPERS would train everything, and `make pull PAPERS=celm` fetch everything: what no target
# uses is refused. A make that another calls gets settings of that one, too.
of = $(if $(filter $(2),$(or $(MAKECMDGOALS),reproduce)),$(1))
PLANNING := reproduce figures report
BENCHES := bench bench-peers
SETTINGS := $(strip $(call of,PAPERS SCALE SEEDS DATASETS,$(PLANNING)) $(call of,ENGINE,reproduce) \
	$(call of,SCALE,redraw) $(call of,CORES,$(PLANNING) $(BENCHES) redraw publish) \
	$(call of,ARGS,$(PLANNING) $(BENCHES) publish) $(call of,PUBLISH,publish) $(call of,CHECK,redraw) $(call of,TESTS,test test-fast) \
	$(call of,BENCH,$(BENCHES)) $(call of,SEED SAMPLE,mutation-test) PYTHON VENV)
GIVEN := $(foreach v,$(if $(filter 0,$(MAKELEVEL)),$(.VARIABLES)),$(if $(filter command,$(origin $v)),$v))
$(foreach v,$(filter-out $(SETTINGS),$(GIVEN)),$(error $v is no setting of \
	make$(if $(MAKECMDGOALS), $(MAKECMDGOALS)); $(or $(filter $vS $(v:S=),$(SETTINGS)),one of $(SETTINGS)) is))

comma := ,
empty :=
list = [$(subst $(empty) $(empty),$(comma),$(strip $(1)))]
# PAPERS="a b" SCALE=smoke SEEDS="0 1" DATASETS=mnist ENGINE=loop override config.yaml.
CONFIG := $(if $(PAPERS),'papers=$(call list,$(PAPERS))') $(if $(SCALE),scale=$(SCALE)) \
	$(if $(SEEDS),'seeds=$(call list,$(SEEDS))') $(if $(ENGINE),engine=$(ENGINE)) $(if $(DATASETS),'datasets=$(call list,$(DATASETS))')
WITH_CONFIG = $(if $(strip $(CONFIG)),--config $(CONFIG))
# Of two --config, Snakemake takes the last alone.
$(if $(and $(filter --config --config=% -C,$(ARGS)),$(strip $(CONFIG) $(PUBLISH) $(call of,frozen,figures report))),\
	$(error ARGS has --config, which make gives snakemake itself here; call snakemake yourself, or edit config.yaml))
SNAKEMAKE = snakemake --cores $(CORES) $(ARGS)
# It makes nothing that could be summed up.
DRY_RUN := $(filter -n% -pn --dry-run --dryrun,$(ARGS))
# What finished runs cover, of all papers at every scale.
COVERED = --config frozen=true partial=true scale=paper $(CONFIG) \
	$(if $(PAPERS),,'papers=$(call list,$(basename $(notdir $(wildcard workflow/papers/*.yaml))))')
EVERY_SCALE = @[ -z '$(SCALE)' ] || { echo "error: SCALE = $(SCALE): make $@ draws every scale that" \
	"finished runs cover; leave SCALE out" >&2; exit 2; }
PYTHON_FILES := fedlogit scripts tests examples $(wildcard benchmarks)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16
	@echo 'Overrides: PAPERS= SCALE= SEEDS= DATASETS= ENGINE= CORES= ARGS="more options of snakemake"'

.PHONY: environment
environment: $(STAMP) ## Install the locked packages into .venv

.PHONY: reproduce
reproduce: $(STAMP) ## Download real data, train, and make every table and figure
	@$(SNAKEMAKE) $(WITH_CONFIG) -- all
	@$(if $(DRY_RUN),:,python -m fedlogit summary --config config.yaml $(if $(SCALE),--scale $(SCALE)) \
		$(if $(SEEDS),--seeds $(SEEDS)) $(if $(DATASETS),--datasets $(DATASETS)) -- $(PAPERS))

.PHONY: figures
figures: $(STAMP) ## Pull the finished runs and make every table and figure they cover; trains nothing
	$(EVERY_SCALE)
	@pulled=0; $(MAKE) pull || pulled=$$?; $(SNAKEMAKE) $(COVERED) -- covered; \
		python -m fedlogit summary $(PAPERS); exit $$pulled

# With more than eight processes, each spends most of its time on starting.
.PHONY: redraw
redraw: $(STAMP) ## Redraw everything that finished runs cover and delete the rest (CHECK=1: only compare)
	$(EVERY_SCALE)
	@cores=$$(nproc); python -m fedlogit redraw $(if $(CHECK),--check,--prune) \
		--jobs $(if $(filter all,$(CORES)),$$((cores < 8 ? cores : 8)),$(CORES))

.PHONY: report
report: $(STAMP) ## Make results/report.html from the finished runs; trains nothing
	$(EVERY_SCALE)
	@$(SNAKEMAKE) $(COVERED) -- results/report.html

.PHONY: pull
pull: $(STAMP) ## Fetch missing finished runs from the cache in dvc-remote; needs no network
	@python -m fedlogit pull

.PHONY: publish
publish: $(STAMP) ## Add finished runs to the cache (PUBLISH=quick: also those at scale quick)
	@$(SNAKEMAKE) $(if $(PUBLISH),--config 'publish=$(call list,$(PUBLISH))') -- publish

.PHONY: test
test: $(STAMP) ## Run the test suite
	@python -m pytest -rs -n 3 --dist loadgroup $(TESTS)

.PHONY: test-fast
test-fast: $(STAMP) ## Run a two-minute selection: each method, partition and model, no whole workflows
	@python -m pytest -m "not slow" -n 3 --dist loadgroup $(TESTS)

.PHONY: oracles
oracles: $(STAMP) ## Compare every method with its second version and write docs/second-versions.md
	@record=$$(mktemp) && trap 'rm -f "$$record"' EXIT \
		&& ORACLE_RECORD=$$record python -m pytest --ignore=tests/oracles/test_oracle_page.py tests/oracles \
		&& PYTHONPATH=tests python -m oracles.page "$$record" docs/second-versions.md

.PHONY: slurm-test
slurm-test: $(STAMP) ## Run and interrupt jobs on a one-node Slurm with simulated GPUs
	@python -m pytest -m slurm -rs tests/slurm

# Debian starts servers as it installs them, unless a policy-rc.d exits with 101.
INSTALL = policy=/usr/sbin/policy-rc.d; [ -e $$policy ] \
	|| { trap 'rm -f /usr/sbin/policy-rc.d' EXIT; printf '\#!/bin/sh\nexit 101\n' > $$policy; chmod 755 $$policy; }; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends $(1) < /dev/null > /dev/null

.PHONY: slurm-packages
slurm-packages: ## Install what slurm-test needs (Debian, as root); starts no services
	@$(call INSTALL,slurm-wlm slurmdbd munge mariadb-server iproute2 procps)

.PHONY: test-packages
test-packages: ## Install what the tests of remotes, report and site need (Debian, as root)
	@$(call INSTALL,openssh-server openssh-client chromium)

.PHONY: remotes-test
remotes-test: $(STAMP) ## Test DVC remotes over ssh and S3 on localhost (needs Debian's openssh-server)
	@[ -x $(VENV)/moto/bin/moto_server ] || { python -m venv --without-pip $(VENV)/moto \
		&& $(OUTSIDE) $(PYTHON) -m pip --python $(VENV)/moto/bin/python install --quiet \
			--disable-pip-version-check 'moto[server]==5.2.5' boto3==1.43.117 botocore==1.43.117; }
	@MOTO_SERVER=$(abspath $(VENV))/moto/bin/moto_server python -m pytest -rs tests/remotes

# mutmut has its own environment; mutants are tested in the project's.
MUTATION := .mutation
MUTMUT := $(VENV)/mutmut

.PHONY: mutation-test
mutation-test: $(STAMP) ## Run mutation tests and write docs/mutation.md (an hour; SAMPLE=0: hand-written ones only)
	@[ -e $(MUTMUT)/.installed ] || { python -m venv --without-pip $(MUTMUT) \
		&& $(OUTSIDE) $(PYTHON) -m pip --python $(MUTMUT)/bin/python install --quiet --no-deps \
			--disable-pip-version-check mutmut==3.8.1 libcst==1.9.0 PyYAML==6.0.3 \
		&& touch $(MUTMUT)/.installed; }
	@MUTMUT=$$(echo $(abspath $(MUTMUT))/lib/python*/site-packages) python -m pytest tests/mutation
	@[ '$(SAMPLE)' = 0 ] || $(MUTMUT)/bin/python tests/mutation/generate.py --seed $(or $(SEED),0) \
		--sample $(or $(SAMPLE),400) --out $(MUTATION)/sample.jsonl
	@PYTHONPATH=$(CURDIR):$(CURDIR)/tests python tests/mutation/run.py --work $(MUTATION) \
		$(if $(filter 0,$(SAMPLE)),,--sample $(MUTATION)/sample.jsonl) --page docs/mutation.md

# MkDocs has its own environment; the pages are written in the project's.
DOCS := $(VENV)/docs
DOCS_STAMP := $(DOCS)/.installed-$(shell sha256sum envs/docs.txt | cut -c1-16)

$(DOCS_STAMP):
	@$(OUTSIDE) $(PYTHON) -m venv --clear --without-pip $(DOCS)
	@$(OUTSIDE) $(PYTHON) -m pip --python $(DOCS)/bin/python install --quiet \
		--disable-pip-version-check --requirement envs/docs.txt
	@touch $@

.PHONY: docs-environment
docs-environment: $(STAMP) $(DOCS_STAMP)

.PHONY: docs
docs: docs-environment ## Build the documentation site: open site/index.html
	@python -m scripts.docs_site
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

.PHONY: docs-test
docs-test: docs-environment ## Build the site and open its pages in a browser (needs Debian's chromium)
	@DOCS_ENVIRONMENT=$(abspath $(DOCS)) python -m pytest -rs tests/docs_site

.PHONY: lint
lint: $(STAMP) ## Check style, types and the workflow
	@ruff check $(PYTHON_FILES)
	@ruff format --check $(PYTHON_FILES)
	@mypy
	@lint-imports --no-logo --no-cache
	@snakefmt --check workflow Snakefile
	@python scripts/schemas.py --check
	@python scripts/lint_workflow.py
	@if [ -e .git ]; then $(AS_COMMITTED); fi

# Pages with blocks made from results.
FILLED := README.md docs/comparison.md docs/results.md docs/speed.md

# Checks that README and docs agree with the committed results, not with those that `make reproduce` has
# written into the folder on this machine.
AS_COMMITTED = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && git archive HEAD | tar -x -C "$$folder" \
	&& cd "$$folder" && python scripts/fill_pages.py --check $(FILLED) && python scripts/papers.py --check

BENCH_DATA = $(SNAKEMAKE) -- $(foreach d,mnist fashion_mnist cifar10,data/prepared/$(d).npz)

.PHONY: bench
bench: $(STAMP) ## Measure speed against plain PyTorch loops, into benchmarks/results (BENCH="--only W1 --repetitions 3")
	@$(BENCH_DATA)
	@python -m benchmarks $(BENCH)

.PHONY: bench-growth
bench-growth: $(STAMP) ## Measure time and memory by number of clients, samples, classes and parameters
	@python -m benchmarks.growth

# Each of the other frameworks has its own environment, named by a hash of its requirements.
PEERS := $(notdir $(patsubst %/,%,$(dir $(wildcard benchmarks/peers/*/requirements.txt))))
PEER_STAMPS := $(foreach p,$(PEERS),$(VENV)/peers/$(p)/.installed-$(shell sha256sum benchmarks/peers/$(p)/requirements.txt | cut -c1-16))

.PHONY: bench-peers
bench-peers: $(STAMP) $(PEER_STAMPS) ## Measure speed against five other frameworks, too (installs several GB)
	@$(BENCH_DATA)
	@python -m benchmarks --peers $(VENV)/peers $(BENCH)

# A framework that cannot be installed is listed with the reason; the others are still measured.
$(VENV)/peers/%: $(STAMP)
	@name=$(firstword $(subst /, ,$*)); folder=$(VENV)/peers/$$name; rm -rf $$folder; \
		$(OUTSIDE) $(PYTHON) -m venv --without-pip $$folder; \
		if $(OUTSIDE) $(PYTHON) -m pip --python $$folder/bin/python install --quiet \
			--disable-pip-version-check -r benchmarks/peers/$$name/requirements.txt; \
		then touch $@; else echo "$$name could not be installed" >&2; rm -rf $$folder; fi

.PHONY: readme
readme: $(STAMP) ## Update the blocks of README and docs that are made from results
	@python scripts/fill_pages.py $(FILLED)

.PHONY: papers
papers: $(STAMP) ## Write docs/papers, docs/claims.md, docs/record.md, docs/models-and-data.md and dvc.yaml
	@python scripts/papers.py

.PHONY: code-versions
code-versions: $(STAMP) ## Write results/code_versions.csv: the commit of each published run's code
	@python scripts/code_versions.py

.PHONY: partitions
partitions: $(STAMP) ## Write results/partitions.csv: the digest of each published run's partition
	@python scripts/partitions.py

.PHONY: schemas
schemas: $(STAMP) ## Write the JSON schemas of config.yaml and of the papers' files
	@python scripts/schemas.py

.PHONY: lock
lock: $(STAMP) ## Resolve envs/requirements.in into the lock file
	@python -m venv --without-pip $(VENV)/lock
	@$(OUTSIDE) $(PYTHON) -m pip --python $(VENV)/lock/bin/python install --quiet uv
	@$(VENV)/lock/bin/uv pip compile --quiet --universal --generate-hashes --no-header \
		--no-emit-index-url --python-version 3.11 envs/requirements.in --output-file $(LOCK)

.PHONY: clean
clean: ## Remove logs, caches and plans; runs, tables and figures stay
	@rm -rf logs benchmarks/jobs results/plan .docs .mutation .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# Debian's python3 has venv but not always ensurepip, so pip is taken from outside the environment.
$(STAMP):
	@$(OUTSIDE) $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is not Python 3.11 or newer; give PYTHON=" >&2; exit 2; }
	@$(OUTSIDE) $(PYTHON) -m pip --version > /dev/null 2>&1 \
		|| { echo "error: $(PYTHON) has no pip; apt-get install python3-pip$${VIRTUAL_ENV:+, or deactivate $$VIRTUAL_ENV first}" >&2; exit 2; }
	@echo "installing the locked packages into $(VENV) (several GB, once)"
	@$(OUTSIDE) $(PYTHON) -m venv --without-pip $(VENV)
	@$(OUTSIDE) $(PYTHON) -m pip --python $(VENV)/bin/python install --quiet --require-hashes \
		--disable-pip-version-check -r $(LOCK)
	@$(VENV)/bin/python -c 'import os, pathlib, sysconfig; \
		pathlib.Path(sysconfig.get_path("purelib"), "fedlogit.pth").write_text(os.getcwd() + "\n")'
	@rm -f $(VENV)/.installed-*
	@touch $@
