# Two commands matter: `make demo` and `make test`. The rest is for developers.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
RUNS ?= runs

.PHONY: demo test hostile nightly test-flower test-flower-next test-ray test-slow test-parity test-adapters test-wheel test-pythons release-check coverage check budgets format bench reproduction errata recipes docs screenshot screenshots flower-logs clean lock audit mutants

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# A stamp per kind of installation: pip runs again only when what it reads has changed.
$(VENV)/.installed: $(BIN)/python pyproject.toml papers/pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --editable papers
	touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml papers/pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable papers
	touch $@ $(VENV)/.installed

demo: $(VENV)/.installed  ## compare seven schemes on real data: a table and a page
	rm -rf $(RUNS)/demo
	$(BIN)/fedcohort demo --out $(RUNS)/demo
	@echo "For more, put it on your path: . $(BIN)/activate; fedcohort --help"

test: $(VENV)/.installed-dev  ## every test, of the library and of the papers, but the slow ones and those that start Flower or Ray
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m 'not slow and not flower and not ray and not adapters and not recipes and not site'

test-flower: $(VENV)/.installed-dev  ## real Flower processes on this machine: Ray, TLS, kill and restart
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m 'flower and not slow' tests/flower

test-ray: $(VENV)/.installed-dev  ## runs on a Ray cluster of two nodes, one of which is killed
	$(BIN)/python -m pytest -m ray tests/simulation

hostile: $(VENV)/.installed-dev  ## attacks of one client, and what becomes of them: a table
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python -m helpers.attacks

test-slow: $(VENV)/.installed-dev  ## what takes minutes; findings are in docs/
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m 'slow and not parity and not flower'
	$(BIN)/python -m pytest -m 'slow and flower' tests/flower

nightly: $(VENV)/.installed-dev  ## every hypothesis test on many new examples, which are not those of `make test`
	HYPOTHESIS_PROFILE=many OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m 'hypothesis and not slow and not site'

test-parity: $(VENV)/.installed-dev  ## simulator against Flower, twenty seeds under every kernel; takes long
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m parity tests/flower

# Each framework in an environment of its own; FedLab without torchvision, which has no build for
# CPUs alone (the tests put a stand-in in its place), and so without its declared requirements.
FRAMEWORKS := nvflare pfl fedlab
ENVIRONMENTS ?= build/environments
NEEDS_nvflare := 'nvflare==2.9.*'
NEEDS_pfl := torch==2.13.0 'pfl==0.6.*'
NEEDS_fedlab := torch==2.13.0 munch pynvml tqdm

$(ENVIRONMENTS)/%/.installed: pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet $(NEEDS_$*) pytest hypothesis --editable .
	test $* != fedlab || $(@D)/bin/python -m pip install --quiet --no-deps 'fedlab==1.3.*'
	touch $@

test-adapters: $(FRAMEWORKS:%=$(ENVIRONMENTS)/%/.installed)  ## the loops of NVFlare, pfl and FedLab themselves
	for name in $(FRAMEWORKS); do OPENBLAS_NUM_THREADS=1 FEDCOHORT_FRAMEWORK=$$name \
	  $(ENVIRONMENTS)/$$name/bin/python -m pytest -o filterwarnings=default tests/adapters || exit 1; done

# Another flwr over what the main environment has: 1.42 wants a certifi that not every index has.
FLWR_NEXT ?= 1.42.*
NEXT_TESTS ?= not slow and not parity and not flower
PURELIB := import sysconfig; print(sysconfig.get_path("purelib"))
$(ENVIRONMENTS)/flower-next/.installed: $(VENV)/.installed-dev
	$(BIN)/python -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --no-deps 'flwr==$(FLWR_NEXT)'
	echo "import site; site.addsitedir('$$($(BIN)/python -c '$(PURELIB)')')" \
	  > "$$($(@D)/bin/python -c '$(PURELIB)')/main.pth"
	touch $@

test-flower-next: $(ENVIRONMENTS)/flower-next/.installed  ## the tests of Flower on another flwr; NEXT_TESTS='flower and not slow' for real processes
	OPENBLAS_NUM_THREADS=1 $(ENVIRONMENTS)/flower-next/bin/python -m pytest -m '$(NEXT_TESTS)' \
	  tests/flower tests/catalogue/test_a_flower.py

test-wheel: $(VENV)/.installed-dev  ## both wheels alone, in empty environments outside the repository
	$(BIN)/python -m pytest -m slow tests/test_wheel.py

# What would be uploaded, of the library and of the papers, checked as the index does, then installed
# alone and run.
RELEASE ?= build/release
release-check: $(VENV)/.installed-dev  ## build, twine check, and the wheels without the repository
	test -d $(RELEASE) || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet build twine
	rm -rf dist
	for place in . papers; do $(RELEASE)/bin/python -m build --outdir dist $$place || exit 1; done
	$(RELEASE)/bin/python -m twine check --strict dist/*
	FEDCOHORT_DIST=dist $(BIN)/python -m pytest -m slow tests/test_wheel.py

# Interpreters by name or path; what is not there is said and left out. An environment is named after the
# version, as two paths may both end in "python3".
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
test-pythons:  ## the fast tests on every Python that is there, without torch and Flower
	tested=; for python in $(PYTHONS); do $$python --version || continue; \
	  environment=$(ENVIRONMENTS)/python$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  { test -x $$environment/bin/pip || $$python -m venv --clear $$environment; } && \
	  $$environment/bin/python -m pip install --quiet --editable '.[test]' --editable papers && \
	  OPENBLAS_NUM_THREADS=1 $$environment/bin/python -m pytest -n auto \
	    -m 'not slow and not flower and not ray and not adapters and not recipes and not site' || exit 1; \
	  tested="$$tested $$python"; done; \
	test -n "$$tested" || { echo "none of the Pythons is there: $(PYTHONS)"; exit 1; }

coverage: $(VENV)/.installed-dev  ## which lines the fast tests reach
	$(BIN)/python -m pip install --quiet 'pytest-cov>=5'
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --cov=fedcohort --cov=fedcohort_papers --cov-report=term:skip-covered --cov-report=html:build/coverage \
	  -m 'not slow and not flower and not ray and not adapters and not recipes and not site'

check: $(VENV)/.installed-dev  ## lint, format, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

budgets: $(VENV)/.installed-dev  ## size, public names, parameters and vague words, with their limits
	$(BIN)/python tools/budgets.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.installed-dev  ## ratios side by side in one run
	for script in benchmarks/*.py; do echo "== $$script"; OPENBLAS_NUM_THREADS=1 $(BIN)/python $$script || exit 1; done

recipes: $(VENV)/.installed-dev  ## every recipe at the quick scale: that it runs, never what it finds
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m recipes papers/tests/recipes

reproduction: $(VENV)/.installed-dev  ## docs/reproduction.md from the results in docs/results
	$(BIN)/python docs/make_reproduction.py

errata: $(VENV)/.installed-dev  ## docs/errata.md from the records in docs/make_errata.py
	$(BIN)/python docs/make_errata.py

flower-logs:  ## a stock Flower app before and after, run for the page of its two logs
	$(BIN)/python docs/make_flower_logs.py

docs: $(VENV)/.installed-dev  ## the site, into build/site; warnings are errors, and a browser looks for what it fetches
	NO_MKDOCS_2_WARNING=1 OPENBLAS_NUM_THREADS=1 $(BIN)/mkdocs build --quiet --strict
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m site tests/site
	@echo "Open build/site/index.html"

screenshot: demo  ## the picture in the README
	$(MAKE) $(VENV)/.installed-dev
	$(BIN)/python docs/screenshot.py $(RUNS)/demo docs/images/report.png

screenshots: docs demo  ## site, explorer, notebook and report on a desk, on a phone and in the dark, into build/screenshots
	$(BIN)/python tools/screenshots.py build/site $(RUNS)/demo/report.html build/screenshots

# Hashes stand in a file of their own: in a constraints file they would break editable installs.
# The papers need nothing beside the library, as a test says.
lock: $(BIN)/python  ## the hashes of all that is needed, into requirements/lock.txt
	$(BIN)/python -m pip install --quiet 'pip-tools>=7.4'
	$(BIN)/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	  --no-annotate --no-header --strip-extras --constraint constraints.txt --output-file requirements/lock.txt pyproject.toml

audit: $(BIN)/python  ## known holes in the versions of the lock file; needs the network
	$(BIN)/python -m pip install --quiet 'pip-audit>=2.10'
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements/lock.txt

MUTANTS ?= --count 400 --seed 1 --hours 4
mutants: $(VENV)/.installed-dev  ## plant mistakes at random places and see whether tests notice; takes hours, goes on where it stopped
	$(BIN)/python -m pip install --quiet 'pytest-cov>=5'
	$(BIN)/python tools/mutants.py $(MUTANTS)

clean:
	rm -rf $(VENV) $(RUNS) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
